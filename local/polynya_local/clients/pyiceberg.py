"""PyIceberg, in this process."""

import pyarrow as pa
from pyiceberg.catalog import load_catalog

from ..processes.serving import KEY_ID, REGION, SECRET

NAME = "PyIceberg"


class PyIceberg:
    """Reads an Iceberg REST catalog, with the files in a local S3."""

    name = NAME

    def __init__(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        self._catalog = load_catalog(
            "polynya",
            **{
                "type": "rest",
                "uri": catalog_uri,
                "warehouse": warehouse,
                **s3_properties(s3_endpoint),
            },
        )

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """All rows of a table, at a snapshot or the newest."""
        return self._catalog.load_table((namespace, table)).scan(snapshot_id=snapshot_id).to_arrow()

    def snapshot_ids(self, namespace: str, table: str) -> list[int]:
        """The ids of all snapshots of a table, oldest first."""
        snapshots = self._catalog.load_table((namespace, table)).snapshots()
        return sorted(snapshot.snapshot_id for snapshot in snapshots)

    def close(self) -> None:
        self._catalog.close()


def s3_properties(endpoint: str) -> dict[str, str]:
    """PyIceberg's properties of a local S3."""
    return {
        # Hundreds of manifests may be generated for one list; the default is 3 seconds.
        "s3.request-timeout": "60",
        "s3.endpoint": endpoint,
        "s3.access-key-id": KEY_ID,
        "s3.secret-access-key": SECRET,
        "s3.region": REGION,
    }


open = PyIceberg
