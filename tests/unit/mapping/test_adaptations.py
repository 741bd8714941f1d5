"""What data files have otherwise for which clients, at each snapshot."""

from dataclasses import replace

import pytest
from polynya.ducklake.rows.files import DataFile
from polynya.ducklake.rows.objects import Column
from polynya.iceberg.types import Field, List, Map, Primitive, Struct, TableSchema
from polynya.mapping.adaptations import (
    MISREAD_ADDED_FILES,
    Adaptation,
    Adaptations,
    AddedFiles,
    TableChanges,
)
from polynya.mapping.name_mappings import Mappings
from polynya.mapping.schemas import Schemas
from polynya.runtime.settings import CLIENTS

LONG, TEXT = Primitive("long"), Primitive("string")


def column(id_: int, type_: str, begin: int = 2, end: int | None = None, parent=None) -> Column:
    return Column(id_, begin, end, f"c{id_}", type_, None, parent)


def schemas(*by_snapshot: tuple[int, tuple[Field, ...]]) -> Schemas:
    numbered = enumerate(by_snapshot)
    begins = tuple((begin, TableSchema(n, fields)) for n, (begin, fields) in numbered)
    return Schemas(begins, {}, (), (), 9)


def field(id_: int, type_=LONG, default=None) -> Field:
    return Field(id_, f"c{id_}", type_, initial_default=default)


def changes(clients, columns, *by_snapshot) -> tuple[int, TableChanges] | None:
    """What an old file has otherwise, and since when."""
    return old_file(Adaptations(schemas(*by_snapshot), columns, clients), 9)


def file(begin: int) -> DataFile:
    return DataFile(0, begin, None, "f.parquet", True, 1, 9, None, None, None, None)


def old_file(of: Adaptations, at: int) -> tuple[int, TableChanges] | None:
    adaptation = of.adaptation_at(file(1), at)
    assert adaptation is None or adaptation.added == ()
    return adaptation and (adaptation.snapshot_id, adaptation.changes)


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_a_table_of_ordinary_types_stays_as_it_is(client):
    columns = [column(1, "int64"), column(2, "varchar"), column(3, "timestamp")]
    of = Adaptations(schemas((2, (field(1), field(2, TEXT), field(3)))), columns, {client})
    assert (
        of.adaptation_at(file(2), 9) is None
        and of.changed_at(9) == 0
        and of.fingerprint_parts(9) == ()
    )


@pytest.mark.parametrize(
    ("type_", "clients"),
    [
        ("variant", {"polars", "pyiceberg", "spark", "trino"}),
        ("interval", {"polars", "pyiceberg", "spark", "trino"}),
        ("timestamp_ms", {"datafusion"}),
        ("hugeint", set()),
    ],
)
def test_a_hidden_column_is_left_out_for_those_that_fail_over_its_type(type_, clients):
    columns = [column(1, "int64"), column(2, type_)]
    for client in CLIENTS:
        found = changes({client}, columns, (2, (field(1),)))
        assert found == ((2, TableChanges((2,))) if client in clients else None), client


def test_a_column_is_left_out_from_the_snapshot_on_that_hides_or_drops_it():
    columns = [column(1, "int64"), column(2, "variant", 2, 5), column(3, "interval", 7)]
    of = Adaptations(schemas((2, (field(1), field(2))), (5, (field(1),))), columns, {"pyiceberg"})
    assert [old_file(of, n) for n in (4, 5, 6, 7, 9)] == [
        None,
        (5, TableChanges((2,))),
        (5, TableChanges((2,))),
        (7, TableChanges((2, 3))),
        (7, TableChanges((2, 3))),
    ]
    assert [of.changed_at(n) for n in (4, 5, 6, 7)] == [0, 5, 5, 7]
    # A later snapshot changes nothing about an earlier one.
    earlier = Adaptations(
        schemas((2, (field(1), field(2))), (5, (field(1),))), columns[:2], {"pyiceberg"}
    )
    assert [earlier.adaptation_at(file(1), n) for n in (4, 5, 6)] == [
        of.adaptation_at(file(1), n) for n in (4, 5, 6)
    ]


def test_a_hidden_field_is_left_out_with_its_column_alone():
    struct = Struct((field(3),))
    columns = [column(1, "struct"), column(2, "variant", parent=1), column(3, "int64", parent=1)]
    assert changes({"trino"}, columns, (2, (field(1, struct),))) is None
    columns += [column(5, "int64")]
    assert changes({"trino"}, columns, (2, (field(5),))) == (2, TableChanges((1,)))


