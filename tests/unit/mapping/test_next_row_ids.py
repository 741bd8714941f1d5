"""The first row id that no row had up to a snapshot.

The rows are what DuckDB 1.5.5 had in its catalog, and the expected numbers its own `next_row_id`
after each snapshot, unless the catalog does not say them any more.
"""

import pytest
from polynya.ducklake.rows.files import AssignedRowIds as Ids
from polynya.mapping.snapshots import NextRowIds

# Two INSERTs and three UPDATEs without inlining: the file of an UPDATE takes ids that no row has.
WRITTEN = [Ids(2, 0, 4, False), Ids(3, 4, 6, False), Ids(4, 6, 7, False), Ids(5, 7, 8, False)]
# The file of ducklake_rewrite_data_files carries ids of rows whose files have expired.
EXPIRED = [Ids(10, None, 0, True), Ids(12, 10, 13, False)]
# The first snapshots were flushed: ids 8, 15 and 16 from snapshot 9 on. The last INSERT is inlined.
FLUSHED = [Ids(2, 0, 5, False), Ids(4, None, 15, True), Ids(9, None, 11, True)]


@pytest.mark.parametrize(
    ("assigned", "next_row_id", "after"),
    [
        ([], 0, {1: 0}),
        (WRITTEN, 8, {1: 0, 2: 4, 3: 6, 4: 7, 5: 8, 9: 8}),
        ([*WRITTEN, Ids(6, None, 9, False)], 9, {5: 8, 6: 9}),
        # Only what the next file begins with says what was next.
        (EXPIRED, 13, {9: 0, 10: 10, 11: 10, 12: 13}),
        (EXPIRED[:1], 10, {10: 10}),
        # Too high in the past, because nothing says more than what is next now; never too low.
        (FLUSHED, 17, {2: 5, 4: 17, 9: 17}),
    ],
)
def test_next_row_ids(assigned, next_row_id, after):
    next_row_ids = NextRowIds(assigned, next_row_id)
    assert {snapshot_id: next_row_ids.first_after(snapshot_id) for snapshot_id in after} == after
