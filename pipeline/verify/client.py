"""Level client: what Spark reads through the Iceberg runtime, compared with DuckLake's catalog.

The session needs the runtime on its class path, as AWS's Spark has it.
"""

from collections.abc import Iterator
from typing import Any

from ..common.spark import quoted
from .catalog import CatalogTable
from .findings import Problem
from .metadata import ServedCatalog

CATALOG = "polynya_verify"
UNCOUNTED = {"struct", "list", "map", "variant", "interval", "geometry", "timetz"}
"""The column types whose values are not counted."""


def connect(spark: Any, served: ServedCatalog) -> None:
    """Configure the served catalog in a Spark session."""
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": served.catalog_uri,
        ".warehouse": served.warehouse,
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        ".cache-enabled": "false",
    }
    if served.s3_endpoint:
        settings[".s3.endpoint"] = served.s3_endpoint
        settings[".s3.path-style-access"] = "true"
    for name, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{_catalog(served)}{name}", value)


def _catalog(served: ServedCatalog) -> str:
    """A name for each snapshot: Spark does not change a catalog's settings after its first use."""
    return f"{CATALOG}_{abs(hash((served.catalog_uri, served.warehouse))):x}"


def check(
    spark: Any,
    served: ServedCatalog,
    table: CatalogTable,
    row_count: int,
    value_counts: dict[int, int] | None,
) -> Iterator[Problem]:
    """Count the rows, and the values of each column.

    Args:
        row_count: the number of rows in the catalog.
        value_counts: the number of values by column id, from the statistics of all files; None:
            some rows are deleted or inlined, so the statistics do not say it.
    """
    from pyspark.errors import PySparkException

    source = ".".join(map(quoted, (_catalog(served), *table.namespace, table.table_name)))
    counted = [
        column
        for column in table.columns
        if value_counts and column.column_id in value_counts and column.column_type not in UNCOUNTED
    ]
    try:
        visible = set(spark.table(source).columns)  # without hidden columns
        counted = [column for column in counted if column.column_name in visible]
        sums = ["count(*)", *(f"count({quoted(column.column_name)})" for column in counted)]
        # The filter is always true; without one Spark answers from the metadata.
        where = "rand() >= 0"
        [row] = spark.sql(f"SELECT {', '.join(sums)} FROM {source} WHERE {where}").collect()
    except PySparkException as error:
        yield "client-fails", f"Spark cannot read the table: {str(error).splitlines()[0]}"
        return
    if row[0] != row_count:
        yield "client-rows", f"Spark reads {row[0]} rows, the catalog has {row_count}"
    for column, number in zip(counted, row[1:], strict=True):
        wanted = (value_counts or {})[column.column_id]
        if number != wanted:
            message = f"Spark reads {number} values of {column.column_name}, the files have"
            yield "client-values", f"{message} {wanted}"
