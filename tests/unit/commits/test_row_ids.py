"""Which files carry the ids of their rows."""

import pytest
from polynya.commits.plan.added_files import row_lineage
from polynya.iceberg.parquet.metadata import Leaf, ParquetMetadata, RowGroup
from polynya.iceberg.table_metadata import LAST_UPDATED, ROW_ID


def file_with(*groups, ids=(ROW_ID,)):
    return ParquetMetadata(100, 10, 3, (Leaf(ids, "_row_id", "BIGINT", False),), (groups,))


VALID = RowGroup(10, 3, 0, "4", "9")


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (file_with(VALID), True),
        (file_with(VALID, RowGroup(0, 0, None, None, None)), True),
        (file_with(VALID, ids=(7,)), False),
        (file_with(VALID, ids=(7, ROW_ID)), False),
    ],
)
def test_row_ids(file, expected):
    assert row_lineage(file, next_row_id=10) == (expected, ())


NULLS = RowGroup(10, 3, 3, None, None)


@pytest.mark.parametrize(
    ("file", "hidden"),
    [
        (file_with(NULLS, NULLS), (ROW_ID,)),
        (file_with(), (ROW_ID,)),  # no rows
        # Some rows have none, or it is not known whether all have one.
        (file_with(VALID, NULLS), (ROW_ID,)),
        (file_with(RowGroup(10, 3, 1, "4", "9")), (ROW_ID,)),
        (file_with(RowGroup(10, 3, None, "4", "9")), (ROW_ID,)),
        (file_with(VALID, ids=(LAST_UPDATED,)), (LAST_UPDATED,)),
        (file_with(NULLS, ids=(LAST_UPDATED,)), (LAST_UPDATED,)),
        (file_with(NULLS, ids=(7, LAST_UPDATED)), ()),
    ],
)
def test_columns_that_ducklake_must_not_see(file, hidden):
    assert row_lineage(file, next_row_id=10) == (False, hidden)


@pytest.mark.parametrize(
    "group",
    [
        RowGroup(10, 3, 0, None, "9"),
        RowGroup(10, 3, 0, "-1", "9"),
        RowGroup(10, 3, 0, "4", "10"),
    ],
)
def test_rows_with_ids_that_the_table_never_gave_get_new_ones(group):
    assert row_lineage(file_with(VALID, group), next_row_id=10) == (False, (ROW_ID,))
