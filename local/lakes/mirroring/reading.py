"""Reads the tables of a catalog, and finds what has changed since the last time."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

from duckdb import DuckDBPyConnection

from ...clients.duckdb_connection import confine, connect, interruptible
from .source import Catalog, Digests, Staged, State
from .tables import Renamed, Table


@dataclass(frozen=True, slots=True)
class Described:
    """The lakes in a catalog's database."""

    data_paths: Mapping[str, str]
    """The data path of each, by the schema that has its tables."""


def described(catalog: Catalog) -> Described:
    """The lakes in a catalog's database. A signal ends it.

    Raises:
        Misconfigured: something in it is no table.
        duckdb.Error, sqlite3.Error, pg8000.exceptions.Error, OSError: it cannot be read.
    """
    con = connected(catalog)

    def describe() -> Described:
        with closing(con), catalog.attached(con) as state:
            return Described(state.data_paths())

    return interruptible(con, describe)


def connected(catalog: Catalog, temp_directory: str | None = None) -> DuckDBPyConnection:
    """A DuckDB that can read a catalog, and no other file."""
    con = connect()
    # Arrays of objects have texts: DuckDB does not guess from the first of them.
    con.execute("SET GLOBAL pandas_analyze_sample = 0")
    if temp_directory is not None:
        con.execute("SET temp_directory = ?", [temp_directory])
    if catalog.files:
        confine(con, catalog.files)
    return con


@dataclass(frozen=True, slots=True)
class Copied:
    """What the mirror has of a table."""

    table: Table
    digests: Digests


@dataclass(frozen=True, slots=True)
class Change:
    """What has to become of a table."""

    table: Table
    is_new: bool
    """Whether the mirror has no such table, or one with other columns."""
    ranges: tuple[int, ...]
    """The ranges that differ."""
    staged: Staged
    """All rows of these ranges."""


def contents(state: State, schema: str, renamed: Renamed | None) -> dict[str, Copied]:
    """All tables of a lake, by their names.

    Args:
        schema: where they are.
        renamed: what becomes of locations; None: they stay.
    """
    tables = state.tables(schema, renamed)
    return {table.name: Copied(table, state.digests(schema, table)) for table in tables}


def changes(
    state: State, schema: str, new: Mapping[str, Copied], old: Mapping[str, Copied]
) -> list[Change]:
    """The changes from `old` to `new`, which are the contents of the state.

    Raises:
        Misconfigured: PostgreSQL cannot hold a text of them.
    """
    staged = []
    for number, (name, copied) in enumerate(new.items()):
        before = old.get(name)
        is_new = before is None or before.table.shape != copied.table.shape
        digests = {} if before is None or is_new else before.digests
        ranges = _differing(digests, copied.digests)
        if ranges or is_new:
            rows = state.stage(schema, copied.table, None if is_new else ranges, f"staged_{number}")
            staged.append(Change(copied.table, is_new, ranges, rows))
    return staged


def _differing(old: Digests, new: Digests) -> tuple[int, ...]:
    return tuple(sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n)))
