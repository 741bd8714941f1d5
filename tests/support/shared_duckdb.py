"""One DuckDB for many bridges, because its process takes a second to start."""

from polynya_local.clients import duckdb


class SharedDuckDB:
    def __init__(self) -> None:
        self._client: duckdb.DuckDB | None = None

    def attached_to(self, *where: str) -> duckdb.DuckDB:
        """The client, attached only to the bridge at `where` (catalog, warehouse, S3)."""
        if self._client is None:
            self._client = duckdb.open(*where)
        else:
            self._client.move(*where)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
