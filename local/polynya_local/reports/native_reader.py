"""The process in which `doctor` lets DuckDB read the lake natively, and the footers of its files.

A file can crash DuckDB, and a process aborts if one of its threads is in DuckDB when it ends. In a
process of its own this costs one count, not the server that shows the report.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection
from polynya.runtime.errors import PolynyaError
from polynya.runtime.isolation import Ended
from polynya.storage.aws import AwsSettings

from ..clients.duckdb import LAKE, literal
from ..processes.pool import ProcessPool
from .native_duckdb import attach_lake, connect_to_s3, redacted, secrets_of

MEMORY = "2GB"
"""DuckDB's `memory_limit`."""


class Unread(ValueError):
    """DuckDB cannot read it; the message says why, and never holds the URL of the database."""


@dataclass(frozen=True, slots=True)
class _NewReader:
    """Makes the function that the process calls."""

    database: str = field(repr=False)
    metadata_schema: str
    aws: AwsSettings

    def __call__(self) -> Callable[..., Any]:
        reader = _Reader(self.database, self.metadata_schema, self.aws)
        return lambda name, *arguments: getattr(reader, name)(*arguments)


class _Reader:
    """Carries out the calls of `NativeReader`, in the process."""

    def __init__(self, database: str, metadata_schema: str, aws: AwsSettings) -> None:
        self._database, self._metadata_schema = database, metadata_schema
        self._aws = aws
        self._lake: DuckDBPyConnection | None = None
        self._files: DuckDBPyConnection | None = None

    def attach(self) -> None:
        if self._lake is None:
            con = self._connect(LAKE)
            try:
                attach_lake(con, self._database, self._metadata_schema)
            except duckdb.Error as error:
                con.close()
                raise self._unread(error) from None
            self._lake = con

    def rows(self, source: str) -> int:
        self.attach()
        assert self._lake is not None
        # DuckDB answers a plain count(*) from the counts in the catalog, which are to be checked;
        # `rowid` would be hidden by a column of that name.
        count = "count(*) FILTER (WHERE random() >= 0)"
        [(number,)] = self._fetched(self._lake, f"SELECT {count} FROM {source}")
        return int(number)

    def footer_rows(self, paths: Sequence[str]) -> dict[str, int]:
        return dict(self._footers("file_name, num_rows", paths))

    def programs(self, paths: Sequence[str]) -> list[str]:
        return sorted({name for (name,) in self._footers("created_by", paths) if name})

    def _footers(self, columns: str, paths: Sequence[str]) -> list[Any]:
        self._files = self._files or self._connect(("httpfs",))
        names = ", ".join(map(literal, paths))
        sql = f"SELECT {columns} FROM parquet_file_metadata([{names}])"
        return self._fetched(self._files, sql)

    def _connect(self, extensions: tuple[str, ...]) -> DuckDBPyConnection:
        con = connect_to_s3(self._aws, extensions)
        con.execute(f"SET memory_limit = '{MEMORY}'")
        return con

    def _fetched(self, con: DuckDBPyConnection, sql: str) -> list[Any]:
        try:
            return con.execute(sql).fetchall()
        except duckdb.Error as error:
            raise self._unread(error) from None

    def _unread(self, error: Exception) -> Unread:
        return Unread(redacted(error, secrets_of(self._database)))


class NativeReader:
    """Reads a lake with DuckDB and its extension ducklake, read-only, in a process of its own.

    All methods that read raise Unread if DuckDB cannot read, or its process has ended.
    """

    def __init__(self, database: str, metadata_schema: str, aws: AwsSettings) -> None:
        """No process is started yet.

        Args:
            database: the URL of the catalog.
            aws: with the endpoint of the data.
        """
        new_reader = _NewReader(database, metadata_schema, aws)
        self._pool = ProcessPool(new_reader, 1)

    def attach(self) -> None:
        """Attach the lake, as `rows` needs it."""
        self._call("attach")

    def rows(self, source: str) -> int:
        """The number of rows of a table, as `table_at` names it."""
        rows: int = self._call("rows", source)
        return rows

    def footer_rows(self, paths: Sequence[str]) -> dict[str, int]:
        """The number of rows of each file in S3, as its footer says."""
        rows: dict[str, int] = self._call("footer_rows", paths) if paths else {}
        return rows

    def programs(self, paths: Sequence[str]) -> list[str]:
        """The programs that wrote files in S3, as their footers say."""
        programs: list[str] = self._call("programs", paths) if paths else []
        return programs

    def close(self) -> None:
        """End the process."""
        self._pool.close()

    def _call(self, *call: Any) -> Any:
        try:
            return self._pool.call(*call)
        except Ended:
            raise Unread("DuckDB has crashed, or needed too much memory") from None
        except PolynyaError as error:  # an extension is missing, or the time is over
            raise Unread(str(error)) from None
