"""The statistics of a whole table, which DuckDB trusts."""

from collections.abc import Iterable

from pg8000.native import Connection

from ..statistics import TableColumnStats
from .copy import copy

TABLE_STATS = """
SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats
WHERE table_id = :table_id FOR UPDATE"""


def of_table(con: Connection, table_id: int) -> tuple[int, int, int] | None:
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


def set_of_table(
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


def of_columns(con: Connection, table_id: int) -> dict[int, TableColumnStats]:
    return {row[0]: TableColumnStats(*row) for row in con.run(COLUMN_STATS, table_id=table_id)}


FORGET_COLUMN_STATS = """
DELETE FROM ducklake_table_column_stats WHERE table_id = :table_id AND column_id = ANY(:ids)"""


def set_of_columns(con: Connection, table_id: int, stats: Iterable[TableColumnStats]) -> None:
    rows = [
        (table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value)
        for s in stats
    ]
    con.run(FORGET_COLUMN_STATS, table_id=table_id, ids=[row[1] for row in rows])
    copy(
        con,
        "ducklake_table_column_stats",
        (
            *("table_id", "column_id", "contains_null", "contains_nan"),
            *("min_value", "max_value"),
        ),
        rows,
    )
