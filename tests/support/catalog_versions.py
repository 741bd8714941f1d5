"""Catalogs of other versions: real old ones, and a migration to 1.1 and back.

No package on PyPI has a DuckLake extension that writes 1.1, so `to_1_1` does what its own
migration does (`MigrateV10` in ducklake_metadata_manager.cpp, `MigrateInlinedDataTypes` in
postgres_metadata_manager.cpp, and the repairs that the documentation of 1.1 names). `to_1_0` takes
a catalog back, so that DuckDB 1.5.5 reads what was written.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from functools import wraps
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

import boto3
import pytest
from pg8000.native import Connection, DatabaseError, identifier
from polynya.commits.write import partition_ids
from polynya.ducklake.directories import directory_kind
from polynya.ducklake.writes import partitionings
from polynya_local.clients.native import Lake
from tenacity import retry, retry_if_exception, stop_after_attempt

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

# What DuckLake 0.3 stored in a type of PostgreSQL, and 1.0 and 1.1 store otherwise: the column's
# type in DuckLake (None: any), the stored one, the new one, and the value in it.
DUCKDB_DATE = r"regexp_replace({0}::text, '^(\S+)(.*) BC$', '\1 (BC)\2')"
STORED_TYPES = (
    ("varchar", "character varying", "bytea", "convert_to({0}, 'UTF8')"),
    (None, "date", "character varying", DUCKDB_DATE),
    (None, "timestamp without time zone", "character varying", DUCKDB_DATE),
    (None, "timestamp with time zone", "character varying", DUCKDB_DATE),
)
INLINED_COLUMNS = """
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), (
  SELECT c.column_type FROM ducklake_column AS c
  WHERE c.table_id = i.table_id AND c.column_name = a.attname AND c.parent_column IS NULL
    AND c.begin_snapshot <= s.made_at AND (c.end_snapshot IS NULL OR c.end_snapshot > s.made_at))
FROM ducklake_inlined_data_tables AS i JOIN pg_attribute AS a ON a.attrelid = to_regclass(:name)
CROSS JOIN LATERAL (SELECT min(snapshot_id) AS made_at FROM ducklake_snapshot
  WHERE schema_version >= i.schema_version) AS s
WHERE i.table_name = :table AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
# A table of inlined rows that is made at an INSERT has none; which snapshot the release writes is
# not known, and in this one the table has the same columns as in all others of the version.
MISSING_VERSIONS = """
INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id)
SELECT min(s.snapshot_id), i.schema_version, i.table_id
FROM ducklake_inlined_data_tables AS i
JOIN ducklake_snapshot AS s ON s.schema_version = i.schema_version
JOIN ducklake_table AS t ON t.table_id = i.table_id AND s.snapshot_id >= t.begin_snapshot
WHERE NOT EXISTS (SELECT 1 FROM ducklake_schema_versions AS v
  WHERE v.table_id = i.table_id AND v.schema_version = i.schema_version)
GROUP BY i.table_id, i.schema_version"""
SET_VERSION = "UPDATE ducklake_metadata SET value = :version WHERE key = 'version'"

VERSIONS = ("1.0", "1.1")
IN_VERSION = re.compile(r"in 1[.][01]-?")
"""What ids say of the version that a lake has while clients commit to it."""


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


def _is_deadlock(error: BaseException) -> bool:
    return isinstance(error, DatabaseError) and error.args[0].get("C") == "40P01"


# A reader takes its tables in another order than a migration, and PostgreSQL may end either.
repeated_after_deadlock = retry(
    retry=retry_if_exception(_is_deadlock), stop=stop_after_attempt(10), reraise=True
)


@repeated_after_deadlock
def to_1_1(lake: Lake) -> None:
    """Turn a lake of version 1.0 into one of 1.1, as AUTOMATIC_MIGRATION does."""
    con = catalog_of(lake)
    tables = [table for (table,) in con.run(INLINED_TABLES)]
    statements = [
        f"ALTER TABLE {identifier(table)} RENAME COLUMN {name} TO _ducklake_{name}"
        for table in tables
        for name in RENAMED
    ]
    statements += [
        f"ALTER TABLE {t} ADD COLUMN {column} {type}" for t, column, type in ADDED_COLUMNS
    ]
    with _migration(con, [*statements, VIEW_COLUMN_TAG], "1.1"):
        for table in tables:
            _store_as_1_1(con, table)
        con.run(MISSING_VERSIONS)


