"""What a commit writes into DuckLake's tables. All SQL of the project that writes is here.

Columns are always named: later catalog versions add some. Identifiers go through `identifier`,
values are parameters or COPY rows. The tables are those of catalog version 1.0:
https://ducklake.select/docs/stable/specification/tables/overview
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pg8000.native import Connection, identifier

from .columns import Added, Column
from .parquet_files import WrittenFile
from .partitions import PartitionKey
from .statistics import TableColumnStats


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row of ducklake_snapshot: its id, and the next ids that are free after it."""

    snapshot_id: int
    schema_version: int
    next_catalog_id: int
    next_file_id: int


NEWEST = """
SELECT snapshot_id, schema_version, next_catalog_id, next_file_id
FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"""


def newest_snapshot(con: Connection) -> Snapshot:
    return Snapshot(*con.run(NEWEST)[0])


CLAIM = """
INSERT INTO ducklake_snapshot
  (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
VALUES (:snapshot_id, now(), :schema_version, :next_catalog_id, :next_file_id)"""


def claim(con: Connection, snapshot: Snapshot) -> None:
    """Take the snapshot's id. The primary key is the lock: from here to the end of the
    transaction no other writer of the lake can commit, so what is read now stays true."""
    con.run(
        CLAIM,
        snapshot_id=snapshot.snapshot_id,
        schema_version=snapshot.schema_version,
        next_catalog_id=snapshot.next_catalog_id,
        next_file_id=snapshot.next_file_id,
    )


CHANGES = """
INSERT INTO ducklake_snapshot_changes
  (snapshot_id, changes_made, author, commit_message, commit_extra_info)
VALUES (:snapshot_id, :changes_made, :author, :message, :token)"""


def changes(
    con: Connection,
    snapshot_id: int,
    changes_made: str,
    token: str,
    author: str | None,
    message: str | None,
) -> None:
    con.run(
        CHANGES,
        snapshot_id=snapshot_id,
        changes_made=changes_made,
        author=author,
        message=message,
        token=token,
    )


TABLE = """
INSERT INTO ducklake_table
  (table_id, table_uuid, begin_snapshot, schema_id, table_name, path, path_is_relative)
VALUES (:table_id, CAST(:table_uuid AS uuid), :snapshot_id, :schema_id, :table_name, :path, true)"""


def table(
    con: Connection,
    snapshot_id: int,
    schema_id: int,
    table_id: int,
    table_uuid: str,
    table_name: str,
    path: str,
) -> None:
    con.run(
        TABLE,
        table_id=table_id,
        table_uuid=table_uuid,
        snapshot_id=snapshot_id,
        schema_id=schema_id,
        table_name=table_name,
        path=path,
    )


SCHEMA_VERSION = """
INSERT INTO ducklake_schema_versions (begin_snapshot, schema_version, table_id)
VALUES (:snapshot_id, :schema_version, :table_id)"""


def schema_version(con: Connection, snapshot: Snapshot, table_id: int) -> None:
    con.run(
        SCHEMA_VERSION,
        snapshot_id=snapshot.snapshot_id,
        schema_version=snapshot.schema_version,
        table_id=table_id,
    )


def columns(con: Connection, snapshot_id: int, table_id: int, added: Iterable[Added]) -> None:
    rows: list[Sequence[object]] = []

    def visit(column: Column, parent: int | None) -> None:
        kind = "" if column.children else "literal"
        words = (column.column_name, column.column_type, "NULL", column.nulls_allowed, parent)
        ids = (column.column_id, snapshot_id, table_id, column.column_id)
        rows.append((*ids, *words, kind, "duckdb"))
        for child in column.children:
            visit(child, column.column_id)

    for new in added:
        visit(new.column, new.parent_column)
    _copy(
        con,
        "ducklake_column",
        (
            *("column_id", "begin_snapshot", "table_id", "column_order", "column_name"),
            *("column_type", "default_value", "nulls_allowed", "parent_column"),
            *("default_value_type", "default_value_dialect"),
        ),
        rows,
    )


PARTITION = """
INSERT INTO ducklake_partition_info (partition_id, table_id, begin_snapshot)
VALUES (:partition_id, :table_id, :snapshot_id)"""


