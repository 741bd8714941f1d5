"""Words of the command line, apart from what takes time to import."""

APPEND, OVERWRITE, OVERWRITE_PARTITIONS = "append", "overwrite", "overwrite-partitions"
MODES = (APPEND, OVERWRITE, OVERWRITE_PARTITIONS)
FORMATS = ("parquet", "csv", "json")
LEVELS = ("catalog", "storage", "metadata", "client")