@pytest.mark.parametrize("type_", ["uint8", "uint16", "uint32"])
def test_unsigned_integers_are_signed_for_spark(type_):
    nested = [column(1, "list"), column(2, type_, parent=1)]
    for columns in ([column(1, type_)], nested):
        assert changes({"spark"}, columns, (2, (field(1),))) == (2, TableChanges((), True))
        assert changes({"trino", "duckdb"}, columns, (2, (field(1),))) is None
        assert changes({"spark"}, columns, (2, (field(7),))) == (2, TableChanges((1,)))


def test_columns_in_milliseconds_have_no_statistics_for_spark_and_flink():
    columns = [column(1, "struct"), column(2, "timestamp_ms", parent=1), column(3, "timestamp_ms")]
    of_columns = (2, (field(1), field(3)))
    for client in CLIENTS:
        found = changes({client}, columns, of_columns)
        expected = (
            (2, TableChanges(without_statistics=(2, 3))) if client in ("spark", "flink") else None
        )
        assert found == expected, client


def test_older_files_of_a_column_that_became_double_have_no_statistics_of_it_for_trino():
    columns = [column(1, "float32", 2, 5), column(1, "float64", 5, 7), column(1, "float64", 7)]
    columns += [column(2, "float64"), column(3, "float32")]
    by_snapshot = (2, (field(1), field(2), field(3)))
    for client in CLIENTS - {"trino"}:
        assert not Adaptations(schemas(by_snapshot), columns, {client}).are_some, client
    of = Adaptations(schemas(by_snapshot), columns, {"trino"})
    found = [of.adaptation_at(file(begin), at) for begin, at in ((2, 4), (2, 5), (5, 9), (6, 9))]
    expected = Adaptation(5, (), TableChanges(), doubles=(1,))
    assert found == [None, expected, expected, None]
    assert [of.changed_at(at) for at in (4, 5, 9)] == [0, 5, 5]
    assert of.fingerprint_parts(4) == () != of.fingerprint_parts(5)
    assert of.last_changed == 5 and of.are_some
    assert [of.promoted_floats_at(at) for at in (4, 5)] == [set(), {1}]


def test_added_files_may_have_float_in_any_column_that_is_double():
    columns = [column(1, "float64"), column(2, "float64"), column(3, "int64"), column(4, "float64")]
    shown = (2, tuple(field(n) for n in (1, 2, 3, 4)))
    added = AddedFiles(Mappings({5: {("a",): 1, ("b",): 3}}), {})
    of = {client: Adaptations(schemas(shown), columns, {client}, added) for client in CLIENTS}
    adapted = {c: o.adaptation_at(replace(file(7), mapping_id=5), 9) for c, o in of.items()}
    assert {c for c, one in adapted.items() if one and one.doubles} == {"trino"}
    assert (adapted["trino"].doubles, adapted["trino"].snapshot_id) == ((1,), 7)
    without = Adaptations(schemas(shown), columns[2:], {"trino"}, added)
    assert without.adaptation_at(replace(file(7), mapping_id=5), 9).doubles == ()
    assert without.fingerprint_parts(9) != of["trino"].fingerprint_parts(9)


def test_lists_and_maps_have_logical_types_for_daft():
    columns = [column(1, "list"), column(2, "map", parent=1), column(3, "int64", parent=2)]
    for client in CLIENTS:
        found = changes({client}, columns, (2, (field(1),)))
        assert found == ((2, TableChanges(logical_types=2)) if client == "daft" else None), client


def test_json_is_a_string_for_polars():
    columns = [column(1, "struct"), column(2, "json", parent=1)]
    for client in CLIENTS:
        found = changes({client}, columns, (2, (field(1),)))
        expected = (2, TableChanges(has_strings=True)) if client == "polars" else None
        assert found == expected, client


def test_uuids_have_no_bounds_for_spark():
    columns = [column(1, "struct"), column(2, "uuid", parent=1), column(3, "timestamp_ms")]
    of_columns = (2, (field(1), field(3)))
    for client in CLIENTS - {"flink"}:
        found = changes({client}, columns, of_columns)
        changed = (2, TableChanges(without_statistics=(2, 3), without_bounds=(2,)))
        expected = changed if client == "spark" else None
        assert found == expected, client


