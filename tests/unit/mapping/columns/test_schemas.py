"""Schemas over time from column rows, read by PyIceberg."""

from typing import Any

import pytest
from polynya.ducklake.rows.objects import Column
from polynya.mapping.schemas import Schemas, Visibility, schemas
from pyiceberg.schema import Schema

NOW = 100


def column(
    column_id: int,
    name: str,
    type_: str = "int32",
    begin: int = 1,
    end: int | None = None,
    default: str | None = None,
    parent: int | None = None,
) -> Column:
    return Column(column_id, begin, end, name, type_, default, parent)


def at(found: Schemas, snapshot_id: int = NOW) -> str:
    """The schema as PyIceberg prints it, fields in one line."""
    document = found.schema_at(snapshot_id).json()
    fields = Schema.model_validate(document).fields
    return ", ".join(f"{field.field_id} {field.name} {field.field_type}" for field in fields)


NESTED = [
    column(1, "id", "int64"),
    column(2, "s", "struct"),
    column(3, "a", "int32", parent=2),
    column(4, "l", "list", parent=2),
    column(5, "element", "struct", parent=4),
    column(6, "z", "varchar", parent=5),
    column(7, "m", "map"),
    column(8, "key", "varchar", parent=7),
    column(9, "value", "list", parent=7),
    column(10, "element", "decimal(9,2)", parent=9),
]


def test_field_ids_are_column_ids_at_every_level():
    fields = Schema.model_validate(schemas(NESTED, 1, NOW).schema_at(NOW).json())
    names = {fields.find_column_name(column.column_id) for column in NESTED}
    assert names == {
        *("id", "s", "s.a", "s.l", "s.l.element", "s.l.element.z"),
        *("m", "m.key", "m.value", "m.value.element"),
    }
    for one in NESTED:
        assert fields.find_column_name(one.column_id).split(".")[-1] == one.column_name


def test_every_field_except_map_keys_is_optional():
    fields = Schema.model_validate(schemas(NESTED, 1, NOW).schema_at(NOW).json())
    required = {one.column_id for one in NESTED if fields.find_field(one.column_id).required}
    assert required == {8}


def test_fields_are_in_the_order_of_the_rows():
    columns = [column(3, "c"), column(1, "a"), column(2, "b")]
    assert at(schemas(columns, 1, NOW)) == "3 c int, 1 a int, 2 b int"


ADDED = [column(1, "a"), column(2, "b", begin=5)]
DROPPED = [column(1, "a"), column(2, "b", end=5)]
RENAMED = [column(1, "a", end=5), column(1, "z", begin=5), column(2, "b")]
READDED = [column(1, "a"), column(2, "b", end=5), column(3, "b", "varchar", begin=7)]
WIDENED = [column(1, "a", "int8", end=5), column(1, "a", "int64", begin=5), column(2, "b")]
NO_OP = [column(1, "a", "int8", end=5), column(1, "a", "int16", begin=5)]
MEMBERS = [
    column(1, "s", "struct"),
    column(2, "x", parent=1, end=5),
    column(3, "y", parent=1),
    column(4, "z", parent=1, begin=5),
]
# (columns, (snapshot, id of its schema, the schema))
EVOLUTIONS: dict[str, tuple[list[Column], list[tuple[int, int, str]]]] = {
    "add": (ADDED, [(1, 0, "1 a int"), (4, 0, "1 a int"), (5, 1, "1 a int, 2 b int")]),
    "drop": (DROPPED, [(4, 0, "1 a int, 2 b int"), (5, 1, "1 a int"), (NOW, 1, "1 a int")]),
    "rename": (RENAMED, [(4, 0, "1 a int, 2 b int"), (5, 1, "1 z int, 2 b int")]),
    "drop, add the same name": (
        READDED,
        [(4, 0, "1 a int, 2 b int"), (6, 1, "1 a int"), (7, 2, "1 a int, 3 b string")],
    ),
    "widen": (WIDENED, [(4, 0, "1 a int, 2 b int"), (5, 1, "1 a long, 2 b int")]),
    "widen within one Iceberg type": (NO_OP, [(4, 0, "1 a int"), (5, 0, "1 a int")]),
    "add and drop in a struct": (
        MEMBERS,
        [
            (4, 0, "1 s struct<2: x: optional int, 3: y: optional int>"),
            (5, 1, "1 s struct<3: y: optional int, 4: z: optional int>"),
        ],
    ),
    "back to an older one": (
        [column(1, "a", end=5), column(1, "z", begin=5, end=9), column(1, "a", begin=9)],
        [(4, 0, "1 a int"), (5, 1, "1 z int"), (9, 0, "1 a int")],
    ),
    "promote a decimal": (
        [column(1, "a", "decimal(9,2)", end=5), column(1, "a", "decimal(18,2)", begin=5)],
        [(4, 0, "1 a decimal(9, 2)"), (5, 1, "1 a decimal(18, 2)")],
    ),
}


