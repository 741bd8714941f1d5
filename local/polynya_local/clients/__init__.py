"""Clients that read the same tables: DuckLake itself, and Iceberg clients through Polynya.

The modules of Iceberg clients have `NAME` and `open(catalog_uri, warehouse, s3_endpoint)`, which
gives a `Client`.
"""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class Client(Protocol):
    """A program that reads tables."""

    name: str

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> "pa.Table":
        """All rows of a table at a snapshot; without one, at the newest."""

    def close(self) -> None:
        """End the client."""
