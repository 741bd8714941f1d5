"""Values that are known for some files, in the order of all files."""

import pytest
from polynya.mapping.bounds import UNKNOWN, FileAligner, numbers

# (ids of files with a value, values, all ids, values in their order)
ORDERS = [
    ("1,2,3", "10,20,30", "1,2,3", [10, 20, 30]),
    ("2", "20", "1,2,3", [UNKNOWN, 20, UNKNOWN]),
    ("1,4", "10,40", "1,2,3", [10, UNKNOWN, UNKNOWN]),
    ("", "", "1,2", [UNKNOWN, UNKNOWN]),
    # A repeated id is uncertain, and equal numbers of ids do not mean the same ids.
    ("1,1", "10,11", "1,2", [UNKNOWN, UNKNOWN]),
    ("1,2,2,3", "10,20,21,30", "1,2,3,4", [10, UNKNOWN, 30, UNKNOWN]),
]


@pytest.mark.parametrize(("ids", "values", "file_ids", "expected"), ORDERS)
def test_values_are_assigned_to_their_files(ids, values, file_ids, expected):
    order = FileAligner(numbers(ids), numbers(file_ids))
    known = numbers(values)
    assert order.numbers(known).tolist() == expected
    assert list(order.items(known.tolist(), UNKNOWN)) == expected