@pytest.mark.parametrize("evolution", EVOLUTIONS)
def test_every_snapshot_has_the_schema_it_had(evolution):
    columns, expected = EVOLUTIONS[evolution]
    found = schemas(columns, 1, NOW)
    seen = [
        (snapshot, found.schema_at(snapshot).schema_id, at(found, snapshot))
        for snapshot, *_ in expected
    ]
    assert seen == expected
    assert not found.hidden


@pytest.mark.parametrize("evolution", EVOLUTIONS)
def test_schema_ids_are_dense_in_order_of_appearance(evolution):
    found = schemas(EVOLUTIONS[evolution][0], 1, NOW)
    ids = [schema.schema_id for schema in found.distinct()]
    assert ids == list(range(len(ids)))
    first_seen = dict.fromkeys(schema.schema_id for _, schema in found.by_snapshot)
    assert list(first_seen) == ids
    assert len({schema.fields for schema in found.distinct()}) == len(ids)


@pytest.mark.parametrize("evolution", EVOLUTIONS)
def test_later_changes_do_not_affect_the_schema_of_a_snapshot(evolution):
    columns, _ = EVOLUTIONS[evolution]
    now = schemas(columns, 1, NOW)
    for snapshot_id in (1, 4, 5, 8, 9):
        then = [one for one in columns if one.begin_snapshot <= snapshot_id]
        found = schemas(then, 1, snapshot_id)
        assert found.schema_at(snapshot_id) == now.schema_at(snapshot_id)
        assert all(begin <= snapshot_id for begin, _ in found.by_snapshot)


def test_begin_is_the_first_snapshot_of_the_schema():
    found = schemas(READDED, 1, NOW)
    begins = [found.begin_at(snapshot_id)[0] for snapshot_id in (1, 4, 5, 6, 7, NOW)]
    assert begins == [1, 1, 5, 5, 7, 7]


def test_type_change_within_one_iceberg_type_begins_no_schema():
    assert schemas(NO_OP, 1, NOW).begin_at(NOW)[0] == 1


def test_snapshots_before_the_table_have_its_first_schema():
    """Data files of an expired snapshot may begin before any listed snapshot."""
    assert schemas(ADDED, 1, NOW).schema_at(0).schema_id == 0


def test_last_column_id_includes_dropped_and_nested_columns():
    assert schemas(DROPPED, 1, NOW).last_column_id == 2
    assert schemas(NESTED, 1, NOW).last_column_id == 10


def nested(kind: str, *types: str) -> list[Column]:
    members = [column(n, f"c{n}", type_, parent=1) for n, type_ in enumerate(types, start=2)]
    return [column(1, "n", kind), *members, column(9, "ok")]


def changed(before: str, after: str) -> list[Column]:
    return [column(1, "a", before, end=5), column(1, "a", after, begin=5), column(9, "ok")]


# (columns, columns that are hidden now with a part of the reason, the remaining schema)
HIDDEN = [
    ([column(1, "u", "uint64"), column(9, "ok")], {"u": "2^63"}, "9 ok int"),
    ([column(1, "i", "interval"), column(9, "ok")], {"i": "interval"}, "9 ok int"),
    ([column(1, "x", "time_ns"), column(9, "ok")], {"x": "time_ns"}, "9 ok int"),
    (
        nested("struct", "int32", "uint64"),
        {"n.c3": "2^63"},
        "1 n struct<2: c2: optional int>, 9 ok int",
    ),
    (nested("struct", "uint64"), {"n.c2": "2^63", "n": "none of its fields"}, "9 ok int"),
    (nested("list", "uint64"), {"n": "2^63"}, "9 ok int"),
    (nested("map", "varchar", "interval"), {"n": "interval"}, "9 ok int"),
    (nested("map", "uint128", "varchar"), {"n": "double"}, "9 ok int"),
    (changed("int32", "float64"), {"a": "int32 files as float64"}, "9 ok int"),
    (changed("boolean", "int32"), {"a": "boolean files as int32"}, "9 ok int"),
    (changed("date", "timestamp"), {"a": "date files as timestamp"}, "9 ok int"),
    (changed("decimal(9,2)", "decimal(18,4)"), {"a": "decimal(9,2)"}, "9 ok int"),
    (changed("varchar", "json"), {}, "1 a string, 9 ok int"),
    (changed("uint64", "int128"), {"a": "rounded double"}, "9 ok int"),
    (changed("uint32", "int64"), {}, "1 a long, 9 ok int"),
    (changed("float32", "float64"), {}, "1 a double, 9 ok int"),
    (changed("timestamp_ms", "timestamp"), {}, "1 a timestamp, 9 ok int"),
    (changed("timestamp", "timestamp_ns"), {"a": "nanoseconds"}, "9 ok int"),
]


@pytest.mark.parametrize(("columns", "hidden", "left"), HIDDEN)
def test_column_without_an_exact_form_is_hidden_with_its_reason(columns, hidden, left):
    found = schemas(columns, 1, NOW)
    assert at(found) == left
    assert found.hidden.keys() == hidden.keys()
    for name, word in hidden.items():
        assert word in found.hidden[name]


