"""One DuckDB for many bridges, because its process takes a second to start."""

from polynya_local.clients import duckdb


class _Movable(duckdb.DuckDB):
    def move(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        """Attach another catalog instead, in the same process."""
        self._where = (catalog_uri, warehouse, s3_endpoint)
        attaching = duckdb.attaching(catalog_uri, warehouse)
        # What it keeps of files is gone then, as in a new process.
        forgetting = (f"SET enable_external_file_cache = {on}" for on in ("false", "true"))
        try:
            for sql in ("DETACH ice", *forgetting, duckdb.s3_secret(s3_endpoint), attaching):
                self.query(sql)
        except RuntimeError:
            self.restart()  # it was started with the other catalog, and could not attach that


class SharedDuckDB:
    def __init__(self) -> None:
        self._client: _Movable | None = None

    def attached_to(self, *where: str) -> duckdb.DuckDB:
        """The client, attached only to the bridge at `where` (catalog, warehouse, S3)."""
        if self._client is None:
            self._client = _Movable(*where)
        else:
            self._client.move(*where)
        return self._client

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
