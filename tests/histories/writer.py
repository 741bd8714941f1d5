"""The DuckDB that writes, in a process of its own, because it was seen to abort at a ROLLBACK."""

from polynya_local.clients.duckdb import LAKE, Process, connect, literal
from polynya_local.clients.native import Lake


class Writer:
    """Writes several lakes, one after the other."""

    def __init__(self, s3_endpoint: str) -> None:
        self._process = Process(connect, LAKE, s3_endpoint)
        self._attach: dict[str, str] = {}

    def attach(self, lake: Lake, options: dict[str, str]) -> None:
        """Create a lake and detach the previous one.

        Args:
            options: by the names under which it is attached, one for each simulated writer.
        """
        self._clean()
        source = literal(f"ducklake:postgres:{lake.database.libpq}")
        self._attach = {name: f"ATTACH {source} AS {name} ({of})" for name, of in options.items()}
        for sql in self._attach.values():
            self._process.query(sql)

    def execute(self, statements: list[str]) -> None:
        """Run all statements in a transaction.

        Raises:
            RuntimeError: DuckDB refused one (the message is DuckDB's), or its process has ended.
        """
        try:
            for sql in statements:
                self._process.query(sql)
        except RuntimeError:
            self._again()
            raise

    def close(self) -> None:
        self._process.close()

    def _clean(self) -> None:
        try:
            for name in self._attach:
                self._process.query(f"DETACH {name}")
        except RuntimeError:
            self._process.restart()

    def _again(self) -> None:
        """Start again: after an internal or fatal error a DuckDB connection is unusable."""
        try:
            self._process.query("ROLLBACK")
        except RuntimeError as error:
            if "no transaction is active" in str(error):
                return
            self._process.restart()
            for sql in self._attach.values():
                self._process.query(sql)
