"""Row ids that a client has written into a data file.

DuckLake and Iceberg reserve the same field id, and DuckLake takes every row id of such a file from
the column: where it is NULL, the row has no id.
https://iceberg.apache.org/spec/#reserved-field-ids
"""

from ...errors import BadRequest
from ...iceberg.parquet.metadata import ParquetMetadata, RowGroup

ROW_ID = 2147483540
"""The field id of `_row_id`, and of DuckLake's `_ducklake_internal_row_id`."""


LAST_UPDATED = 2147483539
"""The field id of `_last_updated_sequence_number`, and of DuckLake's
`_ducklake_internal_snapshot_id`: the snapshot from which on a row of a merged file is there."""


def carries_row_ids(file: ParquetMetadata, next_row_id: int) -> bool:
    """Whether a file carries the ids of its rows.

    Args:
        next_row_id: the first row id that the table never had.

    Raises:
        BadRequest: some rows have no id in it, or one that the table never had; or it says when its
            rows have changed.
    """
    if any(leaf.ids == (LAST_UPDATED,) for leaf in file.leaves):
        raise BadRequest(
            "a data file of the commit has the column _last_updated_sequence_number, which "
            "DuckLake would take for its own: rows would be missing in older snapshots after "
            "ducklake_merge_adjacent_files. Append, or delete and insert instead of updating"
        )
    of_leaves = zip(file.leaves, file.row_groups, strict=True)
    groups = [group for leaf, found in of_leaves if leaf.ids == (ROW_ID,) for group in found]
    if not all(_is_valid(group, next_row_id) for group in groups if group.num_values):
        raise BadRequest(
            "a data file of the commit has a column of row ids (_row_id) that are not those of "
            "the table's rows: DuckLake would give its rows wrong ids. Append, or delete and "
            "insert instead of updating"
        )
    return bool(groups)


def _is_valid(group: RowGroup, next_row_id: int) -> bool:
    low, high = group.min_value, group.max_value
    if group.null_count != 0 or low is None or high is None:
        return False
    return 0 <= int(low) <= int(high) < next_row_id
