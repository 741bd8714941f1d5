"""What the values of an added file must be, as far as its footer says."""

import json
from collections.abc import Collection, Iterable, Mapping

from ...ducklake.column_tree import ColumnNode
from ...ducklake.writes.files import FileColumnStats
from ...ducklake.writes.text_bounds import TEXT_BYTES
from ...errors import BadRequest
from ...iceberg.parquet.metadata import Leaf


def check_present(
    location: str,
    columns: Iterable[ColumnNode],
    found: Collection[int],
    with_default: Collection[int],
) -> None:
    """Refuse a file that lacks a column which would not be NULL then.

    Args:
        found: the column_ids of the leaves that the file has.

    Raises:
        BadRequest: the message names the column.
    """
    for column in columns:
        if any(leaf.column_id in found for leaf in column.leaves):
            continue
        if not column.nulls_allowed or column.column_id in with_default:
            raise refused(
                location, f"it lacks the column {column.column_name}, which cannot be NULL there"
            )


def not_null_columns(
    columns: Iterable[ColumnNode], leaves: Iterable[Leaf]
) -> tuple[ColumnNode, ...]:
    """The columns that are NOT NULL and could be NULL in a file of these leaves.

    DuckLake's flags of nested columns mean nothing.
    """
    required = {leaf.ids[0] for leaf in leaves if leaf.is_required}
    return tuple(
        column
        for column in columns
        if not column.nulls_allowed and column.column_id not in required
    )


def check_not_null(
    location: str, columns: Iterable[ColumnNode], found: Iterable[FileColumnStats]
) -> None:
    """Refuse NULL in these columns.

    Raises:
        BadRequest: the message names the column.
    """
    nulls: Mapping[int, int | None] = {one.column_id: one.null_count for one in found}
    for column in columns:
        # NULL in a struct or a list is NULL in each of its leaves.
        counts = [nulls[leaf.column_id] for leaf in column.leaves if leaf.column_id in nulls]
        if all(count != 0 for count in counts):
            raise refused(
                location,
                f"{column.column_name} is NOT NULL and the file has NULL in it, or does not say "
                "that it has none",
            )


def check_json(location: str, column: ColumnNode, bounds: Iterable[str | None]) -> None:
    """Refuse texts in a column of JSON which are none: DuckDB could not read the column any more.

    Only the smallest and the largest text are known; of a long one the bound is no value.

    Raises:
        BadRequest: the message names the column.
    """
    for text in bounds:
        if text is None or len(text.encode()) >= TEXT_BYTES:
            continue
        try:
            json.loads(text)
        except ValueError:
            raise refused(
                location, f"{column.column_name} is json in DuckLake, and has a text that is none"
            ) from None


def refused(location: str, reason: str) -> BadRequest:
    """The refusal of a file, without its directories: they hold values of rows."""
    return BadRequest(f"the file {location.rpartition('/')[2]} is refused: {reason}")