def partitioning(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    partition_id: int,
    keys: Iterable[PartitionKey],
) -> None:
    con.run(PARTITION, partition_id=partition_id, table_id=table_id, snapshot_id=snapshot_id)
    rows = [
        (partition_id, table_id, key.partition_key_index, key.column_id, key.transform)
        for key in keys
    ]
    _copy(
        con,
        "ducklake_partition_column",
        ("partition_id", "table_id", "partition_key_index", "column_id", "transform"),
        rows,
    )


def comments(
    con: Connection, snapshot_id: int, table_id: int, comment: str | None, of: Iterable[Column]
) -> None:
    if comment is not None:
        _copy(
            con,
            "ducklake_tag",
            ("object_id", "begin_snapshot", "key", "value"),
            [(table_id, snapshot_id, "comment", comment)],
        )
    rows = [
        (table_id, column.column_id, snapshot_id, "comment", column.comment)
        for column in of
        if column.comment is not None
    ]
    _copy(
        con,
        "ducklake_column_tag",
        ("table_id", "column_id", "begin_snapshot", "key", "value"),
        rows,
    )


def data_files(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    partition_id: int | None,
    first_file_id: int,
    first_row_id: int,
    files: Sequence[WrittenFile],
) -> None:
    file_rows: list[Sequence[object]] = []
    stats_rows: list[Sequence[object]] = []
    value_rows: list[Sequence[object]] = []
    row_id = first_row_id
    for file_id, file in enumerate(files, first_file_id):
        words = (file.path, True, "parquet", file.record_count, file.file_size_bytes)
        more = (file.footer_size, row_id, partition_id)
        file_rows.append((file_id, table_id, snapshot_id, *words, *more))
        row_id += file.record_count
        for s in file.stats:
            counts = (s.column_size_bytes, s.value_count, s.null_count)
            bounds = (s.min_value, s.max_value, s.contains_nan)
            stats_rows.append((file_id, table_id, s.column_id, *counts, *bounds))
        for key, value in enumerate(file.partition_values):
            value_rows.append((file_id, table_id, key, value))
    _copy(
        con,
        "ducklake_data_file",
        (
            *("data_file_id", "table_id", "begin_snapshot", "path", "path_is_relative"),
            *("file_format", "record_count", "file_size_bytes", "footer_size", "row_id_start"),
            "partition_id",
        ),
        file_rows,
    )
    _copy(
        con,
        "ducklake_file_column_stats",
        (
            *("data_file_id", "table_id", "column_id", "column_size_bytes", "value_count"),
            *("null_count", "min_value", "max_value", "contains_nan"),
        ),
        stats_rows,
    )
    _copy(
        con,
        "ducklake_file_partition_value",
        ("data_file_id", "table_id", "partition_key_index", "partition_value"),
        value_rows,
    )


INLINED_TYPES = {
    "boolean": "boolean",
    "int8": "smallint",
    "int16": "smallint",
    "int32": "integer",
    "int64": "bigint",
    "float32": "real",
    "float64": "double precision",
    "varchar": "bytea",
    "blob": "bytea",
    "time": "time",
}
"""What DuckLake inlines columns as, of the types that a new column may have; others as text."""

INLINED_OWNER = """
SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass(quote_ident(:name))"""

INLINED_TABLE = """
INSERT INTO ducklake_inlined_data_tables (table_id, table_name, schema_version)
VALUES (:table_id, :table_name, :schema_version)"""


def inlined_table(
    con: Connection, snapshot: Snapshot, table_id: int, before: str, added: Iterable[Added]
) -> None:
    """A table for the rows that DuckDB will inline from now on. It makes one at each ALTER, and
    without it would go on with the one `before`, which lacks the new columns."""
    name = f"ducklake_inlined_data_{table_id}_{snapshot.schema_version}"
    con.run(f"CREATE TABLE {identifier(name)} (LIKE {identifier(before)})")
    for column in (new.column for new in added if new.parent_column is None):
        kind = INLINED_TYPES.get(column.column_type, "varchar")
        if column.column_type.startswith("decimal"):
            kind = column.column_type.replace("decimal", "numeric")
        con.run(f"ALTER TABLE {identifier(name)} ADD {identifier(column.column_name)} {kind}")
    [[owner]] = con.run(INLINED_OWNER, name=before)
    con.run(f"GRANT ALL ON {identifier(name)} TO {identifier(owner)}")
    con.run(
        INLINED_TABLE,
        table_id=table_id,
        table_name=name,
        schema_version=snapshot.schema_version,
    )


