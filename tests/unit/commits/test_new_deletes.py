"""What a commit deletes in one data file, by its delete files and by what is deleted already."""

import pytest
from polynya.commits.plan import row_deletes
from polynya.commits.plan.row_deletes import new_positions, too_many_to_inline
from polynya.runtime.errors import BadRequest

ALL = None

NEW = [
    # after, before, record_count, is_replaced, what the commit deletes
    ([1, 3], [], 5, False, [1, 3]),
    ([1, 3], [3], 5, False, [1]),
    ([1, 3], [0], 5, False, [1, 3]),  # the older delete file stays
    ([0, 1, 3], [0], 5, True, [1, 3]),
    ([0], [0], 5, True, []),
    ([], [], 5, True, []),
    (range(5), [0, 4], 5, True, ALL),
    ([1, 2], [0], 3, False, ALL),
    ([], [], 0, False, ALL),
]


@pytest.mark.parametrize(("after", "before", "rows", "is_replaced", "expected"), NEW)
def test_positions_that_are_not_deleted_yet(after, before, rows, is_replaced, expected):
    found = new_positions(after, before, rows, is_replaced=is_replaced)
    assert (found if found is ALL else list(found)) == expected


REFUSED = [
    # after, before, record_count, is_replaced, a part of the message
    ([1], [0], 5, True, "brings deleted rows back"),
    ([], [0], 5, True, "brings deleted rows back"),
    ([5], [], 5, False, "row 5 of a data file that has 5 rows"),
    (range(6), [], 5, False, "row 5 of a data file that has 5 rows"),
]


@pytest.mark.parametrize(("after", "before", "rows", "is_replaced", "message"), REFUSED)
def test_positions_that_are_refused(after, before, rows, is_replaced, message):
    with pytest.raises(BadRequest, match=message):
        new_positions(after, before, rows, is_replaced=is_replaced)


LARGE = [
    # New positions of each data file, and which of them are too many with at most 10 inlined.
    ({}, []),
    ({"a": range(10)}, []),
    ({"a": range(11)}, ["a"]),
    ({"a": range(3), "b": range(9), "c": range(7)}, ["b"]),
    ({"a": range(6), "b": range(9), "c": range(7)}, ["b", "c"]),
    ({n: range(2) for n in range(7)}, [0, 1]),
]


@pytest.mark.parametrize(("deleted", "expected"), LARGE)
def test_the_largest_deletes_are_not_inlined(monkeypatch, deleted, expected):
    monkeypatch.setattr(row_deletes, "MOST_INLINED", 10)
    assert too_many_to_inline(deleted) == expected
