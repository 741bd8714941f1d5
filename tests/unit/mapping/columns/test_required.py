"""NOT NULL columns as required fields."""

import pytest
from polynya.ducklake.rows.objects import Column
from polynya.mapping.schemas import schemas

BEGIN = 2


def column(begin=BEGIN, end=None, *, nulls_allowed=False, column_id=1, parent=None, type_="int64"):
    return Column(column_id, begin, end, f"c{column_id}", type_, None, parent, nulls_allowed)


STRUCT = column(column_id=2, type_="struct")

# Versions of columns, the first added file, and whether the first field is required by snapshot.
CASES = {
    "always": ([column()], None, {2: True, 9: True}),
    "renamed": ([column(end=4), column(4)], None, {2: True, 4: True}),
    "never": ([column(nulls_allowed=True)], None, {2: False}),
    "SET NOT NULL": ([column(end=4, nulls_allowed=True), column(4)], None, {3: False, 4: False}),
    "DROP NOT NULL": ([column(end=4), column(4, nulls_allowed=True)], None, {3: True, 4: False}),
    "dropped and set again": (
        [column(end=4), column(4, 5, nulls_allowed=True), column(5)],
        None,
        {3: True, 4: False, 5: False},
    ),
    "born later": ([column(3)], None, {3: False}),
    "before and after an added file": ([column()], 5, {4: True, 5: False, 9: False}),
    "a struct": ([STRUCT, column(parent=2)], None, {2: False}),
    "a decimal": ([column(type_="decimal(9,2)")], None, {2: True}),
}


@pytest.mark.parametrize("columns, first_added_file, required", CASES.values(), ids=CASES)
def test_a_column_is_required_while_no_row_of_the_table_ever_had_null_in_it(
    columns, first_added_file, required
):
    found = schemas(columns, BEGIN, 9, first_added_file=first_added_file)
    at = {snapshot_id: found.schema_at(snapshot_id).fields[0] for snapshot_id in required}
    assert {snapshot_id: field.required for snapshot_id, field in at.items()} == required


def test_a_nested_field_is_never_required():
    [struct] = schemas([STRUCT, column(parent=2)], BEGIN, 9).schema_at(9).fields
    assert [field.required for field in struct.type.fields] == [False]


LATER = {
    "added when all rows ended": ([column(3)], {3: True}),
    "and dropped NOT NULL": ([column(3, 5), column(5, nulls_allowed=True)], {3: True, 5: False}),
    "a list": ([column(3, type_="list"), column(3, column_id=2, parent=1)], {3: False}),
}


@pytest.mark.parametrize("columns, required", LATER.values(), ids=LATER)
def test_a_column_without_older_files_is_required(columns, required):
    found = schemas(columns, BEGIN, 9, required_later={1})
    at = {snapshot_id: found.schema_at(snapshot_id).fields[0] for snapshot_id in required}
    assert {snapshot_id: field.required for snapshot_id, field in at.items()} == required
