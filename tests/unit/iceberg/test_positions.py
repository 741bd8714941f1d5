"""Sets of positions as arrays."""

from array import array

import pytest
from polynya.iceberg.deletion_vector import difference, union

SETS = [
    # some, others, union, difference
    ([], (), [], []),
    ([1, 4], range(0), [1, 4], [1, 4]),
    (array("q", [1, 4, 2**40]), [4, 5], [1, 4, 5, 2**40], [1, 2**40]),
    (range(4), array("q", [0, 3]), [0, 1, 2, 3], [1, 2]),
    (array("q"), range(2), [0, 1], []),
]


@pytest.mark.parametrize(("some", "others", "both", "left"), SETS)
def test_sets(some, others, both, left):
    assert list(union([some, others])) == both
    assert list(difference(some, others)) == left


def test_parts_may_be_in_any_order():
    assert list(union([[5, 1], [5, -1]])) == [-1, 1, 5]
    assert list(union([])) == []
