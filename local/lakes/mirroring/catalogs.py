"""The catalogs that are mirrored: how DuckDB attaches each, and which types its rows have."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from duckdb import DuckDBPyConnection
from polynya.translate.inlined.rows import SOURCE_TYPES

from ...clients.duckdb_connection import identifier, literal
from ..address import Address, DuckDBLake, PostgresLake, SQLiteLake
from ..conninfo import for_libpq
from .fingerprints import (
    DuckDBFingerprint,
    Fingerprint,
    PostgresFingerprint,
    SQLiteFingerprint,
)
from .tables import INLINED_ROWS, Table

SOURCE = "source"
"""The name under which DuckDB attaches a catalog."""

Types = Mapping[str, Mapping[str, str]]
"""DuckDB's types of the user's columns, by table of inlined rows and by column."""


DUCKDB_LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")
SQLITE_LOGS = ("-wal", "-shm", "-journal")

# Without names and texts, a definition has these words only if a column is generated.
COMPUTED_IN_DUCKDB = rf"""
SELECT view_name, 'a view' FROM duckdb_views()
WHERE database_name = '{SOURCE}' AND starts_with(lower(view_name), 'ducklake_')
UNION ALL
SELECT table_name, 'a table with generated columns' FROM duckdb_tables()
WHERE database_name = '{SOURCE}' AND starts_with(lower(table_name), 'ducklake_')
  AND regexp_matches(
    regexp_replace(sql, '"(""|[^"])*"|''(''''|[^''])*''', '', 'g'), '(?i)\bgenerated\s+always\b')
ORDER BY ALL"""

# A virtual table has no page of its own. The columns of a view are not asked for: SQLite would
# have to know its functions.
COMPUTED_IN_SQLITE = """
SELECT name, CASE
  WHEN type = 'view' THEN 'a view'
  WHEN rootpage = 0 THEN 'a virtual table'
  ELSE 'a table with generated columns' END
FROM sqlite_master AS m
WHERE type IN ('table', 'view') AND name LIKE 'ducklake!_%' ESCAPE '!' AND CASE
  WHEN type = 'view' OR rootpage = 0 THEN true
  ELSE (SELECT max(hidden) FROM pragma_table_xinfo(m.name)) > 0 END
ORDER BY 1"""


class Catalog(Protocol):
    """A catalog that is no PostgreSQL, or one whose locations are rewritten."""

    name: str
    """What a message calls it."""
    default_schema: str
    extensions: tuple[str, ...]
    """DuckDB's extensions that reading it needs."""
    attach: str
    """SQL that attaches it, read-only."""
    files: tuple[Path, ...]
    """All files that DuckDB may open to read it; none: it is no file, and whoever runs the database
    decides what its tables are."""
    computed: str
    """SQL of what is in the place of a table and is computed when it is read: its name, and what
    it is; for a catalog in a file."""

    def fingerprint(self) -> Fingerprint:
        """Equal ones mean equal contents. Raises: whatever reading it raises."""

    def inlined_types(self, con: DuckDBPyConnection, schema: str) -> Types:
        """The types of inlined columns, where those that the catalog stores are others."""

    def rows(self, schema: str, table: Table, condition: str) -> str:
        """SQL of the rows of a table that meet a condition, for FROM."""

    def close(self) -> None:
        """Close what the fingerprint has opened."""


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
    extensions: tuple[str, ...] = ()
    computed = COMPUTED_IN_DUCKDB

    def __init__(self, file: Path) -> None:
        self.name = str(file)
        path = file.absolute()
        self.attach = f"ATTACH {literal(str(path))} AS {SOURCE} (TYPE duckdb, READ_ONLY)"
        self.files = (path, *(path.with_name(path.name + end) for end in DUCKDB_LOGS))
        self._fingerprint = DuckDBFingerprint(file)
        self.fingerprint = self._fingerprint.now
        self.close = self._fingerprint.close

    def inlined_types(self, con: DuckDBPyConnection, schema: str) -> Types:
        """None: DuckDB has all types."""
        return {}

    def rows(self, schema: str, table: Table, condition: str) -> str:
        """DuckDB skips row groups by their smallest and largest values."""
        return _where(schema, table, condition)