def test_defaults_and_types_change_a_file_together():
    columns = [column(1, "uint8"), column(2, "int64", 4)]
    by_snapshot = [(2, (field(1),)), (4, (field(1), field(2, default=7)))]
    of = Adaptations(schemas(*by_snapshot), columns, {"spark"})
    before, after = of.adaptation_at(file(2), 3), of.adaptation_at(file(2), 4)
    assert (before.snapshot_id, before.added) == (2, ())
    assert (after.snapshot_id, [of.field.field_id for of in after.added]) == (4, [2])
    assert before.changes == after.changes == TableChanges((), True)
    assert (
        of.adaptation_at(file(5), 9).added == () and of.adaptation_at(file(5), 9).snapshot_id == 2
    )
    assert of.filled_in == {2}
    assert (
        Adaptations(schemas(*by_snapshot), columns, {"daft"}).adaptation_at(file(2), 4).changes
        == TableChanges()
    )


def test_manifests_of_other_clients_have_other_names():
    columns = [column(1, "uint8"), column(2, "timestamp_ms"), column(3, "int64", 4)]
    by_snapshot = [(2, (field(1), field(2))), (4, (field(1), field(2), field(3, default=7)))]
    fingerprint_parts = {
        Adaptations(schemas(*by_snapshot), columns, clients).fingerprint_parts(9)
        for clients in ({"spark"}, {"flink"}, {"trino"}, {"polars"}, {"spark", "flink"})
    }
    assert len(fingerprint_parts) == 4  # Spark needs what both need


def test_a_column_that_is_its_own_parent_ends_nothing():
    columns = [column(1, "variant", parent=1), column(2, "variant", parent=3), column(3, "int64")]
    assert changes({"trino"}, columns, (2, (field(7),))) == (2, TableChanges((1, 3)))


@pytest.mark.parametrize(
    ("types", "clients", "words"),
    [
        (["int64"], CLIENTS, ""),
        (["uint8", "json"], {"spark"}, "unsigned integers are signed where that changes no value"),
        (["timestamp_ms"], {"flink"}, "times in milliseconds have no statistics"),
        (["float32", "float64"], {"trino"}, ""),
        (["uuid"], {"spark"}, "UUIDs have no statistics and no bounds"),
        (
            ["uuid", "timestamp_ms", "json"],
            {"spark", "polars"},
            "JSON is a string; UUIDs have no statistics and no bounds; times in milliseconds have "
            "no statistics",
        ),
    ],
)
def test_what_files_have_otherwise_is_said_in_words(types, clients, words):
    columns = [column(number, type_) for number, type_ in enumerate(types, start=1)]
    shown = tuple(field(c.column_id) for c in columns)
    of = Adaptations(schemas((2, shown)), columns, clients)
    assert (of.described_at(1), of.described_at(2), of.described_at(9)) == ("", words, words)


def test_words_say_of_defaults_from_the_snapshot_on_that_shows_one():
    columns = [column(1, "int64"), column(2, "int64", 5), column(3, "variant", 2, 7)]
    with_default = (field(1), field(2, default=7))
    of = Adaptations(
        schemas((2, (field(1), field(3))), (5, (*with_default, field(3))), (7, with_default)),
        columns,
        {"trino"},
    )
    default = "columns that a file lacks have their default"
    assert [of.described_at(n) for n in (2, 5, 7)] == [
        *("", default, f"{default}; hidden and dropped columns are left out"),
    ]


def test_a_field_loses_its_default_when_the_schema_does():
    """DuckDB 1.5.5 drops the default of a struct's field when the field is renamed."""

    def struct(default):
        return Field(1, "s", Struct((Field(2, "c", LONG, initial_default=default),)))

    columns = [column(1, "struct"), column(2, "int64", 4, parent=1)]
    of = Adaptations(
        schemas((2, (struct(None),)), (4, (struct(7),)), (6, (struct(None),))), columns, {"daft"}
    )
    found = [of.adaptation_at(file(2), at) for at in (3, 4, 5, 6)]
    assert found[0] is found[3] is None
    [added] = found[1].added
    assert (added.parent, added.depth, added.field.initial_default) == (1, 1, 7)
    assert found[1] == found[2] and found[1].snapshot_id == 4


@pytest.mark.parametrize("client", ["duckdb", "pyiceberg", "sail"])
def test_fields_of_structs_are_added_for_those_that_find_their_default_in_a_null_struct(client):
    inner = Struct((Field(3, "c", LONG, initial_default=7),))
    shown = field(1, default=7), Field(2, "s", inner)
    columns = [column(1, "int64", 4), column(2, "struct"), column(3, "int64", 4, parent=2)]
    of = Adaptations(schemas((4, shown)), columns, {client})
    added = {1, 3} if client == "pyiceberg" else {3}
    assert {column.field.field_id for column in of.adaptation_at(file(2), 9).added} == added
    assert of.filled_in == added


