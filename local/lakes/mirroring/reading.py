"""Reads the tables of a catalog in DuckDB, and finds what has changed since the last time."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import duckdb
from duckdb import DuckDBPyConnection
from polynya.errors import Misconfigured

from ...clients.duckdb_connection import confine, connect, interruptible
from . import nul
from .catalogs import SOURCE, Catalog, qualified
from .tables import INLINED_ROWS, Renamed, Table, inlined_table, metadata_table

TABLES = """
SELECT table_name, column_name, data_type FROM duckdb_columns()
WHERE database_name = ? AND schema_name = ? AND starts_with(table_name, 'ducklake_')
ORDER BY table_name, column_index"""

LAKES = """
SELECT schema_name FROM duckdb_tables()
WHERE database_name = ? AND table_name = 'ducklake_metadata' ORDER BY 1"""

DIGESTS = """
SELECT number, count(*), bit_xor(digest), sum(digest)
FROM (SELECT {number} AS number, {digest} AS digest FROM {table}) GROUP BY number"""

DATA_PATH = "SELECT value FROM {table} WHERE key = 'data_path'{scope}"

STAGE = "CREATE OR REPLACE TEMP TABLE {staged} AS SELECT {select} FROM {rows}"


@dataclass(frozen=True, slots=True)
class Described:
    """The lakes in a catalog's database."""

    data_paths: Mapping[str, str]
    """The data path of each, by the schema that has its tables."""


def described(catalog: Catalog) -> Described:
    """The lakes in a catalog's database. A signal ends it.

    Raises:
        Misconfigured: as `check_tables`.
        duckdb.Error: it cannot be read.
        RuntimeError: an extension is not installed.
    """
    con = connect(catalog.extensions)
    if catalog.files:
        confine(con, catalog.files)

    def describe() -> Described:
        with closing(con):
            con.execute(catalog.attach)
            check_tables(con, catalog)
            schemas = [name for [name] in con.execute(LAKES, [SOURCE]).fetchall()]
            return Described({name: _data_path(con, name) for name in schemas})

    return interruptible(con, describe)


def check_tables(con: DuckDBPyConnection, catalog: Catalog) -> None:
    """Raise if reading the attached catalog would run what somebody wrote into its file.

    A view can read any file of this machine, and need not end.

    Raises:
        Misconfigured: it would; with the name of what is no table.
    """
    if catalog.computed and (computed := con.execute(catalog.computed).fetchall()):
        name, kind = computed[0]
        raise Misconfigured(
            f"{name} in {catalog.name} is {kind}: DuckLake keeps its catalog in plain tables, and "
            "Polynya reads nothing else, because a file from somebody else could run queries on "
            "this machine. If you made it, replace it by a table with its rows"
        )


def _data_path(con: DuckDBPyConnection, schema: str) -> str:
    table = qualified(schema, "ducklake_metadata")
    columns = {name for name, *_ in con.execute(f"DESCRIBE {table}").fetchall()}
    # The first versions have no options of a schema or a table.
    scope = " AND scope IS NULL" if "scope" in columns else ""
    rows = con.execute(DATA_PATH.format(table=table, scope=scope)).fetchall()
    return str(rows[0][0]) if rows else ""


@dataclass(frozen=True, slots=True)
class Copied:
    """What the mirror has of a table."""

    table: Table
    digests: Mapping[int, tuple[Any, ...]]
    """The number of rows of each range, and two sums of their hashes."""


@dataclass(frozen=True, slots=True)
class Change:
    """What has to become of a table."""

    table: Table
    is_new: bool
    """Whether the mirror has no such table, or one with other columns."""
    ranges: tuple[int, ...]
    """The ranges that differ."""
    staged: str
    """The temporary table with all rows of these ranges."""


class CatalogReader:
    """Reads one catalog, which is attached only while it is read: a file is locked meanwhile."""

    def __init__(
        self,
        con: DuckDBPyConnection,
        catalog: Catalog,
        schema: str,
        renamed: Renamed | None,
    ) -> None:
        """Open nothing yet.

        Args:
            schema: where the catalog's tables are.
            renamed: what becomes of locations; None: they stay.
        """
        self._con, self._catalog, self._schema, self._renamed = con, catalog, schema, renamed

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Attach the catalog for the block, which sees one state of it.

        Raises:
            Misconfigured: as `check_tables`.
            duckdb.Error: it cannot be opened.
        """
        self._con.execute(self._catalog.attach)
        try:
            self._con.execute("BEGIN")
            check_tables(self._con, self._catalog)
            yield
            self._con.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):
                self._con.execute("ROLLBACK")
            raise
        finally:
            self._con.execute(f"DETACH {SOURCE}")

    def contents(self) -> dict[str, Copied]:
        """All tables of the attached catalog, by their names."""
        return {table.name: self._digested(table) for table in self._tables()}

    def staged(self, found: Mapping[str, Copied], known: Mapping[str, Copied]) -> list[Change]:
        """The changes from `known` to `found`, which is the attached catalog.

        Raises:
            Misconfigured: PostgreSQL cannot hold a text of them.
        """
        changes = []
        for number, (name, copied) in enumerate(found.items()):
            if change := _change(copied, known.get(name), f"staged_{number}"):
                self._stage(change)
                changes.append(change)
        return changes

    def _tables(self) -> list[Table]:
        found: dict[str, list[tuple[str, str]]] = {}
        for table, column, type_ in self._con.execute(TABLES, [SOURCE, self._schema]).fetchall():
            found.setdefault(table, []).append((column, type_))
        types = self._catalog.inlined_types(self._con, self._schema)
        return [
            inlined_table(name, columns, dict(columns) | dict(types.get(name, {})))
            if INLINED_ROWS.fullmatch(name)
            else metadata_table(name, columns, self._renamed)
            for name, columns in found.items()
        ]

    def _digested(self, table: Table) -> Copied:
        sql = DIGESTS.format(
            number=table.range_number,
            digest=table.digest,
            table=qualified(self._schema, table.name),
        )
        rows = self._con.execute(sql).fetchall()
        return Copied(table, {number: tuple(digest) for number, *digest in rows})

    def _stage(self, change: Change) -> None:
        table = change.table
        if change.is_new:
            rows, where, ranges = qualified(self._schema, table.name), "", []
        else:
            rows = self._catalog.rows(self._schema, table, table.between(change.ranges))
            where, ranges = f" WHERE list_contains(?, {table.range_number})", [list(change.ranges)]
        sql = STAGE.format(staged=change.staged, select=table.select, rows=rows)
        self._con.execute(sql + where, ranges)
        nul.check(self._con, self._schema, table, change.staged)


def _change(copied: Copied, known: Copied | None, staged: str) -> Change | None:
    is_new = known is None or known.table.shape != copied.table.shape
    old = {} if known is None or is_new else known.digests
    new = copied.digests
    ranges = tuple(sorted(n for n in old.keys() | new.keys() if old.get(n) != new.get(n)))
    return Change(copied.table, is_new, ranges, staged) if ranges or is_new else None
