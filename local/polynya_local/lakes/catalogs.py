"""The catalogs that are mirrored: `catalog_of` selects one by the kind of its address.

`DuckDBCatalog` is a file of DuckDB. `PostgresCatalog` is mirrored if its data is in a local folder,
or elsewhere than the catalog says; PostgreSQL itself selects, compares and writes the rows, because
both sides have the same types. `SQLiteCatalog` has a module of its own.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from threading import RLock
from typing import IO

import duckdb
from duckdb import DuckDBPyConnection
from pg8000.native import Connection
from polynya.ducklake.connection.url import connection_arguments
from polynya.runtime.errors import Misconfigured, ServiceUnavailable

from ..clients.duckdb import identifier, literal
from .address import Address, DuckDBLake, PostgresLake, SQLiteLake
from .catalog_source import (
    DATA_PATH,
    LOCK_SECONDS,
    SOURCE,
    Catalog,
    Digests,
    DuckDBState,
    Fingerprint,
    Refusal,
    Row,
    Staged,
    WritableDuckDBState,
    file_state,
    not_a_table,
    state_of,
)
from .mirrored_tables import (
    INLINED_ROWS,
    Column,
    Renamed,
    Table,
    key_of,
    qualified,
    relocated,
    table,
)
from .sqlite_catalog import SQLiteCatalog

SECONDS = 60.0
"""How long the database may take to continue an answer, and another lake to leave a file."""

# With these settings, every PostgreSQL reads the texts as the same values.
SESSION = (
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO'",
    "SET IntervalStyle = 'postgres'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 3",
    "SET standard_conforming_strings = on",
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
)

LAKES = """
SELECT n.nspname::text, EXISTS (
  SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'scope')
FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = 'ducklake_metadata' AND c.relkind IN ('r', 'p', 'f', 'v') ORDER BY 1"""

COLUMNS = """
SELECT c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid
WHERE n.nspname = :schema AND c.relkind IN ('r', 'p', 'f', 'v') AND a.attnum > 0
  AND NOT a.attisdropped AND starts_with(c.relname::text, 'ducklake_')
ORDER BY 1, a.attnum"""


DIGESTS = """
SELECT {number}, count(*), sum(hashtextextended(ROW(t.*)::text, 0)),
  sum(hashtextextended(ROW(t.*)::text, 1))
FROM {table} AS t GROUP BY 1"""


class PostgresCatalog:
    """A lake in PostgreSQL."""

    name = "the catalog database"
    default_schema = "public"
    files: tuple[Path, ...] = ()

    def __init__(self, url: str) -> None:
        self._arguments = connection_arguments(url) | {"application_name": "polynya mirror"}
        self._watching: Connection | None = None

    def fingerprint(self) -> Fingerprint:
        """PostgreSQL's snapshot, which says which transactions are visible: equal snapshots see the
        same rows."""
        try:
            if self._watching is None:
                self._watching = Connection(**self._arguments, timeout=LOCK_SECONDS)
            return tuple(self._watching.run("SELECT pg_catalog.pg_current_snapshot()::text")[0])
        except Exception:
            self.close()
            raise

    def close(self) -> None:
        """As `Catalog.close`."""
        watching, self._watching = self._watching, None
        if watching is not None:
            with suppress(Exception):  # it is gone already, in one of many ways
                watching.close()

    @contextmanager
    def attached(
        self, con: DuckDBPyConnection, *, to_write: bool = False
    ) -> Iterator["PostgresState"]:
        """As `Catalog.attached`; the owner of the database decides what its tables are."""
        assert not to_write, "clients write to PostgreSQL itself"
        with closing(Connection(**self._arguments, timeout=SECONDS)) as reading:
            for statement in SESSION:
                reading.run(statement)
            yield PostgresState(reading)

    def interrupt(self) -> None:
        """Do nothing: a statement without an answer ends by its timeout."""


class PostgresState:
    """One transaction."""

    def __init__(self, reading: Connection) -> None:
        self._reading = reading

    def data_paths(self) -> dict[str, str]:
        """As `State.data_paths`."""
        return {
            schema: self._data_path(schema, has_scope)
            for schema, has_scope in self._reading.run(LAKES)
        }

    def _data_path(self, schema: str, has_scope: bool) -> str:
        # The first versions have no options of a schema or a table.
        scope = " AND scope IS NULL" if has_scope else ""
        sql = DATA_PATH.format(table=qualified(schema, "ducklake_metadata"), scope=scope)
        rows = self._reading.run(sql)
        return str(rows[0][0]) if rows else ""

    def tables(self, schema: str, renamed: Renamed | None) -> list[Table]:
        """As `State.tables`; the columns keep their types."""
        columns: dict[str, list[Column]] = {}
        for name, column, type_ in self._reading.run(COLUMNS, schema=schema):
            columns.setdefault(name, []).append(Column(column, type_, identifier(column)))
        return [_table(name, of_table, renamed) for name, of_table in columns.items()]

    def digests(self, schema: str, table: Table) -> Digests:
        """As `State.digests`."""
        sql = DIGESTS.format(number=table.range_number, table=qualified(schema, table.name))
        return {number: tuple(digest) for number, *digest in self._reading.run(sql)}

    def has(self, schema: str, table: str, row: Row) -> bool:
        """As `State.has`; it is not called, because clients write to PostgreSQL itself."""
        raise NotImplementedError

    def stage(self, schema: str, table: Table, ranges: Sequence[int] | None, name: str) -> Staged:
        """As `State.stage`: into a temporary file."""
        where = ""
        if ranges is not None:
            numbers = ", ".join(map(str, ranges))
            where = (
                f" WHERE {table.ranges_condition(ranges)} AND {table.range_number} IN ({numbers})"
            )
        rows = f"SELECT {table.select} FROM {qualified(schema, table.name)}{where}"
        file = TemporaryFile()  # noqa: SIM115  # StagedInFile closes it
        try:
            self._reading.run(f"COPY ({rows}) TO STDOUT", stream=file)
        except BaseException:
            file.close()
            raise
        return StagedInFile(file)


def _table(name: str, columns: Sequence[Column], renamed: Renamed | None) -> Table:
    names = [column.name for column in columns]
    if INLINED_ROWS.fullmatch(name):
        return table(name, tuple(columns), names[0])
    if renamed is not None:
        columns = [relocated(name, names, column, renamed) for column in columns]
    return table(name, tuple(columns), key_of(names))


class StagedInFile:
    """Rows in a temporary file, as COPY writes them."""

    refusals: Sequence[Refusal] = ()
    """Empty: both sides have the same types."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def chunks(self) -> Iterator[bytes]:
        """As `Staged.chunks`."""
        self._file.seek(0)
        while chunk := self._file.read(1 << 16):
            yield chunk

    def drop(self) -> None:
        """As `Staged.drop`."""
        self._file.close()


