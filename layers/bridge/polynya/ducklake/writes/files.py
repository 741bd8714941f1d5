"""Rows of data files: added at a snapshot, ended at a snapshot."""

from collections.abc import Sequence

from pg8000.native import Connection

from ..parquet_files import WrittenFile
from .copy import copy

FILE_COLUMNS = (
    *("data_file_id", "table_id", "begin_snapshot", "path", "path_is_relative", "file_format"),
    *("record_count", "file_size_bytes", "footer_size", "row_id_start", "partition_id"),
)
STATS_COLUMNS = (
    *("data_file_id", "table_id", "column_id", "column_size_bytes", "value_count"),
    *("null_count", "min_value", "max_value", "contains_nan"),
)
VALUE_COLUMNS = ("data_file_id", "table_id", "partition_key_index", "partition_value")


def add(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    partition_id: int | None,
    first_file_id: int,
    first_row_id: int,
    files: Sequence[WrittenFile],
) -> None:
    """Add data files with their statistics and partition values; ids are numbered in order."""
    file_rows: list[Sequence[object]] = []
    stats_rows: list[Sequence[object]] = []
    value_rows: list[Sequence[object]] = []
    row_id = first_row_id
    for file_id, file in enumerate(files, first_file_id):
        stored = (file.path, True, "parquet", file.record_count, file.file_size_bytes)
        position = (file.footer_size, row_id, partition_id)
        file_rows.append((file_id, table_id, snapshot_id, *stored, *position))
        row_id += file.record_count
        for s in file.stats:
            counts = (s.column_size_bytes, s.value_count, s.null_count)
            bounds = (s.min_value, s.max_value, s.contains_nan)
            stats_rows.append((file_id, table_id, s.column_id, *counts, *bounds))
        for index, value in enumerate(file.partition_values):
            value_rows.append((file_id, table_id, index, value))
    copy(con, "ducklake_data_file", FILE_COLUMNS, file_rows)
    copy(con, "ducklake_file_column_stats", STATS_COLUMNS, stats_rows)
    copy(con, "ducklake_file_partition_value", VALUE_COLUMNS, value_rows)


END_FILES = """
UPDATE ducklake_data_file SET end_snapshot = :snapshot_id
WHERE data_file_id = ANY(:data_file_ids)"""


def end(con: Connection, snapshot_id: int, data_file_ids: list[int]) -> None:
    """End data files at a snapshot: it and later ones do not show them."""
    con.run(END_FILES, snapshot_id=snapshot_id, data_file_ids=data_file_ids)
