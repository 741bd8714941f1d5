"""What is known of some files, put into the order of all."""

import pytest
from polynya.translate.metrics.text_columns import UNKNOWN, FileAligner, numbers

# (ids of which something is known, values, all ids, values in their order)
ORDERS = [
    ("1,2,3", "10,20,30", "1,2,3", [10, 20, 30]),
    ("2", "20", "1,2,3", [UNKNOWN, 20, UNKNOWN]),
    ("1,4", "10,40", "1,2,3", [10, UNKNOWN, UNKNOWN]),
    ("", "", "1,2", [UNKNOWN, UNKNOWN]),
    # Known twice: it may be two things. As many rows as files are not the rows of the files.
    ("1,1", "10,11", "1,2", [UNKNOWN, UNKNOWN]),
    ("1,2,2,3", "10,20,21,30", "1,2,3,4", [10, UNKNOWN, 30, UNKNOWN]),
]


@pytest.mark.parametrize(("ids", "values", "file_ids", "expected"), ORDERS)
def test_values_come_to_their_files(ids, values, file_ids, expected):
    order = FileAligner(numbers(ids), numbers(file_ids))
    known = numbers(values)
    assert order.numbers(known).tolist() == expected
    assert list(order.items(known.tolist(), UNKNOWN)) == expected
