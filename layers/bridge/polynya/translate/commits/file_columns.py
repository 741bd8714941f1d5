"""What an added file must have in its columns, as far as its footer says."""

import json
from collections.abc import Iterable, Mapping

from ...ducklake.column_tree import ColumnNode
from ...ducklake.writes.files import FileColumnStats
from ...ducklake.writes.text_bounds import TEXT_BYTES
from ...errors import BadRequest
from ...iceberg.parquet.metadata import Leaf


def check_present(
    location: str,
    columns: Iterable[ColumnNode],
    found: Mapping[int, FileColumnStats],
    with_default: frozenset[int],
) -> None:
    """Refuse a file that lacks a column which would not be NULL then.

    Args:
        found: the statistics of the leaves that the file has, by column_id.

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


def check_not_null(
    location: str,
    columns: Iterable[ColumnNode],
    found: Mapping[int, FileColumnStats],
    leaves: Iterable[Leaf],
) -> None:
    """Refuse NULL in columns that are NOT NULL; DuckLake's flags of nested columns mean nothing.

    Raises:
        BadRequest: the message names the column.
    """
    required = {leaf.ids[0] for leaf in leaves if leaf.is_required}
    for column in columns:
        if column.nulls_allowed or column.column_id in required:
            continue
        # NULL in a struct or a list is NULL in each of its leaves.
        counts = [found[leaf.column_id] for leaf in column.leaves if leaf.column_id in found]
        if all(one.null_count != 0 for one in counts):
            raise refused(
                location,
                f"{column.column_name} is NOT NULL and the file has NULL in it, or does not say "
                "that it has none",
            )


def check_json(location: str, leaf: Leaf, column: ColumnNode, bounds: Iterable[str | None]) -> None:
    """Refuse texts in a column of JSON which are none: DuckDB could not read the column any more.

    Only the smallest and the largest text are known; of a long one the bound is no value.

    Raises:
        BadRequest: the message names the column.
    """
    if column.column_type != "json" or leaf.type == "JSON":
        return
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
    """The refusal of a file.

    Args:
        location: its path; the message has the name alone.
    """
    return BadRequest(f"the file {location.rpartition('/')[2]} is refused: {reason}")
