"""Rows of ducklake_column that form a valid tree of columns, and rows that do not."""

from collections.abc import Sequence

import pytest
from polynya.ducklake.column_tree import MAX_DEPTH, MAX_FIELD_ID, column_fault
from polynya.ducklake.rows.objects import Column
from polynya.mapping.schemas import schemas


def column(column_id, name="c", type_="int32", parent=None, begin=1, end=None) -> Column:
    return Column(column_id, begin, end, name, type_, None, parent)


def nested(depth: int) -> list[Column]:
    """A column inside depth - 1 structs."""
    levels = range(1, depth + 1)
    return [
        column(i, f"n{i}", "struct" if i < depth else "int32", i - 1 if i > 1 else None)
        for i in levels
    ]


SOUND: list[Sequence[Column]] = [
    [],
    [column(0, "a"), column(MAX_FIELD_ID, "b")],
    [column(1, "s", "struct"), column(2, "s", parent=1)],
    [column(1, "l", "list"), column(2, "element", parent=1)],
    [column(1, "m", "map"), column(2, "key", parent=1), column(3, "value", parent=1)],
    [column(1, "a", "not known"), column(2, "b", "variant")],
    nested(MAX_DEPTH),
]


@pytest.mark.parametrize("columns", SOUND, ids=range(len(SOUND)))
def test_a_tree_of_columns_has_no_fault(columns):
    assert column_fault(columns) is None


FAULTS = [
    ([column(None)], "None is no column_id"),
    ([column(-1)], "-1 is no column_id"),
    ([column(MAX_FIELD_ID + 1)], "2147483448 is no column_id"),
    ([column(1, None)], "has no name"),
    ([column(1, "")], "has no name"),
    ([column(1, "c", None)], "'c' has no type"),
    ([column(1, "c", "")], "'c' has no type"),
    ([column(1, "a"), column(1, "b")], "the column_id 1 is there 2 times"),
    ([column(1, "a"), column(2, "a")], "2 columns have the name 'a'"),
    ([column(1, "s", "struct")], "the struct 's' has 0 children"),
    ([column(1, "l", "list")], "the list 'l' has 0 children"),
    (
        [column(1, "l", "list"), column(2, "a", parent=1), column(3, "b", parent=1)],
        "the list 'l' has 2 children",
    ),
    ([column(1, "m", "map"), column(2, "key", parent=1)], "the map 'm' has 1 children"),
    ([column(1), column(2, parent=7)], "names no column that is there"),
    ([column(1, type_="struct", parent=1)], "inside each other"),
    (
        [column(1, type_="struct", parent=2), column(2, type_="struct", parent=1)],
        "inside each other",
    ),
    (nested(MAX_DEPTH + 1), "nested deeper than 100 levels"),
    (nested(5000), "nested deeper than 100 levels"),
]


@pytest.mark.parametrize(("columns", "reason"), FAULTS, ids=[reason for _, reason in FAULTS])
def test_a_fault_is_named(columns, reason):
    fault = column_fault(columns)
    assert fault and reason in fault and "restore it from a backup" in fault


def test_a_fault_makes_a_gap_while_it_is_visible():
    columns = [column(1, "a"), column(2, "b", None, begin=3, end=5), column(3, "c", begin=7)]
    found = schemas(columns, 1, 100)
    assert [(gap.begin_snapshot, gap.end_snapshot) for gap in found.faults] == [(3, 5)]
    assert [field.name for field in found.schema_at(4).fields] == ["a"]
    assert [field.name for field in found.schema_at(100).fields] == ["a", "c"]


def test_a_table_with_only_faulty_columns_has_a_schema_without_fields():
    found = schemas([column(1, "a", None)], 1, 100)
    assert found.schema_at(100).fields == () and len(found.faults) == 1
