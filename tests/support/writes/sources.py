"""Tables of other Iceberg catalogs, which are registered: of PyIceberg, and of Java in Spark."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
from polynya.storage.s3_locations import bucket_and_key
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.sql import SqlCatalog

ROOT = "s3://lakes/source/"
"""Where their files are."""


@contextmanager
def pyiceberg_source(folder: Path, s3_endpoint: str, name: str = "source") -> Iterator[SqlCatalog]:
    """A catalog in SQLite, with files in the S3 of the lakes."""
    properties = {"warehouse": f"{ROOT}{name}", **s3_properties(s3_endpoint)}
    uri = f"sqlite:///{folder}/{name}.sqlite"
    with closing(SqlCatalog(name, uri=uri, **properties)) as catalog:
        catalog.create_namespace("main")
        yield catalog


class SparkSource:
    """Iceberg's in-memory catalog in Spark, whose files are copied to S3 to be registered.

    In SQL `{t}` is a table, whose name is that of `location`.
    """

    def __init__(self, s3_endpoint: str) -> None:
        from polynya_local.clients import spark

        self.session = spark.session()
        self.iceberg = self.session._jvm.org.apache.iceberg
        self._s3 = boto3.client("s3", endpoint_url=s3_endpoint, region_name="us-east-1")
        for key, value in {
            "": "org.apache.iceberg.spark.SparkCatalog",
            ".catalog-impl": "org.apache.iceberg.inmemory.InMemoryCatalog",
            ".warehouse": f"{ROOT}java",
            ".cache-enabled": "false",
        }.items():
            self.session.conf.set(f"spark.sql.catalog.source{key}", value)
        self.session.sql("CREATE NAMESPACE IF NOT EXISTS source.main")

    def sql(self, name: str, *statements: str) -> list[Any]:
        """The rows of the last statement."""
        rows: list[Any] = []
        for statement in statements:
            rows = self.session.sql(statement.format(t=f"source.main.{name}", of=f"main.{name}"))
            rows = rows.collect()
        return rows

    def arrow(self, name: str) -> pa.Table:
        """The rows, as Spark reads them."""
        return self.session.sql(f"SELECT * FROM source.main.{name}").toArrow()

    def table(self, name: str) -> Any:
        """The table, in Java."""
        of_spark = self.iceberg.spark.Spark3Util
        return of_spark.loadIcebergTable(self.session._jsparkSession, f"source.main.{name}")

    def copied(self, name: str) -> str:
        """Copy the files of a table to S3; the location of its metadata file."""
        table = self.table(name)
        [files] = [f for f in table.io().getClass().getDeclaredFields() if "Map" in f.toString()][
            :1
        ]
        files.setAccessible(True)
        bodies = files.get(table.io())
        for location in list(bodies.keySet()):
            place = bucket_and_key(location)
            assert place is not None
            if f"/main/{name}/" in location:
                body = bytes(bodies.get(location))
                self._s3.put_object(Bucket=place[0], Key=place[1], Body=body)
        return str(table.operations().current().metadataFileLocation())
