"""The DuckDB that writes, in a process of its own: it has been seen to abort at a ROLLBACK."""

from local.clients.duckdb import Process
from local.duckdb_connection import LAKE, connect, literal
from local.lakes import Lake


class Writer:
    """Writes one lake after the other."""

    def __init__(self, s3_endpoint: str) -> None:
        self._process = Process(connect, LAKE, s3_endpoint)
        self._attach = ""

    def attach(self, lake: Lake, options: str) -> None:
        """Make a lake, or leave the one before."""
        if self._attach:
            self._clean()
        source = literal(f"ducklake:postgres:{lake.database.libpq}")
        self._process.query(f"ATTACH {source} AS lake {options}")
        self._attach = f"ATTACH {source} AS lake"

    def execute(self, statements: list[str]) -> None:
        """Run all of them, or none.

        Raises:
            RuntimeError: DuckDB refused one, in its words, or its process has ended.
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
            self._process.query("DETACH lake")
        except RuntimeError:
            self._process.restart()

    def _again(self) -> None:
        """After an error that DuckDB calls internal or fatal it does nothing any more."""
        try:
            self._process.query("ROLLBACK")
        except RuntimeError as error:
            if "no transaction is active" in str(error):
                return
            self._process.restart()
            self._process.query(self._attach)
