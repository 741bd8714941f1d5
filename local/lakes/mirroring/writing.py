"""Writes what has changed into the mirror's PostgreSQL, in one transaction."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from pg8000.exceptions import Error as PostgresError
from pg8000.native import Connection

from ...clients.duckdb_connection import identifier
from ...processes.postgres import Database
from .reading import Change
from .tables import KEYS, NO_ID, POSTGRES_TYPES, SPAN, Table

SCHEMA = "public"


class MirrorWriter:
    """Writes to one PostgreSQL database that nothing else writes to."""

    def __init__(self, target: Database) -> None:
        """Connect to the database."""
        self._con: Connection = target.connect()

    def write(self, changes: Iterable[Change], gone: Iterable[str]) -> None:
        """Make the changes, and drop their staged rows.

        Args:
            gone: the tables that are dropped.

        Raises:
            pg8000.exceptions.Error: PostgreSQL does not accept them; then it has none of them.
        """
        changes = tuple(changes)
        with self._transaction():
            for change in changes:
                self._write(change)
            for name in sorted(gone):
                self._con.run(f"DROP TABLE {_qualified(name)}")
        for change in changes:
            change.staged.drop()

    def close(self) -> None:
        """Close the connection."""
        with suppress(PostgresError, OSError):  # it is gone already
            self._con.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._con.run("BEGIN")
        try:
            yield
            self._con.run("COMMIT")
        except BaseException:
            with suppress(PostgresError, OSError):
                self._con.run("ROLLBACK")
            raise

    def _write(self, change: Change) -> None:
        name = _qualified(change.table.name)
        if change.is_new:
            columns = (
                f"{identifier(c.name)} {POSTGRES_TYPES.get(c.type, c.type)}"
                for c in change.table.columns
            )
            self._con.run(f"DROP TABLE IF EXISTS {name}")
            self._con.run(f"CREATE TABLE {name} ({', '.join(columns)})")
        else:
            self._con.run(f"DELETE FROM {name} WHERE {_in_ranges(change)}")
        self._con.run(f"COPY {name} FROM STDIN", stream=change.staged.chunks())
        if change.is_new:
            self._index(change.table)

    def _index(self, table: Table) -> None:
        """Indexes for the ranges of the mirror, and those that `polynya indexes` recommends."""
        if table.key not in KEYS:
            return
        name = _qualified(table.name)
        names = {column.name for column in table.columns}
        self._con.run(f"CREATE INDEX ON {name} ({identifier(table.key)})")
        if {"table_id", "data_file_id"} <= names:
            self._con.run(f"CREATE INDEX ON {name} (table_id, data_file_id)")
        self._con.run(f"ANALYZE {name}")


def _qualified(table: str) -> str:
    return f"{identifier(SCHEMA)}.{identifier(table)}"


def _in_ranges(change: Change) -> str:
    key = change.table.key
    return "true" if key is None else " OR ".join(_in_range(key, n) for n in change.ranges)


def _in_range(key: str, number: int) -> str:
    id_ = identifier(key)
    if number == NO_ID:
        return f"{id_} IS NULL OR {id_} < 0"
    return f"{id_} BETWEEN {number * SPAN} AND {number * SPAN + SPAN - 1}"