END_FILES = """
UPDATE ducklake_data_file SET end_snapshot = :snapshot_id
WHERE data_file_id = ANY(:data_file_ids)"""


def end_files(con: Connection, snapshot_id: int, data_file_ids: list[int]) -> None:
    con.run(END_FILES, snapshot_id=snapshot_id, data_file_ids=data_file_ids)


def end_inlined_rows(con: Connection, snapshot_id: int, tables: Iterable[str]) -> int:
    """End the rows that live in PostgreSQL itself; gives how many."""
    count = 0
    for name in tables:
        con.run(
            f"UPDATE {identifier(name)} SET end_snapshot = :snapshot_id WHERE end_snapshot IS NULL",
            snapshot_id=snapshot_id,
        )
        count += con.row_count
    return count


TABLE_STATS = """
SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats
WHERE table_id = :table_id FOR UPDATE"""


def table_stats(con: Connection, table_id: int) -> tuple[int, int, int] | None:
    """record_count, next_row_id, file_size_bytes; None: nothing was ever written."""
    for record_count, next_row_id, file_size_bytes in con.run(TABLE_STATS, table_id=table_id):
        return record_count, next_row_id, file_size_bytes
    return None


NEW_TABLE_STATS = """
INSERT INTO ducklake_table_stats (table_id, record_count, next_row_id, file_size_bytes)
VALUES (:table_id, :record_count, :next_row_id, :file_size_bytes)"""

MORE_TABLE_STATS = """
UPDATE ducklake_table_stats SET record_count = :record_count, next_row_id = :next_row_id,
  file_size_bytes = :file_size_bytes
WHERE table_id = :table_id"""


def set_table_stats(
    con: Connection, table_id: int, stats: tuple[int, int, int], *, is_new: bool
) -> None:
    record_count, next_row_id, file_size_bytes = stats
    con.run(
        NEW_TABLE_STATS if is_new else MORE_TABLE_STATS,
        table_id=table_id,
        record_count=record_count,
        next_row_id=next_row_id,
        file_size_bytes=file_size_bytes,
    )


COLUMN_STATS = """
SELECT column_id, contains_null, contains_nan, min_value, max_value
FROM ducklake_table_column_stats WHERE table_id = :table_id"""


def table_column_stats(con: Connection, table_id: int) -> dict[int, TableColumnStats]:
    return {row[0]: TableColumnStats(*row) for row in con.run(COLUMN_STATS, table_id=table_id)}


FORGET_COLUMN_STATS = """
DELETE FROM ducklake_table_column_stats WHERE table_id = :table_id AND column_id = ANY(:ids)"""


def set_table_column_stats(
    con: Connection, table_id: int, stats: Iterable[TableColumnStats]
) -> None:
    rows = [
        (table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value)
        for s in stats
    ]
    con.run(FORGET_COLUMN_STATS, table_id=table_id, ids=[row[1] for row in rows])
    _copy(
        con,
        "ducklake_table_column_stats",
        (
            *("table_id", "column_id", "contains_null", "contains_nan"),
            *("min_value", "max_value"),
        ),
        rows,
    )


ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def _copy(
    con: Connection, table_name: str, names: Sequence[str], rows: Sequence[Sequence[object]]
) -> None:
    """COPY takes ten thousand files with their statistics in half a second; INSERT a minute."""
    if not rows:
        return
    lines = ("\t".join(map(_copy_text, row)) + "\n" for row in rows)
    columns = ", ".join(map(identifier, names))
    stream = io.BytesIO("".join(lines).encode())
    con.run(f"COPY {identifier(table_name)} ({columns}) FROM STDIN", stream=stream)


def _copy_text(value: object) -> str:
    if value is None:
        return r"\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    return str(value).translate(ESCAPES)
