"""Spark for the suites of other projects, whose folders have a package `tests` of their own."""

import os
from typing import Any

from polynya_local.clients import spark


def spark_session() -> Any:
    """Spark in this process, with the catalog that the environment names as the default."""
    one = spark.session()
    address = [os.environ[name] for name in ("REST_URI", "REST_WAREHOUSE", "REST_S3_ENDPOINT")]
    one.conf.set("spark.sql.catalog.rest", "org.apache.iceberg.spark.SparkCatalog")
    for name, value in spark.catalog_settings(*address).items():
        one.conf.set(f"spark.sql.catalog.rest.{name}", value)
    one.conf.set("spark.sql.defaultCatalog", "rest")
    # As Spark Connect, with which the tests of PyIceberg run, gives structs and maps to pandas.
    one.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    one.conf.set("spark.sql.execution.pandas.structHandlingMode", "dict")
    one.conf.set("spark.sql.ansi.enabled", "false")
    return one