def test_column_is_shown_until_its_type_has_no_iceberg_equivalent():
    """Time travel stays possible, because before the change every file was readable."""
    found = schemas(changed("int32", "float64"), 1, NOW)
    assert (at(found, 4), at(found, 5)) == ("1 a int, 9 ok int", "9 ok int")


def test_column_stays_hidden_because_of_files_with_its_unsupported_type():
    columns = [
        column(1, "a", "int32", end=5),
        column(1, "a", "varchar", begin=5, end=8),
        column(1, "a", "json", begin=8),
        column(9, "ok"),
    ]
    assert at(schemas(columns, 1, NOW)) == "9 ok int"


WITHOUT_TIMES = Visibility(frozenset({"time"}))


def test_setting_hides_a_type_that_iceberg_has():
    found = schemas([column(1, "t", "time"), column(2, "i")], 1, NOW, WITHOUT_TIMES)
    assert at(found) == "2 i int"
    assert "HIDDEN_TYPES" in found.hidden["t"]


def test_setting_hides_a_nested_type():
    found = schemas(nested("list", "time"), 1, NOW, WITHOUT_TIMES)
    assert at(found) == "9 ok int" and found.hidden.keys() == {"n"}


def test_gap_lasts_as_long_as_a_column_is_hidden_without_a_setting():
    columns = [
        column(1, "u", "uint64", begin=3, end=5),
        column(2, "t", "time"),
        column(3, "s", "struct", begin=7, end=8),
        column(4, "t", "time", parent=3, begin=7, end=8),
        column(5, "i", "interval", begin=8),
        column(9, "ok"),
    ]
    asked = schemas(columns, 1, NOW, WITHOUT_TIMES)
    assert asked.hidden.keys() == {"u", "t", "s", "s.t", "i"}
    assert [(gap.begin_snapshot, gap.end_snapshot) for gap in asked.unservable] == [
        (3, 5),
        (8, None),
    ]
    assert "u: values from" in asked.unservable[0].reason and "i: " in asked.unservable[1].reason
    assert len(schemas(columns, 1, 7, WITHOUT_TIMES).unservable) == 1


def test_columns_hidden_in_the_past_are_named_too():
    found = schemas([column(1, "u", "uint64", end=5), column(9, "ok")], 1, NOW)
    assert found.hidden.keys() == {"u"}


def field(found: Schemas, name: str) -> Any:
    return Schema.model_validate(found.schema_at(NOW).json()).find_field(name)


def test_added_column_has_its_default_and_the_table_has_version_3():
    found = schemas([column(1, "a"), column(2, "b", begin=5, default="42")], 1, NOW)
    assert field(found, "b").initial_default == 42
    assert found.format_version == 3


def test_column_as_old_as_its_table_needs_no_default():
    found = schemas([column(1, "a"), column(2, "b", default="42")], 1, NOW)
    assert field(found, "b").initial_default is None
    assert found.format_version == 2


def test_renamed_column_keeps_its_first_snapshot():
    old = [column(1, "a", default="7", end=5), column(1, "z", begin=5, default="7")]
    assert schemas(old, 1, NOW).format_version == 2
    added = [
        column(9, "ok"),
        column(1, "a", default="7", begin=3, end=5),
        column(1, "z", begin=5, default="7"),
    ]
    assert field(schemas(added, 1, NOW), "z").initial_default == 7


def test_default_within_a_struct_requires_version_3_too():
    columns = [
        column(1, "s", "struct"),
        column(2, "x", parent=1),
        column(3, "y", parent=1, begin=5, default="1"),
    ]
    assert schemas(columns, 1, NOW).format_version == 3


IN_LISTS = {
    "in a list": [column(1, "l", "list"), column(2, "element", "struct", parent=1)],
    "in the values of a map": [
        column(1, "m", "map"),
        column(4, "key", "varchar", parent=1),
        column(2, "value", "struct", parent=1),
    ],
}


@pytest.mark.parametrize("columns", IN_LISTS.values(), ids=IN_LISTS)
def test_default_within_a_list_or_a_map_requires_version_3_too(columns):
    members = [column(3, "x", parent=2), column(5, "y", begin=5, default="1", parent=2)]
    found = schemas([*columns, *members], 1, NOW)
    document = Schema.model_validate(found.schema_at(NOW).json())
    assert document.find_field(5).initial_default == 1
    assert found.format_version == 3


NOT_SERVED = [
    ("blob", "\\x0", "BLOB"),
    ("date", "infinity", "infinity"),
    ("float64", "nan", "NaN"),
    ("time", "24:00:00", "24:00:00"),
]


@pytest.mark.parametrize(("type_", "default", "word"), NOT_SERVED)
def test_column_with_a_default_without_an_iceberg_form_is_hidden(type_, default, word):
    columns = [column(1, "ok"), column(2, "b", type_, begin=5, default=default)]
    found = schemas(columns, 1, NOW)
    assert at(found) == "1 ok int"
    assert default in found.hidden["b"] and word in found.hidden["b"]


def test_dropped_column_with_a_default_still_requires_version_3():
    """Its snapshots are listed and need it."""
    columns = [column(1, "a"), column(2, "b", begin=5, end=7, default="42")]
    assert schemas(columns, 1, NOW).format_version == 3
