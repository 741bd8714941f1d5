"""Schemas that clients ask for, compared with the columns of a table."""

from contextlib import nullcontext

import pytest
from polynya.commits.plan.alter_columns import schema_change
from polynya.commits.plan.columns import column_nodes, same_default
from polynya.commits.plan.new_table import columns_of_request
from polynya.ducklake.column_tree import ColumnNode
from polynya.iceberg.types import Field, List, Map, Primitive, Struct
from polynya.rest.schemas import Schema
from polynya.runtime.errors import BadRequest

LAST_COLUMN_ID = 20

COLUMNS = (
    ColumnNode(1, "id", "int64", nulls_allowed=False),
    ColumnNode(2, "small", "int8"),
    ColumnNode(3, "f", "float32"),
    ColumnNode(
        4,
        "st",
        "struct",
        children=(ColumnNode(5, "a", "int32"), ColumnNode(6, "secret", "int128")),
    ),
    ColumnNode(7, "l", "list", children=(ColumnNode(8, "element", "int32"),)),
    ColumnNode(
        9,
        "m",
        "map",
        children=(ColumnNode(10, "key", "varchar"), ColumnNode(11, "value", "int32")),
    ),
    ColumnNode(12, "hidden", "int128"),
)
INT, STRING = Primitive("int"), Primitive("string")
SHOWN = (
    Field(1, "id", Primitive("long"), required=True),
    Field(2, "small", INT),
    Field(3, "f", Primitive("float")),
    Field(4, "st", Struct((Field(5, "a", INT),))),
    Field(7, "l", List(8, INT)),
    Field(9, "m", Map(10, STRING, 11, INT)),
)
COMMENTS = {2: "few values", 12: "of a hidden column"}


def field(id_, name, type_, required=False, **others):
    return {"id": id_, "name": name, "type": type_, "required": required, **others}


def list_of(element="int", element_id=8):
    return {
        "type": "list",
        "element-id": element_id,
        "element": element,
        "element-required": False,
    }


def map_of(key="string", value="int"):
    return {
        "type": "map",
        "key-id": 10,
        "key": key,
        "value-id": 11,
        "value": value,
        "value-required": False,
    }


def struct_of(*fields):
    return {"type": "struct", "fields": list(fields)}


SAME = {
    1: field(1, "id", "long", required=True),
    2: field(2, "small", "int", doc="few values"),
    3: field(3, "f", "float"),
    4: field(4, "st", struct_of(field(5, "a", "int"))),
    7: field(7, "l", list_of()),
    9: field(9, "m", map_of()),
}


def change(wanted, *, is_1_1=False, **others):
    """The change to a schema of these fields."""
    schema = Schema.model_validate({"type": "struct", "fields": list(wanted), **others})
    return schema_change(COLUMNS, SHOWN, COMMENTS, schema, LAST_COLUMN_ID, is_1_1=is_1_1)


def test_the_same_schema_changes_nothing():
    found = change(SAME.values())
    assert found.is_empty and not found.is_reshaped
    assert found.columns == COLUMNS


# Replaced fields, added fields; ids and names and types of what is changed, added and dropped.
CHANGES = {
    "an own type stays when the name changes": (
        {2: field(2, "tiny", "int", doc="few values")},
        [],
        ([(2, "tiny", "int8")], [], ()),
    ),
    "an own type widens": (
        {2: field(2, "small", "long", doc="few values")},
        [],
        ([(2, "small", "int64")], [], ()),
    ),
    "optional": ({1: field(1, "id", "long")}, [], ([(1, "id", "int64")], [], ())),
    "nested": (
        {4: field(4, "st", struct_of(field(5, "b", "long"), field(21, "c", "string")))},
        [],
        ([(5, "b", "int64")], [(21, 4)], ()),
    ),
    "element and value": (
        {7: field(7, "l", list_of("long")), 9: field(9, "m", map_of("string", "long"))},
        [],
        ([(8, "element", "int64"), (11, "value", "int64")], [], ()),
    ),
    "a struct is dropped with what clients do not see of it": ({4: None}, [], ([], [], (4, 5, 6))),
    "added": (
        {},
        [field(21, "n", "decimal(9,2)"), field(22, "n2", list_of("int", 23))],
        ([], [(21, None), (22, None)], ()),
    ),
}


@pytest.mark.parametrize("replaced, more, expected", CHANGES.values(), ids=CHANGES)
def test_fields_are_matched_by_their_ids(replaced, more, expected):
    wanted = [one for one in {**SAME, **replaced}.values() if one is not None]
    found = change([*wanted, *more])
    changed = [(one.column_id, one.column_name, one.column_type) for one in found.changed]
    added = [(one.column.column_id, one.parent_column) for one in found.added]
    assert (changed, added, found.dropped) == expected
    assert "hidden" in [column.column_name for column in found.columns]


def test_a_comment_changes_or_ends_and_that_of_a_hidden_column_stays():
    replaced = {2: field(2, "small", "int"), 3: field(3, "f", "float", doc="new")}
    assert change({**SAME, **replaced}.values()).comments == {2: None, 3: "new"}


def test_a_column_that_becomes_optional_needs_no_new_table_of_inlined_rows():
    found = change({**SAME, 1: field(1, "id", "long")}.values())
    assert [one.nulls_allowed for one in found.changed] == [True]
    assert not found.is_reshaped