IN_PROCESS: dict[Path, RLock] = {}
"""The lock of each file of DuckDB in this process. Each schema of a file may be a lake;
DuckDB opens a file once in a process, and the system's locks on files belong to the process."""

LOG = ".wal"
LOGS = (LOG, ".wal.checkpoint", ".wal.recovery")

HEADERS = 3 * 4096
"""The header of the file, and the two of the database, which each checkpoint writes in turn."""

# Without names and texts, a definition has these words only if a column is generated.
COMPUTED = rf"""
SELECT view_name, 'a view' FROM duckdb_views()
WHERE database_name = '{SOURCE}'
  AND regexp_matches(lower(view_name), '^(ducklake_|polynya_commits$)')
UNION ALL
SELECT table_name, 'a table with generated columns' FROM duckdb_tables()
WHERE database_name = '{SOURCE}'
  AND regexp_matches(lower(table_name), '^(ducklake_|polynya_commits$)')
  AND regexp_matches(
    regexp_replace(sql, '"(""|[^"])*"|''(''''|[^''])*''', '', 'g'), '(?i)\bgenerated\s+always\b')
ORDER BY ALL"""


def catalog_of(address: Address) -> Catalog:
    """The catalog of an address; nothing is opened."""
    match address:
        case PostgresLake(url):
            return PostgresCatalog(url)
        case DuckDBLake(file):
            return DuckDBCatalog(file)
        case SQLiteLake(file):
            return SQLiteCatalog(file)


class DuckDBCatalog:
    """A file of DuckDB."""

    default_schema = "main"

    def __init__(self, file: Path) -> None:
        self.name = str(file)
        # DuckDB has the logs beside the file itself, not beside a link to it.
        path = file.resolve()
        self.files = (path, *(path.with_name(path.name + end) for end in LOGS))
        self._attach = f"ATTACH {literal(str(path))} AS {SOURCE} (TYPE duckdb, {{}})"
        self._link, self._file, self._log = file, path, path.with_name(path.name + LOG)
        self._in_process = IN_PROCESS.setdefault(path, RLock())

    def fingerprint(self) -> Fingerprint:
        """A commit makes the write-ahead log longer; a checkpoint, which empties it, writes a
        header with a new number. So neither can return to what it was."""
        if self._link.resolve() != self._file:
            raise Misconfigured(f"{self.name} is a link to another file now: start Polynya again")
        # This process must not hold a lock of DuckDB on the file: closing it here would free that.
        with self._alone():
            # The log first: a checkpoint in between changes the headers that are read after it.
            log = file_state(self._log)
            with self._file.open("rb") as file:
                headers = file.read(HEADERS)
                return log, state_of(os.fstat(file.fileno())), headers

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other lakes of the same file for the block."""
        if not self._in_process.acquire(timeout=SECONDS):
            raise ServiceUnavailable(f"another lake in {self.name} is being written: try again")
        try:
            yield
        finally:
            self._in_process.release()

    def close(self) -> None:
        """Do nothing: nothing is open."""

    @contextmanager
    def attached(self, con: DuckDBPyConnection, *, to_write: bool = False) -> Iterator[DuckDBState]:
        """As `Catalog.attached`: one transaction of DuckDB."""
        with self._alone():
            con.execute(self._attach.format("READ_WRITE" if to_write else "READ_ONLY"))
            try:
                con.execute("BEGIN")
                if computed := con.execute(COMPUTED).fetchall():
                    raise not_a_table(self.name, *computed[0])
                yield (WritableDuckDBState if to_write else DuckDBState)(con, self.name)
                # Changes that are not committed belong to a commit that failed.
                con.execute("ROLLBACK" if to_write else "COMMIT")
            except BaseException:
                with suppress(duckdb.Error):
                    con.execute("ROLLBACK")
                raise
            finally:
                con.execute(f"DETACH {SOURCE}")

    def interrupt(self) -> None:
        """Do nothing: DuckDB runs all statements."""
