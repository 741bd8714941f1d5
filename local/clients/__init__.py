"""Readers of the same tables: DuckLake itself, and Iceberg clients through the bridge.

Each module has `NAME` and `open(catalog_uri, warehouse, s3_endpoint)`, which gives a `Client`.
"""

from typing import Protocol

import pyarrow as pa


class Client(Protocol):
    name: str

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """Every row of a table, at `snapshot_id` or now."""

    def close(self) -> None: ...