def test_entries_tell_clickhouse_since_when_a_file_has_its_columns():
    columns = [column(1, "int64"), column(2, "int64", 4)]
    shown = (2, (field(1),)), (4, (field(1), field(2, default=7)))
    of = {name: Adaptations(schemas(*shown), columns, clients) for name, clients in CLICKHOUSE}
    assert {name for name, one in of.items() if one.tells_since} == {"named", "all"}
    prints = {name: one.fingerprint_parts(9) for name, one in of.items()}
    assert prints["named"] == prints["all"] != prints["daft"]
    assert not Adaptations(schemas(shown[0]), columns[:1], {"clickhouse"}).tells_since


CLICKHOUSE = (
    ("named", {"clickhouse"}),
    ("daft", {"daft"}),
    ("all", CLIENTS),
)
ADDED = AddedFiles(Mappings({5: {("I",): 1, ("s",): 3, ("s", "A"): 4}}), {5: {2: "K"}})


def added_file(path: str, begin: int = 3) -> DataFile:
    return replace(file(begin), mapping_id=5, path=path)


def test_added_files_get_ids_names_and_the_columns_in_their_paths():
    columns = [column(1, "int64"), column(2, "varchar"), column(3, "struct")]
    columns += [column(4, "int64", parent=3), column(5, "int64")]
    fields = (field(1), field(2, TEXT), Field(3, "c3", Struct((field(4),))), field(5, LONG, 9))
    of = Adaptations(schemas((2, fields)), columns, {"daft"}, ADDED)
    adaptation = of.adaptation_at(added_file("a/K=x%20y/f.parquet"), 9)
    names = {("I",): (1, "c1"), ("s",): (3, "c3"), ("s", "A"): (4, "c4")}
    assert adaptation.names == names and adaptation.in_path == {2: "x y"}
    values = {of.field.field_id: of.field.initial_default for of in adaptation.added}
    assert values == {2: "x y", 5: 9}
    assert adaptation.snapshot_id == 3 and of.adapts_added


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_added_files_stay_as_they_are_for_those_that_read_them(client):
    of = Adaptations(schemas((2, (field(1),))), [column(1, "int64")], {client}, ADDED)
    is_adapted = client in MISREAD_ADDED_FILES
    assert (of.adaptation_at(added_file("f.parquet"), 9) is not None) == is_adapted == of.are_some
    assert bool(of.fingerprint_parts(9)) == is_adapted


def test_added_files_have_signed_integers_whatever_the_table_has():
    """A BIGINT may be a UINTEGER there."""
    for client in CLIENTS & MISREAD_ADDED_FILES:
        of = Adaptations(schemas((2, (field(1),))), [column(1, "int64")], {client}, ADDED)
        changes = of.adaptation_at(added_file("f.parquet"), 9).changes
        assert changes.has_signed == (client in {"pyiceberg", "spark"}), client


def test_added_files_lose_hidden_columns_of_any_type():
    columns = [column(n, "int64") for n in (1, 2, 3)] + [column(4, "int64", parent=1)]
    names = {("a",): 1, ("b",): 2, ("a", "c"): 4}
    shown = (2, (field(1), field(2))), (5, (field(1), field(3))), (7, (field(1), field(2)))
    for client in CLIENTS & MISREAD_ADDED_FILES:
        of = Adaptations(schemas(*shown), columns, {client}, AddedFiles(Mappings({5: names}), {}))
        adapted = {at: of.adaptation_at(replace(file(2), mapping_id=5), at) for at in (4, 6, 9)}
        left_out = {at: of.changes.left_out for at, of in adapted.items()}
        loses = client in {"polars", "pyiceberg", "spark", "trino"}
        assert left_out == {4: (), 6: (2,) if loses else (), 9: ()}, client
        if loses:
            assert [of.snapshot_id for of in adapted.values()] == [2, 5, 7]
            assert (of.changed_at(4), of.changed_at(6)) == (0, 5)


