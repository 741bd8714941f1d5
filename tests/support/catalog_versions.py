"""Catalogs of other versions: real old ones, and a migration to 1.1 and back.

No package on PyPI has a DuckLake extension that writes 1.1, so `to_1_1` does what its own
migration does (`ALTER`s by `MigrateV10` in ducklake_metadata_manager.cpp, and what the release of
2026-10-21 adds). `to_1_0` takes a catalog back, so that DuckDB 1.5.5 reads what was written.
"""

from itertools import count
from pathlib import Path

import boto3
from pg8000.native import Connection, identifier
from polynya_local.clients.lakes import Lake

from tests.support import file_lakes
from tests.support.file_lakes import FileLake

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


def file_to_1_1(lake: FileLake) -> None:
    """The same for a catalog in a file of DuckDB or SQLite."""
    tables = file_lakes.query(lake, "SELECT table_name FROM ducklake_inlined_data_tables")
    statements = [
        *(
            f"ALTER TABLE {identifier(table)} RENAME COLUMN {name} TO _ducklake_{name}"
            for (table,) in tables
            for name in RENAMED
        ),
        *(f"ALTER TABLE {table} ADD COLUMN {name} {type}" for table, name, type in ADDED_COLUMNS),
        VIEW_COLUMN_TAG,
        "UPDATE ducklake_metadata SET value = '1.1' WHERE key = 'version'",
    ]
    file_lakes.change_tables(lake, ";\n".join(statements))


def to_1_0(lake: Lake) -> None:
    """Take a lake of version 1.1 back to 1.0, where nothing is used that only 1.1 has.

    Raises:
        AssertionError: the lake has nested schemas.
    """
    con = catalog_of(lake)
    con.run("BEGIN")
    nested = con.run("SELECT schema_name FROM ducklake_schema WHERE parent_schema_id IS NOT NULL")
    assert not nested, f"a catalog of 1.0 cannot have nested schemas: {nested}"
    for (table,) in con.run("SELECT table_name FROM ducklake_inlined_data_tables"):
        for name in RENAMED:
            con.run(f"ALTER TABLE {identifier(table)} RENAME COLUMN _ducklake_{name} TO {name}")
    for table, column, _ in ADDED_COLUMNS:
        con.run(f"ALTER TABLE {table} DROP COLUMN {column}")
    con.run("DROP TABLE ducklake_view_column_tag")
    con.run(SET_VERSION, version="1.0")
    con.run("COMMIT")
    con.close()
