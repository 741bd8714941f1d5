"""The statistics of whole tables."""

from ...connection.statements import Rows, Statement
from ...rows.writers.table_stats import TableColumnStats

# Catalogs before 1.1 do not have the last two: as members of an object they are NULL there.
TABLE_COLUMN_STATS = """
SELECT s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value,
  (to_jsonb(s)->>'min_is_exact')::boolean, (to_jsonb(s)->>'max_is_exact')::boolean
FROM ducklake_table_column_stats AS s WHERE s.table_id = :table_id"""


def table_column_stats(table_id: int) -> Statement[dict[int, TableColumnStats]]:
    """The statistics of the columns of a table, by column_id."""
    return Statement(TABLE_COLUMN_STATS, {"table_id": table_id}, _table_column_stats)


def _table_column_stats(rows: Rows) -> dict[int, TableColumnStats]:
    return {row[0]: TableColumnStats(*row) for row in rows}


NEXT_ROW_ID = """
SELECT next_row_id FROM ducklake_table_stats WHERE table_id = :table_id"""


def next_row_id(table_id: int) -> Statement[int]:
    """The first row id that a table never had."""
    return Statement(NEXT_ROW_ID, {"table_id": table_id}, lambda rows: rows[0][0] if rows else 0)
