"""Columns of a table that exists: new versions of their rows, and the end of dropped ones."""

from collections.abc import Mapping, Sequence

from pg8000.native import Connection

from ...column_tree import ColumnNode
from ...rows.writers.layout import Layout
from ..copy import copy

# The position, the defaults and the parent stay.
CHANGE = """
WITH ended AS (
  UPDATE ducklake_column AS c SET end_snapshot = :snapshot_id
  FROM unnest(CAST(:ids AS bigint[]), CAST(:names AS text[]), CAST(:column_types AS text[]),
    CAST(:nulls_allowed AS boolean[])) AS new(column_id, column_name, column_type, nulls_allowed)
  WHERE c.table_id = :table_id AND c.end_snapshot IS NULL AND c.column_id = new.column_id
  RETURNING c.*, new.column_name AS new_name, new.column_type AS new_type,
    new.nulls_allowed AS new_nulls_allowed)
INSERT INTO ducklake_column (column_id, begin_snapshot, end_snapshot, table_id, column_order,
  column_name, column_type, initial_default, default_value, nulls_allowed, parent_column,
  default_value_type, default_value_dialect)
SELECT column_id, :snapshot_id, NULL, table_id, column_order, new_name, new_type, initial_default,
  default_value, new_nulls_allowed, parent_column, default_value_type, default_value_dialect
FROM ended ORDER BY column_id"""


def change(con: Connection, snapshot_id: int, table_id: int, columns: Sequence[ColumnNode]) -> None:
    """Give columns a new name, type or NOT NULL from a snapshot on; their children stay."""
    con.run(
        CHANGE,
        snapshot_id=snapshot_id,
        table_id=table_id,
        ids=[column.column_id for column in columns],
        names=[column.column_name for column in columns],
        column_types=[column.column_type for column in columns],
        nulls_allowed=[column.nulls_allowed for column in columns],
    )


DROP = """
UPDATE ducklake_column SET end_snapshot = :snapshot_id
WHERE table_id = :table_id AND column_id = ANY(:ids) AND end_snapshot IS NULL"""


END_TAGS = """
UPDATE ducklake_column_tag SET end_snapshot = :snapshot_id
WHERE table_id = :table_id AND column_id = ANY(:ids) AND end_snapshot IS NULL"""


def drop(
    con: Connection, snapshot_id: int, table_id: int, column_ids: Sequence[int], layout: Layout
) -> None:
    """End columns at a snapshot, as DuckLake's own ALTER does.

    Their statistics stay, and before version 1.1 their comments.
    """
    ids = list(column_ids)
    con.run(DROP, snapshot_id=snapshot_id, table_id=table_id, ids=ids)
    if layout.is_1_1:
        con.run(END_TAGS, snapshot_id=snapshot_id, table_id=table_id, ids=ids)


END_COMMENTS = """
UPDATE ducklake_column_tag SET end_snapshot = :snapshot_id
WHERE table_id = :table_id AND column_id = ANY(:ids) AND key = 'comment' AND end_snapshot IS NULL"""


def set_comments(
    con: Connection, snapshot_id: int, table_id: int, comments: Mapping[int, str | None]
) -> None:
    """Set the comments of columns by column_id; None, which DuckDB writes too, for no comment."""
    con.run(END_COMMENTS, snapshot_id=snapshot_id, table_id=table_id, ids=list(comments))
    rows = [
        (table_id, column_id, snapshot_id, "comment", text) for column_id, text in comments.items()
    ]
    copy(
        con,
        "ducklake_column_tag",
        ("table_id", "column_id", "begin_snapshot", "key", "value"),
        rows,
    )