def _store_as_1_1(con: Connection, table: str) -> None:
    """Write a table of inlined rows again if the stored types of its columns change."""
    name = identifier(table)
    columns, values = [], []
    for column, stored, column_type in con.run(INLINED_COLUMNS, table=table, name=name):
        type, value = stored, "{0}"
        for of_column, before, after, converted in STORED_TYPES:
            if stored == before and of_column in (None, column_type):
                type, value = after, converted
        columns.append((identifier(column), stored, type))
        values.append(value.format(identifier(column)))
    if all(stored == type for _, stored, type in columns):
        return
    migrated = identifier(f"{table}_migrated")
    con.run("SET LOCAL timezone = 'UTC'")
    con.run(f"CREATE TABLE {migrated} ({', '.join(f'{c} {type}' for c, _, type in columns)})")
    con.run(f"INSERT INTO {migrated} SELECT {', '.join(values)} FROM {name}")
    con.run(f"DROP TABLE {name}")
    con.run(f"ALTER TABLE {migrated} RENAME TO {name}")


@repeated_after_deadlock
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
    with _migration(con, [*statements, "DROP TABLE ducklake_view_column_tag"], "1.0"):
        to_calendar(con)
        _put_apart(con)


INLINED_TABLES = """
SELECT i.table_name FROM ducklake_inlined_data_tables AS i
WHERE to_regclass(quote_ident(i.table_name)) IS NOT NULL"""


# PostgreSQL counts the columns that were dropped, and a table has at most 1,600.
WORN_TABLES = """
SELECT DISTINCT a.attrelid::regclass::text
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relkind = 'r'
  AND a.attnum > 1500"""


def _write_again(con: Connection, table: str) -> None:
    """Write a table again, without the columns that were dropped."""
    con.run(f"CREATE TABLE written_again (LIKE {table} INCLUDING ALL)")
    con.run(f"INSERT INTO written_again SELECT * FROM {table}")
    con.run(f"DROP TABLE {table}")
    con.run(f"ALTER TABLE written_again RENAME TO {table}")


@contextmanager
def _migration(con: Connection, statements: list[str], version: str) -> Iterator[None]:
    """Run statements and the block in one transaction, which ends if a reader has a table open."""
    with closing(con):
        con.run("BEGIN")
        con.run("SET LOCAL lock_timeout = '10s'")
        for (name,) in con.run(WORN_TABLES):
            _write_again(con, name)
        con.run(f"DO $do$ BEGIN {'; '.join(statements)}; END $do$")
        yield
        con.run(SET_VERSION, version=version)
        con.run("COMMIT")


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
"""That of the test that runs: its parameter `served_version`."""


def parametrize_versions(metafunc: Any, usual: tuple[str, ...], **options: Any) -> None:
    """Run a test once in each version of its mark `versions`, or else in the usual ones.

    CI has the first one, `make test-slow` the other one, too. A test in 1.0 alone has no parameter.
    """
    mark = metafunc.definition.get_closest_marker("versions")
    versions = mark.args if mark else usual
    assert versions and {*versions} <= {*VERSIONS}, versions
    if versions == VERSIONS[:1]:
        return
    values = [
        pytest.param(version, id=f"in {version}", marks=[pytest.mark.slow] if number else [])
        for number, version in enumerate(versions)
    ]
    metafunc.parametrize("served_version", values, indirect=True, **options)


# Those of a spec without keys may be in the partitioning of another kind of directories already.
CLIENT_FILES = """
SELECT f.table_id, f.partition_id, f.data_file_id, f.path, (
  SELECT array_agg(v.partition_value ORDER BY v.partition_key_index)
  FROM ducklake_file_partition_value AS v WHERE v.data_file_id = f.data_file_id)
FROM ducklake_data_file AS f JOIN ducklake_partition_info AS i USING (partition_id, table_id)
WHERE f.path !~ '(^|/)ducklake-[^/]*$' AND (i.begin_snapshot <> coalesce(i.end_snapshot, -1)
  OR NOT EXISTS (SELECT FROM ducklake_partition_column AS c WHERE c.partition_id = i.partition_id))
ORDER BY 3"""


