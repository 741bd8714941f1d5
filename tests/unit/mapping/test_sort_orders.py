"""SORTED BY as sort fields: columns in DuckLake's notation, without expressions."""

import pytest
from polynya.ducklake.rows.objects import SortKey
from polynya.iceberg.table_metadata import SortField
from polynya.iceberg.types import Field, List, Primitive
from polynya.mapping.partitions import sort_fields

INT = Primitive("int")
FIELDS = (Field(1, "a", INT), Field(2, 'b "c"', INT), Field(3, "l", List(4, INT)))


def key(expression: str, direction="ASC", null_order="NULLS_LAST") -> SortKey:
    return SortKey(expression, direction, null_order)


ORDERS = [
    ([], []),
    ([key("a")], [SortField(1, "asc", "nulls-last")]),
    ([key('"a"', "DESC", "NULLS_FIRST")], [SortField(1, "desc", "nulls-first")]),
    (
        [key('"b ""c"""'), key("a")],
        [SortField(2, "asc", "nulls-last"), SortField(1, "asc", "nulls-last")],
    ),
    # A partial order would be a different order.
    ([key("a"), key("a + 1")], []),
    ([key("gone")], []),
    ([key("l")], []),
    ([key("a", None)], []),
    ([key("a", "up"), key("a")], []),
    ([key("a", "ASC", None)], []),
]


@pytest.mark.parametrize(("keys", "expected"), ORDERS)
def test_sort_order_consists_of_columns_or_is_omitted(keys, expected):
    assert sort_fields(keys, FIELDS) == expected
