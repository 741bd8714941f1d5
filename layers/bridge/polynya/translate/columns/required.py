"""Columns that Iceberg may call required."""

from collections import defaultdict
from collections.abc import Iterable

from ...ducklake.rows.columns import Column


def never_null(columns: Iterable[Column], table_begin: int) -> frozenset[int]:
    """The top-level columns that have been NOT NULL in every row that the table ever had.

    A column that became NOT NULL later may have NULL in the deleted rows of its files.

    Args:
        columns: every version of every column.
        table_begin: the snapshot that made the table.
    """
    versions: dict[int, list[Column]] = defaultdict(list)
    for column in columns:
        versions[column.column_id].append(column)
    return frozenset(
        column_id
        for column_id, history in versions.items()
        if all(one.parent_column is None and not one.nulls_allowed for one in history)
        and min(one.begin_snapshot for one in history) <= table_begin
    )
