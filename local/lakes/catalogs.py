"""The catalogs that are mirrored, by the kind of their address, and the one in a file of DuckDB."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection

from ...clients.duckdb_connection import literal
from ..address import Address, DuckDBLake, PostgresLake, SQLiteLake
from .fingerprints import DuckDBFingerprint
from .postgres_catalog import PostgresCatalog
from .source import SOURCE, Catalog, DuckDBState, not_a_table
from .sqlite_catalog import SQLiteCatalog

LOGS = (".wal", ".wal.checkpoint", ".wal.recovery")

# Without names and texts, a definition has these words only if a column is generated.
COMPUTED = rf"""
SELECT view_name, 'a view' FROM duckdb_views()
WHERE database_name = '{SOURCE}' AND starts_with(lower(view_name), 'ducklake_')
UNION ALL
SELECT table_name, 'a table with generated columns' FROM duckdb_tables()
WHERE database_name = '{SOURCE}' AND starts_with(lower(table_name), 'ducklake_')
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
        path = file.absolute()
        self.files = (path, *(path.with_name(path.name + end) for end in LOGS))
        self._attach = f"ATTACH {literal(str(path))} AS {SOURCE} (TYPE duckdb, READ_ONLY)"
        self._fingerprint = DuckDBFingerprint(file)
        self.fingerprint = self._fingerprint.now
        self.close = self._fingerprint.close

    @contextmanager
    def attached(self, con: DuckDBPyConnection) -> Iterator[DuckDBState]:
        """As `Catalog.attached`: one transaction of DuckDB."""
        con.execute(self._attach)
        try:
            con.execute("BEGIN")
            if computed := con.execute(COMPUTED).fetchall():
                raise not_a_table(self.name, *computed[0])
            yield DuckDBState(con)
            con.execute("COMMIT")
        except BaseException:
            with suppress(duckdb.Error):
                con.execute("ROLLBACK")
            raise
        finally:
            con.execute(f"DETACH {SOURCE}")

    def interrupt(self) -> None:
        """Nothing: DuckDB runs all statements."""
