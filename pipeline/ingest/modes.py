"""The choices of the command line. This module imports nothing that takes time to load."""

from enum import StrEnum


class Mode(StrEnum):
    """What happens to the rows that a table has."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite-partitions"


class Format(StrEnum):
    """The formats of files that Spark reads."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
