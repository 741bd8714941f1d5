"""Lakes of other catalog versions: old ones written by old DuckDBs, and an imitated future one."""

from itertools import count
from pathlib import Path

import boto3
from pg8000.native import identifier
from polynya_local.clients.lakes import Lake

OLD = Path(__file__).parents[1] / "lakes" / "old"
BUCKET = "lakes"
NUMBERS = count(1)
WRITTEN = sorted(folder.name for folder in OLD.iterdir() if (folder / "catalog.sql").exists())
TO_1_1 = """
ALTER TABLE ducklake_data_file ADD COLUMN row_group_count BIGINT;
ALTER TABLE ducklake_delete_file ADD COLUMN row_group_count BIGINT;
CREATE TABLE ducklake_view_column_tag(view_id BIGINT, column_name VARCHAR, begin_snapshot BIGINT,
  end_snapshot BIGINT, key VARCHAR, value VARCHAR);
UPDATE ducklake_metadata SET value = '1.1-dev1' WHERE key = 'version'"""
# Columns of inlined rows; the tables of inlined deletes keep their column names.
RENAMED = ("row_id", "begin_snapshot", "end_snapshot")


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


def rename_to_1_1(lake: Lake) -> None:
    """Turn a lake of version 1.0 into one of 1.1-dev1, which no package on PyPI writes.

    The changes are those of DuckLake's own migration (`MigrateV10` in
    ducklake_metadata_manager.cpp at 2ed0a0b).
    """
    con = lake.database.connect()
    con.run(TO_1_1)
    for (table,) in con.run("SELECT table_name FROM ducklake_inlined_data_tables"):
        for name in RENAMED:
            con.run(f"ALTER TABLE {identifier(table)} RENAME COLUMN {name} TO _ducklake_{name}")
    con.close()
