"""Where a client finds a table, and at which snapshot it reads."""

from dataclasses import dataclass, field, replace

from polynya.namespaces import Namespace, parsed

from ...clients.spark_jars import ARTIFACTS
from ...lakes.data_path import ALIAS


@dataclass(frozen=True, slots=True)
class Place:
    """The values of a snippet; a local S3 takes any credentials."""

    catalog_uri: str
    warehouse: str
    s3_endpoint: str
    namespace: str
    """All levels, as people write them."""
    table: str
    lake_snapshot: int | None = None
    """DuckLake's snapshot that is to be read; None: the newest."""
    snapshot_id: int | None = None
    """The snapshot of the table in Iceberg that shows the same; None: the table has none."""
    virtual_bucket: str = ALIAS
    """The bucket of the metadata files."""
    key_id: str = "any"
    secret: str = field(default="any", repr=False)
    region: str = "us-east-1"
    jars_setting: str = "spark.jars.packages"
    jars: str = ",".join(ARTIFACTS)

    @property
    def levels(self) -> Namespace:
        """The levels of the namespace; none for a place without a table."""
        return parsed(self.namespace) if self.namespace else ()

    @property
    def s3_host(self) -> str:
        """The host and the port of the S3."""
        return self.s3_endpoint.rpartition("://")[2]

    @property
    def has_tls(self) -> bool:
        """Whether the S3 is reached by HTTPS."""
        return self.s3_endpoint.startswith("https://")

    def pinned(self) -> "Place":
        """The same rows by the name of the warehouse, which pins every table to a snapshot."""
        if self.lake_snapshot is None:
            return replace(self, snapshot_id=None)
        warehouse = f"{self.warehouse}@{self.lake_snapshot}"
        return replace(self, warehouse=warehouse, lake_snapshot=None, snapshot_id=None)