def with_null(of: Adaptations, at: int, of_file: DataFile | None = None) -> list[Field]:
    adaptation = of.adaptation_at(of_file or file(2), at)
    return [] if adaptation is None else [added.field for added in adaptation.added]


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_files_get_all_columns_that_they_lack_for_those_that_filter_no_others(client):
    """Each of them may be the only one that somebody reads."""
    columns = [column(1, "int64"), column(2, "int64", 4), column(3, "varchar", 6)]
    first, second = field(2), field(3, TEXT)
    shown = (2, (field(1),)), (4, (field(1), first)), (6, (field(1), first, second))
    of = Adaptations(schemas(*shown), columns, {client})
    if client != "daft":
        assert not of.are_some
        return
    assert [with_null(of, at) for at in (3, 4, 6)] == [[], [first], [first, second]]
    assert with_null(of, 9, file(4)) == [first, second]  # the same transaction may have added it
    assert with_null(of, 9, file(5)) == [second]
    assert of.adaptation_at(file(7), 9) is None and of.filled_in == {2, 3}
    [before, now, later] = (of.adaptation_at(file(2), at) for at in (4, 6, 9))
    assert (before.snapshot_id, now.snapshot_id) == (4, 6) and now == later
    words = "columns that a file lacks are in it, with NULL"
    assert [of.described_at(at) for at in (3, 4)] == ["", words]


def test_a_column_that_is_added_changes_no_name_at_earlier_snapshots():
    columns = [column(1, "json"), column(2, "int64", 4), column(3, "int64", 6)]
    shown = [
        (2, (field(1),)),
        (4, (field(1), field(2))),
        (6, (field(1), field(2), field(3, LONG, 7))),
    ]
    prints = []
    for number in (1, 2, 3):
        of = Adaptations(schemas(*shown[:number]), columns[:number], {"daft", "polars"})
        prints.append([of.fingerprint_parts(at) for at in (3, 5, 7)])
    assert prints[0][0] == prints[1][0] == prints[2][0] != prints[1][1] == prints[2][1]
    assert len({prints[0][2], prints[1][2], prints[2][2]}) == 3


def test_columns_as_old_as_the_table_are_in_all_files_but_added_ones():
    columns = [column(1, "int64"), column(2, "int64"), column(3, "int64", 4)]
    shown = (2, (field(1), field(2))), (4, (field(1), field(2), field(3)))
    of = Adaptations(schemas(*shown), columns, {"daft"}, AddedFiles(Mappings({5: {("I",): 1}}), {}))
    assert with_null(of, 9, added_file("f.parquet", 6)) == [field(2), field(3)]
    assert [with_null(of, 9, file(begin)) for begin in (2, 5)] == [[field(3)], []]


def test_a_struct_that_a_file_lacks_has_the_fields_of_the_snapshot():
    """Some clients read no struct with fewer fields than that of the table."""
    younger = Field(2, "s", Struct((field(3),))), Field(2, "s", Struct((field(3), field(4))))
    columns = [column(1, "int64"), column(2, "struct", 4), column(3, "int64", 4, parent=2)]
    columns += [column(4, "int64", 6, parent=2)]
    of = Adaptations(
        schemas(
            (2, (field(1),)), *((at, (field(1), s)) for at, s in zip((4, 6), younger, strict=True))
        ),
        columns,
        {"daft"},
    )
    assert [with_null(of, at) for at in (4, 6)] == [[younger[0]], [younger[1]]]
    assert with_null(of, 9, file(5)) == []


IN_LIST = List(3, Struct((field(4),)))


@pytest.mark.parametrize(
    ("type_", "clients"),
    [
        (LONG, {"daft", "pyiceberg"}),
        (List(3, LONG), {"daft", "pyiceberg"}),
        (Struct((field(3, IN_LIST),)), {"daft"}),
        (Map(3, TEXT, 5, IN_LIST), {"daft"}),
        (Primitive("variant"), set()),
        (Struct((field(3, Primitive("variant")),)), set()),
    ],
)
def test_no_column_has_null_where_a_client_would_read_another_value(type_, clients):
    """PyIceberg reads a NULL list of structs as empty; where a file lacks it, as NULL."""
    columns = [column(1, "int64"), column(2, "int64", 4)]
    shown = (2, (field(1),)), (4, (field(1), field(2, type_)))
    for beside in ("daft", "pyiceberg"):
        of = Adaptations(schemas(*shown), columns, {"daft", beside})
        assert with_null(of, 9) == ([field(2, type_)] if beside in clients else []), beside


def test_a_column_that_is_never_null_is_in_all_files_with_rows():
    required = replace(field(2), required=True)
    columns = [column(1, "int64"), column(2, "int64", 4)]
    of = Adaptations(schemas((2, (field(1),)), (4, (field(1), required))), columns, {"daft"})
    assert not of.are_some
