"""Level client: what Spark reads through the Iceberg runtime, against DuckLake's metadata.

The session needs the runtime on its class path; AWS's Spark has it, the other levels do not ask.
"""

from collections.abc import Iterator
from typing import Any

from ..ingest.types.spark import quoted
from .catalog import CatalogTable
from .metadata import Bridge

CATALOG = "polynya_verify"
NO_SUMS = {"struct", "list", "map", "variant", "interval", "geometry", "timetz"}


def connect(spark: Any, bridge: Bridge) -> None:
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": bridge.catalog_uri,
        ".warehouse": bridge.warehouse,
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        ".cache-enabled": "false",
    }
    if bridge.s3_endpoint:
        settings[".s3.endpoint"] = bridge.s3_endpoint
        settings[".s3.path-style-access"] = "true"
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{_catalog(bridge)}{name}", value)


def _catalog(bridge: Bridge) -> str:
    """One for each snapshot: Spark keeps a catalog with the settings that it first had."""
    return f"{CATALOG}_{abs(hash((bridge.catalog_uri, bridge.warehouse))):x}"


def check(
    spark: Any,
    bridge: Bridge,
    table: CatalogTable,
    row_count: int,
    value_counts: dict[int, int] | None,
) -> Iterator[tuple[str, str]]:
    """Rows, and the values of each column.

    Args:
        value_counts: by column, from the statistics of all files; None: some rows are deleted or
            inlined, so that the sums do not hold.
    """
    from pyspark.errors import PySparkException

    source = ".".join(map(quoted, (_catalog(bridge), table.schema_name, table.table_name)))
    counted = [
        column
        for column in table.columns
        if value_counts and column.column_id in value_counts and column.column_type not in NO_SUMS
    ]
    try:
        there = set(spark.table(source).columns)  # without what is hidden
        counted = [column for column in counted if column.column_name in there]
        sums = ["count(*)", *(f"count({quoted(column.column_name)})" for column in counted)]
        # A filter that is always true: a bare count is answered from the metadata.
        where = "rand() >= 0"
        [row] = spark.sql(f"SELECT {', '.join(sums)} FROM {source} WHERE {where}").collect()
    except PySparkException as error:
        yield "client-fails", f"Spark cannot read it: {str(error).splitlines()[0]}"
        return
    if row[0] != row_count:
        yield "client-rows", f"Spark reads {row[0]} rows, the catalog has {row_count}"
    for column, number in zip(counted, row[1:], strict=True):
        wanted = (value_counts or {})[column.column_id]
        if number != wanted:
            words = f"Spark reads {number} values of {column.column_name}, the files have"
            yield "client-values", f"{words} {wanted}"