class SQLiteCatalog:
    """A file of SQLite, which has numbers, texts and blobs only."""

    default_schema = "main"
    extensions: tuple[str, ...] = ("sqlite_scanner",)
    computed = f"SELECT * FROM sqlite_query({literal(SOURCE)}, {literal(COMPUTED_IN_SQLITE)})"

    def __init__(self, file: Path) -> None:
        self.name = str(file)
        path = file.absolute()
        self.attach = f"ATTACH {literal(str(path))} AS {SOURCE} (TYPE sqlite, READ_ONLY)"
        self.files = (path, *(path.with_name(path.name + end) for end in SQLITE_LOGS))
        self._fingerprint = SQLiteFingerprint(file)
        self.fingerprint = self._fingerprint.now
        self.close = self._fingerprint.close

    def inlined_types(self, con: DuckDBPyConnection, schema: str) -> Types:
        """Those of DuckLake's columns of the same name when the table was made."""
        found: dict[str, dict[str, str]] = {}
        for table, column, type_ in con.execute(COLUMNS_OF_INLINED_TABLES).fetchall():
            found.setdefault(table, {})[column] = duckdb_type(type_)
        return found

    def rows(self, schema: str, table: Table, condition: str) -> str:
        """SQLite selects rows of DuckLake's own tables: DuckDB's scan would read all columns of all
        rows. As text, because types of a query are not those of its table."""
        if INLINED_ROWS.fullmatch(table.name):
            return _where(schema, table, condition)
        names = [identifier(column.name) for column in table.columns]
        texts = ", ".join(f"CAST({name} AS TEXT) AS {name}" for name in names)
        sql = f"SELECT {texts} FROM {identifier(table.name)} WHERE {condition}"
        rows = f"sqlite_query({literal(SOURCE)}, {literal(sql)})"
        if table.key is None:
            return rows
        key = identifier(table.key)
        return f"(SELECT * REPLACE (CAST({key} AS BIGINT) AS {key}) FROM {rows})"


class PostgresCatalog:
    """A PostgreSQL whose data is in a local folder, or elsewhere than the catalog says."""

    name = "the catalog database"
    default_schema = "public"
    extensions: tuple[str, ...] = ("postgres_scanner",)
    files: tuple[Path, ...] = ()
    computed = ""

    def __init__(self, url: str) -> None:
        self.attach = f"ATTACH {literal(for_libpq(url))} AS {SOURCE} (TYPE postgres, READ_ONLY)"
        self._fingerprint = PostgresFingerprint(url)
        self.fingerprint = self._fingerprint.now
        self.close = self._fingerprint.close

    def inlined_types(self, con: DuckDBPyConnection, schema: str) -> Types:
        """The stored ones: a text is a text here, and a blob is a blob."""
        sql = (
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = ? AND schema_name = ?"
        )
        found: dict[str, dict[str, str]] = {}
        for table, column, type_ in con.execute(sql, [SOURCE, schema]).fetchall():
            # A VARCHAR of DuckLake is a blob here; what is a VARCHAR here stays one.
            found.setdefault(table, {})[column] = "TEXT" if type_ == "VARCHAR" else type_
        return found

    def rows(self, schema: str, table: Table, condition: str) -> str:
        """DuckDB lets PostgreSQL select them."""
        return _where(schema, table, condition)


# The column may have been promoted, or another one may have its name by now: the one is taken that
# was visible when the snapshot was made that has the table's schema version.
COLUMNS_OF_INLINED_TABLES = f"""
SELECT i.table_name, c.column_name,
  arg_max(c.column_type, (
    (c.begin_snapshot <= v.made_at AND coalesce(c.end_snapshot > v.made_at, true))::INTEGER,
    c.begin_snapshot))
FROM {SOURCE}.ducklake_inlined_data_tables AS i
JOIN {SOURCE}.ducklake_column AS c ON c.table_id = i.table_id AND c.parent_column IS NULL
LEFT JOIN (
  SELECT t.table_name, min(s.snapshot_id) AS made_at
  FROM {SOURCE}.ducklake_inlined_data_tables AS t
  JOIN {SOURCE}.ducklake_snapshot AS s ON s.schema_version >= t.schema_version
  GROUP BY 1) AS v ON v.table_name = i.table_name
GROUP BY 1, 2"""

NESTED = "STRUCT()"
"""Stands for any nested type: its values are there as text."""


def duckdb_type(column_type: str) -> str:
    """DuckDB's type of a column, from DuckLake's name of it."""
    found = re.fullmatch(r"decimal\((\d+), ?(\d+)\)", column_type, re.IGNORECASE)
    if found:
        return f"DECIMAL({found[1]},{found[2]})"
    return SOURCE_TYPES.get(column_type, NESTED)


def _where(schema: str, table: Table, condition: str) -> str:
    return f"(SELECT * FROM {qualified(schema, table.name)} WHERE {condition})"


def qualified(schema: str, table: str) -> str:
    """A table of the attached catalog."""
    return f"{SOURCE}.{identifier(schema)}.{identifier(table)}"
