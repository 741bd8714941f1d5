"""Writes what has changed into the mirror's PostgreSQL, in one transaction."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

import duckdb
from duckdb import DuckDBPyConnection

from ...clients.duckdb_connection import identifier, literal
from ...processes.postgres import Database
from .reading import Change
from .tables import KEYS, NO_ID, SPAN, Table

TARGET, SCHEMA = "mirror", "public"


class MirrorWriter:
    """Writes to one PostgreSQL database that nothing else writes to."""

    def __init__(self, con: DuckDBPyConnection, target: Database) -> None:
        """Attach the database."""
        self._con = con
        con.execute(f"ATTACH {literal(target.libpq)} AS {TARGET} (TYPE postgres)")

    def write(self, changes: Iterable[Change], gone: Iterable[str]) -> None:
        """Make the changes.

        Args:
            gone: the tables that are dropped.

        Raises:
            duckdb.Error: PostgreSQL does not accept them; then it has none of them.
        """
        changes = tuple(changes)
        with self._transaction():
            for change in changes:
                self._write(change)
            for name in sorted(gone):
                self._con.execute(f"DROP TABLE {_qualified(name)}")
        for change in changes:
            self._con.execute(f"DROP TABLE {change.staged}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._con.execute("BEGIN")
        try:
            yield
            self._con.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):
                self._con.execute("ROLLBACK")
            raise

    def _write(self, change: Change) -> None:
        name = _qualified(change.table.name)
        if change.is_new:
            columns = (f"{identifier(c.name)} {c.type}" for c in change.table.columns)
            self._con.execute(f"DROP TABLE IF EXISTS {name}")
            self._con.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
        else:
            self._execute(f"DELETE FROM {{}} WHERE {_in_ranges(change)}", change.table)
        self._con.execute(f"INSERT INTO {name} SELECT * FROM {change.staged}")
        if change.is_new:
            self._index(change.table)

    def _index(self, table: Table) -> None:
        """Indexes for the ranges of the mirror, and those that `polynya indexes` recommends."""
        if table.key not in KEYS:
            return
        names = {column.name for column in table.columns}
        self._execute(f"CREATE INDEX ON {{}} ({identifier(table.key)})", table)
        if {"table_id", "data_file_id"} <= names:
            self._execute("CREATE INDEX ON {} (table_id, data_file_id)", table)
        self._execute("ANALYZE {}", table)

    def _execute(self, sql: str, table: Table) -> None:
        """Send one of PostgreSQL's own statements, with the table for `{}`."""
        statement = sql.format(f"{identifier(SCHEMA)}.{identifier(table.name)}")
        self._con.execute("CALL postgres_execute(?, ?)", [TARGET, statement])


def _qualified(table: str) -> str:
    return f"{TARGET}.{SCHEMA}.{identifier(table)}"


def _in_ranges(change: Change) -> str:
    key = change.table.key
    return "true" if key is None else " OR ".join(_in_range(key, n) for n in change.ranges)


def _in_range(key: str, number: int) -> str:
    id_ = identifier(key)
    if number == NO_ID:
        return f"{id_} IS NULL OR {id_} < 0"
    return f"{id_} BETWEEN {number * SPAN} AND {number * SPAN + SPAN - 1}"
