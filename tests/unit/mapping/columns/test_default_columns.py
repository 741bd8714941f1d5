"""When files lack a column that has a default."""

import pytest
from polynya.ducklake.rows.files import FileGroup
from polynya.ducklake.rows.lifetimes import Lifetime
from polynya.ducklake.rows.objects import Column, MappedName
from polynya.mapping.schemas import default_columns, schemas, unservable_defaults

COLUMNS = [
    Column(1, 1, None, "i", "int32", None, None),
    Column(2, 5, 9, "d", "int32", "7", None),
    Column(2, 9, None, "e", "int32", "7", None),  # renamed
    Column(3, 6, 12, "gone", "int32", "8", None),
    Column(4, 1, None, "s", "struct", None, None),
    Column(5, 1, None, "a", "int32", None, 4),
    Column(6, 8, None, "b", "int32", "9", 4),
    Column(7, 5, None, "null", "int32", None, None),
    Column(8, 1, None, "l", "list", None, None),
    Column(9, 1, None, "element", "struct", None, 8),
    Column(10, 1, None, "a", "int32", None, 9),
    Column(11, 9, None, "b", "int32", "9", 9),
]
FOUND = default_columns(schemas(COLUMNS, 1, 20), COLUMNS)
PLAIN, ADDED = FileGroup(None, None), FileGroup(None, 3)


def test_columns_have_their_newest_dotted_name_and_their_first_snapshot():
    assert {column.name: column.born for column in FOUND} == {
        "e": 5,
        "gone": 6,
        "s.b": 8,
        "l.element.b": 9,
    }


# (until when older files are visible, groups, name mapping, snapshots with a gap, by column)
GAPS = [
    ({}, {PLAIN: Lifetime(1, None)}, [], {}),
    ({2: None}, {}, [], {"e": range(5, 20)}),
    ({2: 7}, {}, [], {"e": range(5, 7)}),
    ({3: None}, {}, [], {"gone": range(6, 12)}),
    ({6: 11}, {}, [], {"s.b": range(8, 11)}),
    ({11: 12}, {}, [], {"l.element.b": range(9, 12)}),
    (
        {},
        {ADDED: Lifetime(10, 15)},
        [],
        {
            "e": range(10, 15),
            "gone": range(10, 12),
            "s.b": range(10, 15),
            "l.element.b": range(10, 15),
        },
    ),
    (
        {},
        {ADDED: Lifetime(10, None)},
        [
            MappedName(3, 0, "d", 2, None, False),
            MappedName(3, 1, "b", 6, None, False),
            MappedName(3, 2, "b", 11, None, False),
        ],
        {"gone": range(10, 12)},
    ),
]


@pytest.mark.parametrize(("older", "groups", "names", "expected"), GAPS)
def test_a_gap_lasts_as_long_as_files_without_the_column_are_visible(
    older, groups, names, expected
):
    found = unservable_defaults(FOUND, older, groups, names)
    seen = {
        name: [
            at
            for at in range(1, 20)
            if any(
                gap.begin_snapshot <= at and (gap.end_snapshot is None or at < gap.end_snapshot)
                for gap in unservable
            )
        ]
        for name, unservable in found.items()
    }
    assert {name: snapshots for name, snapshots in seen.items() if snapshots} == {
        name: list(snapshots) for name, snapshots in expected.items()
    }
