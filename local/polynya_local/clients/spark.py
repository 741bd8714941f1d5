"""Spark with Iceberg's own jars: one session for the whole process, a catalog for each bridge."""

import itertools
import os
import sys
import tempfile
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa
from polynya_pipeline.common.spark import quoted

from ..processes.serving import KEY_ID, REGION, SECRET
from .spark_jars import jars, why_not

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "Spark"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
NUMBERS = itertools.count(1)


class Spark:
    """A catalog in Spark's session; `catalog` is its name in SQL."""

    name = NAME

    def __init__(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        # A new name each time: Spark ignores new settings of a catalog that it has used.
        self.catalog = f"polynya_{next(NUMBERS)}"
        prefix = f"spark.sql.catalog.{self.catalog}"
        session().conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for name, value in catalog_settings(catalog_uri, warehouse, s3_endpoint).items():
            session().conf.set(f"{prefix}.{name}", value)

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """All rows of a table, at a snapshot or the newest."""
        source = self.source(namespace, table, snapshot_id)
        return session().sql(f"SELECT * FROM {source}").toArrow()

    def source(self, namespace: str, table: str, snapshot_id: int | None = None) -> str:
        """What follows FROM for a table, at a snapshot or the newest."""
        name = ".".join(map(quoted, (self.catalog, namespace, table)))
        return name if snapshot_id is None else f"{name} VERSION AS OF {int(snapshot_id)}"

    def close(self) -> None:
        """Keep the session: another one takes ten seconds to start."""


def catalog_settings(catalog_uri: str, warehouse: str, s3_endpoint: str) -> dict[str, str]:
    """Spark's settings of a catalog, without the prefix `spark.sql.catalog.<name>.`"""
    return {
        "type": "rest",
        "uri": catalog_uri,
        "warehouse": warehouse,
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "s3.endpoint": s3_endpoint,
        "s3.path-style-access": "true",
        "s3.access-key-id": KEY_ID,
        "s3.secret-access-key": SECRET,
        "client.region": REGION,
        "cache-enabled": "false",  # the default caches tables for 30 seconds
    }


@cache
def session() -> "SparkSession":
    """The one session of this process.

    Raises:
        RuntimeError: Java or the Iceberg jars are missing.
    """
    if reason := why_not():
        raise RuntimeError(reason)
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # the default is the first python3 on PATH
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    settings: dict[str, bool | float | int | str | None] = {
        "spark.jars": ",".join(map(str, jars() or [])),
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": os.path.join(tempfile.gettempdir(), "polynya-spark-warehouse"),
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    builder = SparkSession.builder.master("local[2]").appName("polynya")
    return builder.config(map=settings).getOrCreate()


def stop() -> None:
    """End the session, if there is one."""
    if session.cache_info().currsize:
        session().stop()
        session.cache_clear()


open = Spark
