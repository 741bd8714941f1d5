"""Row lineage that a client has written into a data file.

DuckLake and Iceberg reserve the same field ids, and DuckLake takes the row ids and the snapshots of
such a file from the columns, also where they are NULL.
https://iceberg.apache.org/spec/#reserved-field-ids
"""

from typing import NamedTuple

from ...errors import BadRequest
from ...iceberg.parquet.metadata import ParquetMetadata, RowGroup
from ...iceberg.row_lineage import LAST_UPDATED, ROW_ID


class RowLineage(NamedTuple):
    """What DuckLake makes of the lineage in a file."""

    has_row_ids: bool
    """The file carries the ids of its rows."""
    hidden: tuple[int, ...]
    """The field ids of columns that DuckLake must not see."""


def row_lineage(file: ParquetMetadata, next_row_id: int) -> RowLineage:
    """The lineage of a file's rows.

    Its numbers of snapshots mean nothing to DuckLake, which knows when the file has begun. If only
    some rows have an id (Spark's MERGE), all get new ones: DuckLake would read NULL as their ids.

    Args:
        next_row_id: the first row id that the table never had.

    Raises:
        BadRequest: a row has an id that the table never had.
    """
    ids = {leaf.ids for leaf in file.leaves}
    hidden = (LAST_UPDATED,) if (LAST_UPDATED,) in ids else ()
    if (ROW_ID,) not in ids:
        return RowLineage(False, hidden)
    of_leaves = zip(file.leaves, file.row_groups, strict=True)
    groups = [group for leaf, found in of_leaves if leaf.ids == (ROW_ID,) for group in found]
    groups = [group for group in groups if group.num_values]
    if not groups or any(group.null_count != 0 for group in groups):
        return RowLineage(False, (*hidden, ROW_ID))
    if not all(_is_valid(group, next_row_id) for group in groups):
        raise BadRequest(
            "a data file of the commit has a column of row ids (_row_id) that are not those of "
            "the table's rows: DuckLake would give its rows wrong ids. Append, or delete and "
            "insert instead of updating"
        )
    return RowLineage(True, hidden)


def _is_valid(group: RowGroup, next_row_id: int) -> bool:
    low, high = group.min_value, group.max_value
    return low is not None and high is not None and 0 <= int(low) <= int(high) < next_row_id
