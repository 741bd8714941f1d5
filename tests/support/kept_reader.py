"""One DuckDB for many bridges: its process takes a second to start."""

from polynya_local.clients import duckdb


class KeptReader:
    def __init__(self) -> None:
        self._reader: duckdb.DuckDB | None = None

    def at(self, *where: str) -> duckdb.DuckDB:
        """The reader, attached to the bridge that is here now."""
        if self._reader is None:
            self._reader = duckdb.open(*where)
        else:
            self._reader.move(*where)
        return self._reader

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
