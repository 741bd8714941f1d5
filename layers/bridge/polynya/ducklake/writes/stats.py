"""The statistics of a whole table, on which DuckDB's optimizer relies."""

from collections.abc import Iterable, Sequence

from pg8000.native import Connection

from ..connection.statements import Rows, Statement
from ..rows.table_stats import TableColumnStats
from .copy import copy

Ranges = dict[int, list[tuple[str | None, str | None]]]
"""The smallest and the largest value in each file, by column_id."""

TABLE_STATS = """
SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats
WHERE table_id = :table_id FOR UPDATE"""


def of_table(table_id: int) -> Statement[tuple[int, int, int] | None]:
    """record_count, next_row_id, file_size_bytes; None: nothing was ever written to the table."""
    return Statement(TABLE_STATS, {"table_id": table_id}, _table_stats)


def _table_stats(rows: Rows) -> tuple[int, int, int] | None:
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


def set_of_table(
    con: Connection, table_id: int, stats: tuple[int, int, int], *, is_new: bool
) -> None:
    """Write record_count, next_row_id and file_size_bytes of a table.

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


# Not of columns that files without them have another value than NULL in.
LIVE_RANGES = """
SELECT c.column_id, s.data_file_id, s.min_value, s.max_value
FROM unnest(CAST(:ids AS bigint[])) AS c(column_id)
LEFT JOIN (SELECT s.column_id, s.data_file_id, s.min_value, s.max_value
    FROM ducklake_file_column_stats AS s JOIN ducklake_data_file AS f USING (data_file_id)
    WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND s.column_id = ANY(:ids)
      AND s.value_count IS DISTINCT FROM 0) AS s USING (column_id)
WHERE NOT EXISTS (SELECT FROM ducklake_column AS d WHERE d.table_id = :table_id
  AND d.column_id = c.column_id AND d.initial_default IS NOT NULL)"""


def live_ranges(con: Connection, table_id: int, column_ids: Sequence[int]) -> Ranges:
    """The ranges of values in the live files, of columns without bounds in the table's statistics.

    Native DuckLake has NULL for the bounds of a table without values, also after
    `ducklake_rewrite_data_files` of a table without rows. Inlined rows need no look: DuckLake
    includes them in the table's bounds when it writes them.
    """
    if not column_ids:
        return {}
    found: Ranges = {}
    ids = list(column_ids)
    for column_id, file_id, low, high in con.run(LIVE_RANGES, table_id=table_id, ids=ids):
        found.setdefault(column_id, [])
        if file_id is not None:
            found[column_id].append((low, high))
    return found


DELETE_COLUMN_STATS = """
DELETE FROM ducklake_table_column_stats WHERE table_id = :table_id AND column_id = ANY(:ids)"""


def set_of_columns(con: Connection, table_id: int, stats: Iterable[TableColumnStats]) -> None:
    """Replace the statistics of these columns."""
    rows = [
        (table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value)
        for s in stats
    ]
    con.run(DELETE_COLUMN_STATS, table_id=table_id, ids=[row[1] for row in rows])
    copy(
        con,
        "ducklake_table_column_stats",
        (
            *("table_id", "column_id", "contains_null", "contains_nan"),
            *("min_value", "max_value"),
        ),
        rows,
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
