"""Spark for the suites of other projects, whose folders have a package `tests` of their own."""

import os
from typing import Any

from polynya_local.clients import spark


def spark_session(name: str = "rest") -> Any:
    """Spark in this process, with the catalog that the environment names as the default."""
    one = spark.session()
    address = [os.environ[name] for name in ("REST_URI", "REST_WAREHOUSE", "REST_S3_ENDPOINT")]
    one.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for key, value in spark.catalog_settings(*address).items():
        one.conf.set(f"spark.sql.catalog.{name}.{key}", value)
    one.conf.set("spark.sql.defaultCatalog", name)
    # As Spark Connect, with which the tests of PyIceberg run, gives structs and maps to pandas.
    one.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    one.conf.set("spark.sql.execution.pandas.structHandlingMode", "dict")
    one.conf.set("spark.sql.ansi.enabled", "false")
    return one