REFUSED = {
    "cannot change from long to int": {1: field(1, "id", "int", required=True)},
    "cannot change from float to decimal": {3: field(3, "f", "decimal(9, 2)")},
    "between a value, a struct and a list": {3: field(3, "f", list_of("int", 21))},
    "SET NOT NULL": {2: field(2, "small", "int", required=True)},
    "check those of structs": {4: field(4, "st", struct_of(field(5, "a", "int", required=True)))},
    "taken": {13: field(13, "again", "int")},
    "of st has the field id 2|st.x has the field id 2": {
        4: field(4, "st", struct_of(field(5, "a", "int"), field(2, "x", "int"))),
        2: None,
    },
    "is required, and existing rows": {21: field(21, "n", "int", required=True)},
    "no fixed length": {21: field(21, "n", "fixed[3]")},
    "the default of n has no exact form": {
        21: field(21, "n", "string", **{"initial-default": "NULL"})
    },
    "because the column has the type int8": {2: field(2, "small", "int", **{"write-default": 3})},
    "initial default of small cannot change": {
        2: field(2, "small", "int", **{"initial-default": 3})
    },
    "same name": {21: field(21, "ID", "int")},
    "columns F and f": {2: field(2, "F", "int")},
    "columns hidden and hidden": {21: field(21, "hidden", "int")},
    "columns st.b and st.SECRET|st.SECRET": {
        4: field(4, "st", struct_of(field(5, "SECRET", "int")))
    },
    "needs at least one column": {4: field(4, "st", struct_of())},
    "key of the map m cannot change": {9: field(9, "m", map_of("binary"))},
    "other field ids": {7: field(7, "l", list_of("int", 21))},
    "no usable name": {2: field(2, "", "int")},
    "smaller id": {22: field(22, "n", "int"), 21: field(21, "n2", "int")},
}


@pytest.mark.parametrize("reason, replaced", REFUSED.items(), ids=REFUSED)
def test_what_ducklake_cannot_represent_is_refused(reason, replaced):
    wanted = [one for one in {**SAME, **replaced}.values() if one is not None]
    with pytest.raises(BadRequest, match=reason):
        change(wanted)


def test_columns_cannot_move():
    first, *rest = SAME.values()
    for wanted in ([*rest, first], [field(21, "n", "int"), first, *rest]):
        with pytest.raises(BadRequest, match="cannot move columns"):
            change(wanted)


@pytest.mark.parametrize("field_id", [2, 99], ids=["optional", "unknown"])
def test_identifier_fields_that_iceberg_does_not_allow_are_refused(field_id):
    with pytest.raises(BadRequest, match=f"the field {field_id} cannot be an identifier field"):
        change(SAME.values(), **{"identifier-field-ids": [field_id]})


def test_an_empty_schema_is_refused():
    with pytest.raises(BadRequest, match="at least one column"):
        change([])


SPELLINGS = [
    ("2024-01-02T03:04:05+00:00", "2024-01-02T03:04:05.000000+00:00", True),
    ("2024-01-02T03:04:05+00:00", "2024-01-02T03:04:06+00:00", False),
    ("1.50", "1.5", False),
    ("a", "b", False),
    ("a", None, False),
    (1, 1.0, True),
]


@pytest.mark.parametrize("one, other, is_same", SPELLINGS)
def test_a_time_has_several_spellings(one, other, is_same):
    assert same_default(one, other) == is_same


# Names of columns, and whether native DuckLake reserves them at the top level: before 1.1, since.
NAMES = {
    **dict.fromkeys(("row_id", "Begin_Snapshot", "END_SNAPSHOT"), (True, False)),
    **dict.fromkeys(("_ducklake_internal_row_id", "_DuckLake_internal_snapshot_id"), (True, True)),
    **dict.fromkeys(("_ducklake_row_id", "_ducklake_x", "ctid", "XMIN", "tableoid"), (True, True)),
    **dict.fromkeys(("rowid", "_row_id", "ducklake_row_id", "snapshot_id"), (False, False)),
}


def renamed(name, is_1_1):
    fields = {**SAME, 1: field(1, name, "long", required=True)}.values()
    return lambda: change(fields, is_1_1=is_1_1)


def added(name, is_1_1):
    return lambda: change([*SAME.values(), field(21, name, "int")], is_1_1=is_1_1)


def created(name, is_1_1):
    field = {"id": 1, "name": name, "required": False, "type": "int"}
    schema = Schema.model_validate({"type": "struct", "fields": [field]})
    return lambda: columns_of_request(schema, keep_ids=False, is_1_1=is_1_1)


@pytest.mark.parametrize("action", [renamed, added, created])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_1_1", [False, True])
def test_names_that_ducklake_reserves_are_refused(name, action, is_1_1):
    with (
        pytest.raises(BadRequest, match=f"DuckLake reserves the column name {name} ")
        if NAMES[name][is_1_1]
        else nullcontext()
    ):
        action(name, is_1_1)()


def test_names_within_a_column_are_free_and_a_name_that_the_table_has_stays():
    column_nodes([Field(1, "a", Struct((Field(2, "row_id", INT),)))], {})
    shown = (Field(1, "row_id", INT), Field(2, "b", INT))
    columns = (ColumnNode(1, "row_id", "int32"), ColumnNode(2, "b", "int32"))
    fields = [field(1, "row_id", "int"), field(2, "c", "int")]
    wanted = Schema.model_validate({"type": "struct", "fields": fields})
    assert [one.column_name for one in schema_change(columns, shown, {}, wanted, 2).columns] == [
        "row_id",
        "c",
    ]