class _Newest:
    """The newest snapshot, as one that is being written."""

    def __init__(self, con: Connection) -> None:
        self.con = con
        [[self.snapshot_id]] = con.run("SELECT max(snapshot_id) FROM ducklake_snapshot")

    def catalog_id(self) -> int:
        [[id_]] = self.con.run(
            "UPDATE ducklake_snapshot SET next_catalog_id = next_catalog_id + 1 "
            "WHERE snapshot_id = :id RETURNING next_catalog_id - 1",
            id=self.snapshot_id,
        )
        return int(id_)


def _put_apart(con: Connection) -> None:
    """Give files of clients a partitioning of their own, as commits to a lake of 1.0 do."""
    newest: Any = _Newest(con)
    for table_id, partition_id, file_id, path, values in con.run(CLIENT_FILES):
        keys = partition_ids.keys_of(newest, table_id, partition_id)
        kind = directory_kind(path, keys, values or ())
        new_id = partition_ids.ensure_partitionings(newest, table_id, partition_id, [kind])[kind]
        partitionings.move(con, [file_id], new_id)


EPOCH_KEYS = """
SELECT partition_id, table_id, partition_key_index, column_id, transform
FROM ducklake_partition_column ORDER BY partition_id, partition_key_index"""
VALUES_OF = """
SELECT v.data_file_id, v.partition_key_index, v.partition_value
FROM ducklake_file_partition_value AS v JOIN ducklake_data_file AS f USING (data_file_id)
WHERE f.partition_id = :partition_id ORDER BY 1, 2"""
DELETE_KEYS = "DELETE FROM ducklake_partition_column WHERE partition_id = :partition_id"
DELETE_VALUES = "DELETE FROM ducklake_file_partition_value WHERE data_file_id = :file_id"
INSERT_KEY = "INSERT INTO ducklake_partition_column VALUES (:p, :t, :n, :column_id, :transform)"
INSERT_VALUE = "INSERT INTO ducklake_file_partition_value VALUES (:file_id, :t, :n, :text)"
PARTS = ("year", "month", "day", "hour")


def to_calendar(con: Connection) -> None:
    """Write partitions that count from 1970 in the way of 1.0: year, month, day, hour."""
    keys: dict[tuple[int, int], list[tuple[int, str]]] = {}
    for partition_id, table_id, _, column_id, transform in con.run(EPOCH_KEYS):
        keys.setdefault((partition_id, table_id), []).append((column_id, transform))
    for (p, t), old in keys.items():
        if not any(transform.startswith("epoch_") for _, transform in old):
            continue
        parts = [_parts(transform) for _, transform in old]
        con.run(DELETE_KEYS, partition_id=p)
        new = [(i, part) for (i, _), of in zip(old, parts, strict=True) for part in of]
        for n, (column_id, transform) in enumerate(new):
            con.run(INSERT_KEY, p=p, t=t, n=n, column_id=column_id, transform=transform)
        files: dict[int, list[str | None]] = {}
        for file_id, _, text in con.run(VALUES_OF, partition_id=p):
            files.setdefault(file_id, []).append(text)
        for file_id, texts in files.items():
            con.run(DELETE_VALUES, file_id=file_id)
            of_keys = [
                one
                for text, (_, name) in zip(texts, old, strict=True)
                for one in calendar_parts(name, text)
            ]
            for n, text in enumerate(of_keys):
                con.run(INSERT_VALUE, file_id=file_id, t=t, n=n, text=text)


def _parts(transform: str) -> list[str]:
    if not transform.startswith("epoch_"):
        return [transform]
    return [*PARTS[: PARTS.index(transform.removeprefix("epoch_")) + 1]]


def calendar_parts(transform: str, text: str | None) -> list[str | None]:
    """The parts of the calendar of a number of years, months, days or hours since 1970."""
    part = transform.removeprefix("epoch_")
    if text is None or not transform.startswith("epoch_"):
        return [text] * len(_parts(transform))
    number = int(text)
    months = {"year": 12, "month": 1}
    if part in months:
        year, month = divmod(number * months[part], 12)
        moment = datetime(1970 + year, month + 1, 1)
    else:
        moment = datetime(1970, 1, 1) + number * timedelta(**{f"{part}s": 1})
    return [str(getattr(moment, one)) for one in _parts(transform)]
