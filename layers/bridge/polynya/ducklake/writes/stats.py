"""The statistics of a whole table, on which DuckDB's optimizer relies."""

from collections.abc import Iterable
from typing import TypeAlias

from pg8000.native import Connection

from ..connection.statements import Rows, Statement
from ..rows.writers.layout import Layout
from .copy import copy
from .widening import WiderStats

TABLE_STATS = """
SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats
WHERE table_id = :table_id FOR UPDATE"""

TableStats: TypeAlias = tuple[int | None, int, int | None]
"""record_count, next_row_id, file_size_bytes."""


def of_table(table_id: int) -> Statement[TableStats | None]:
    """The statistics of a table; None: nothing was ever written to it."""
    return Statement(TABLE_STATS, {"table_id": table_id}, _table_stats)


def _table_stats(rows: Rows) -> TableStats | None:
    for record_count, next_row_id, file_size_bytes in rows:
        return record_count, next_row_id, file_size_bytes
    return None


NEW_TABLE_STATS = """
INSERT INTO ducklake_table_stats (table_id, record_count, next_row_id, file_size_bytes)
VALUES (:table_id, :record_count, :next_row_id, :file_size_bytes)"""

UPDATE_TABLE_STATS = """
UPDATE ducklake_table_stats SET record_count = :record_count, next_row_id = :next_row_id,
  file_size_bytes = :file_size_bytes
WHERE table_id = :table_id"""


def wider(before: TableStats | None, records: int, row_ids: int, size: int) -> TableStats:
    """The statistics of a table with new files. What is not known stays unknown.

    record_count is never made smaller, as in DuckLake 1.0: DuckLake takes the bounds of a table for
    values while it is the number of live rows, and an ended file leaves the bounds wider. DuckLake
    1.1 subtracts a file that it drops, and removes the bounds; it fails where a file has more rows
    than record_count, so that more is safe.
    """
    record_count, next_row_id, file_size_bytes = before or (0, 0, 0)
    return (
        None if record_count is None else record_count + records,
        next_row_id + row_ids,
        None if file_size_bytes is None else file_size_bytes + size,
    )


def set_of_table(con: Connection, table_id: int, stats: TableStats, *, is_new: bool) -> None:
    """Write the statistics of a table.

    Args:
        is_new: the table has no row in ducklake_table_stats yet.
    """
    record_count, next_row_id, file_size_bytes = stats
    con.run(
        NEW_TABLE_STATS if is_new else UPDATE_TABLE_STATS,
        table_id=table_id,
        record_count=record_count,
        next_row_id=next_row_id,
        file_size_bytes=file_size_bytes,
    )


DELETE_COLUMN_STATS = """
DELETE FROM ducklake_table_column_stats WHERE table_id = :table_id AND column_id = ANY(:ids)"""

# What else is there stays: boxes of geometries, shapes of variants.
SET_CONTAINS_NULL = """
UPDATE ducklake_table_column_stats SET contains_null = true
WHERE table_id = :table_id AND column_id = ANY(:ids)"""


def set_of_columns(con: Connection, table_id: int, stats: WiderStats, layout: Layout) -> None:
    """Replace the statistics of a table's columns, in a catalog that has `layout`."""
    rows = [
        (
            *(table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value),
            *(s.min_is_exact, s.max_is_exact),
        )
        for s in stats.known
    ]
    replaced = [*(row[1] for row in rows), *stats.unknown]
    con.run(DELETE_COLUMN_STATS, table_id=table_id, ids=replaced)
    if stats.with_null:
        con.run(SET_CONTAINS_NULL, table_id=table_id, ids=stats.with_null)
    copy(
        con,
        "ducklake_table_column_stats",
        (
            *("table_id", "column_id", "contains_null", "contains_nan"),
            *("min_value", "max_value", "min_is_exact", "max_is_exact"),
        ),
        rows,
        layout,
    )


# Only what PostgreSQL and DuckDB both read as a number: not inf, -inf, nan.
WIDENED = """CASE WHEN {0} ~ '^-?[0-9]*\\.?[0-9]+(e[-+]?[0-9]+)?$'
  THEN (CAST(CAST({0} AS real) AS double precision))::text ELSE {0} END"""
WIDEN_FLOATS = f"""
UPDATE {{table}} SET min_value = {WIDENED.format("min_value")},
  max_value = {WIDENED.format("max_value")}
WHERE table_id = :table_id AND column_id = ANY(:ids)"""


def widen_floats(con: Connection, table_id: int, column_ids: Iterable[int]) -> None:
    """Write the bounds of columns that were float32 in all digits of a float64.

    DuckDB compares them as text of the new type: 0.1 as float64 is less than the float32 0.1, which
    is in the files, so that a filter would lose rows. As float32 the long text is the same number.
    """
    for table in ("ducklake_file_column_stats", "ducklake_table_column_stats"):
        con.run(WIDEN_FLOATS.format(table=table), table_id=table_id, ids=list(column_ids))
