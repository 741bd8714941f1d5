"""Catalogs of other versions: real old ones, and a migration to 1.1 and back.

No package on PyPI has a DuckLake extension that writes 1.1, so `to_1_1` does what its own
migration does (`ALTER`s by `MigrateV10` in ducklake_metadata_manager.cpp, and what the release of
2026-10-21 adds). `to_1_0` takes a catalog back, so that DuckDB 1.5.5 reads what was written.
"""

from datetime import datetime, timedelta
from itertools import count
from pathlib import Path

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
    con.run("BEGIN")
    for (table,) in con.run("SELECT table_name FROM ducklake_inlined_data_tables"):
        for name in RENAMED:
            con.run(f"ALTER TABLE {identifier(table)} RENAME COLUMN {name} TO _ducklake_{name}")
    for table, column, type in ADDED_COLUMNS:
        con.run(f"ALTER TABLE {table} ADD COLUMN {column} {type}")
    con.run(VIEW_COLUMN_TAG)
    con.run(SET_VERSION, version="1.1")
    con.run("COMMIT")
    con.close()


def to_1_0(lake: Lake) -> None:
    """Take a lake of version 1.1 back to 1.0, where nothing is used that only 1.1 has.

    Raises:
        AssertionError: the lake has nested schemas.
    """
    con = catalog_of(lake)
    con.run("BEGIN")
    nested = con.run("SELECT schema_name FROM ducklake_schema WHERE parent_schema_id IS NOT NULL")
    assert not nested, f"a catalog of 1.0 cannot have nested schemas: {nested}"
    to_calendar(con)
    for (table,) in con.run("SELECT table_name FROM ducklake_inlined_data_tables"):
        for name in RENAMED:
            con.run(f"ALTER TABLE {identifier(table)} RENAME COLUMN _ducklake_{name} TO {name}")
    for table, column, _ in ADDED_COLUMNS:
        con.run(f"ALTER TABLE {table} DROP COLUMN {column}")
    con.run("DROP TABLE ducklake_view_column_tag")
    con.run(SET_VERSION, version="1.0")
    con.run("COMMIT")
    con.close()


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
            # The last value may be of no key: the directory of a client's file.
            of_keys = [
                one
                for text, (_, name) in zip(texts, old, strict=False)
                for one in calendar_parts(name, text)
            ]
            for n, text in enumerate([*of_keys, *texts[len(old) :]]):
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
