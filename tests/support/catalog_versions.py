"""Catalogs of other versions: real old ones, and a migration to 1.1 and back.

No package on PyPI has a DuckLake extension that writes 1.1, so `to_1_1` does what its own
migration does (`ALTER`s by `MigrateV10` in ducklake_metadata_manager.cpp, and what the release of
2026-10-21 adds). `to_1_0` takes a catalog back, so that DuckDB 1.5.5 reads what was written.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

import boto3
from pg8000.native import Connection, identifier
from polynya_local.clients.lakes import Lake

OLD = Path(__file__).parents[1] / "lakes" / "old"
BUCKET = "lakes"
NUMBERS = count(1)
WRITTEN = sorted(folder.name for folder in OLD.iterdir() if (folder / "catalog.sql").exists())

ADDED_COLUMNS = (
    ("ducklake_data_file", "row_group_count", "BIGINT"),
    ("ducklake_delete_file", "row_group_count", "BIGINT"),
    ("ducklake_file_column_stats", "min_is_exact", "BOOLEAN"),
    ("ducklake_file_column_stats", "max_is_exact", "BOOLEAN"),
    ("ducklake_table_column_stats", "min_is_exact", "BOOLEAN"),
    ("ducklake_table_column_stats", "max_is_exact", "BOOLEAN"),
    ("ducklake_schema", "parent_schema_id", "BIGINT"),
)
VIEW_COLUMN_TAG = """
CREATE TABLE ducklake_view_column_tag(view_id BIGINT, column_name VARCHAR, begin_snapshot BIGINT,
  end_snapshot BIGINT, key VARCHAR, value VARCHAR)"""
# Columns of inlined rows; the tables of inlined deletes keep their column names.
RENAMED = ("row_id", "begin_snapshot", "end_snapshot")
SET_VERSION = "UPDATE ducklake_metadata SET value = :version WHERE key = 'version'"

VERSIONS = ("1.0", "1.1")


def restored(name: str, suffix: str, server, s3_endpoint: str) -> Lake:
    """Restores an old catalog into an empty database, and puts its files again, unchanged."""
    s3 = boto3.client("s3", endpoint_url=s3_endpoint)
    files = OLD / name / "files"
    for file in filter(Path.is_file, files.rglob("*")):
        s3.put_object(
            Bucket=BUCKET, Key=f"old-{name}/{file.relative_to(files)}", Body=file.read_bytes()
        )
    database = server.create_database(f"old-{name}{suffix}-{next(NUMBERS)}")
    con = database.connect()
    con.run((OLD / name / "catalog.sql").read_text())
    con.close()
    return Lake(f"old-{name}{suffix}", database, f"s3://{BUCKET}/old-{name}")


def catalog_of(lake: Lake) -> Connection:
    con = lake.database.connect()
    con.run(f"SET search_path TO {identifier(lake.metadata_schema)}")
    return con


def to_1_1(lake: Lake) -> None:
    """Turn a lake of version 1.0 into one of 1.1, as AUTOMATIC_MIGRATION does."""
    con = catalog_of(lake)
    statements = [
        f"ALTER TABLE {identifier(table)} RENAME COLUMN {name} TO _ducklake_{name}"
        for (table,) in con.run(INLINED_TABLES)
        for name in RENAMED
    ]
    statements += [
        f"ALTER TABLE {t} ADD COLUMN {column} {type}" for t, column, type in ADDED_COLUMNS
    ]
    _migrate(con, [*statements, VIEW_COLUMN_TAG], "1.1")


def to_1_0(lake: Lake) -> None:
    """Take a lake of version 1.1 back to 1.0, where nothing is used that only 1.1 has.

    Raises:
        AssertionError: the lake has nested schemas.
    """
    con = catalog_of(lake)
    nested = con.run("SELECT schema_name FROM ducklake_schema WHERE parent_schema_id IS NOT NULL")
    assert not nested, f"a catalog of 1.0 cannot have nested schemas: {nested}"
    statements = [
        f"ALTER TABLE {identifier(table)} RENAME COLUMN _ducklake_{name} TO {name}"
        for (table,) in con.run(INLINED_TABLES)
        for name in RENAMED
    ]
    statements += [
        f"ALTER TABLE {table} DROP COLUMN {column}" for table, column, _ in ADDED_COLUMNS
    ]
    _migrate(con, [*statements, "DROP TABLE ducklake_view_column_tag"], "1.0")


INLINED_TABLES = """
SELECT i.table_name FROM ducklake_inlined_data_tables AS i
WHERE to_regclass(quote_ident(i.table_name)) IS NOT NULL"""


def _migrate(con: Connection, statements: list[str], version: str) -> None:
    """Run statements in one transaction, which ends if a reader has the tables open."""
    con.run("BEGIN")
    con.run("SET LOCAL lock_timeout = '10s'")
    con.run(f"DO $do$ BEGIN {'; '.join(statements)}; END $do$")
    con.run(SET_VERSION, version=version)
    con.run("COMMIT")
    con.close()


class ServedVersion:
    """The version that a lake has while Iceberg clients use it; otherwise it has version 1.0.

    No released extension for DuckDB 1.5.5 knows version 1.1: between two operations of clients the
    catalog is taken back, and native DuckLake reads, changes and maintains what they wrote.
    """

    def __init__(self) -> None:
        self.version = "1.0"
        self._lock = RLock()
        self._users: Counter[str] = Counter()

    @contextmanager
    def of(self, lake: Lake) -> Iterator[None]:
        """Give a lake this version for the duration of the block."""
        if self.version == "1.0":
            yield
            return
        key = f"{lake.database.url} {lake.metadata_schema}"
        with self._lock:
            self._users[key] += 1
            if self._users[key] == 1:
                to_1_1(lake)
        try:
            yield
        finally:
            with self._lock:
                self._users[key] -= 1
                if not self._users[key]:
                    to_1_0(lake)

    def beside(self, lake: Lake, handler: Callable[..., Any]) -> Callable[..., Any]:
        """A handler of requests for which the lake has this version."""

        @wraps(handler)
        def handle(*arguments: Any) -> Any:
            with self.of(lake):
                return handler(*arguments)

        return handle


SERVED = ServedVersion()
"""That of the test that runs: see tests/e2e/writes/conftest.py."""
