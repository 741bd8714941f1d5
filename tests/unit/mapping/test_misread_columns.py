"""Which columns are hidden for clients that somebody has named, and where."""

import pytest
from polynya.ducklake.rows.objects import Column
from polynya.mapping.misread_columns import (
    lacks_vectors,
    may_be_large,
    misread,
    misreads_partitions,
    scales,
)
from polynya.runtime.settings import CLIENTS, chosen


def column(id_: int, type_: str, parent=None, default=None, begin=2) -> Column:
    return Column(id_, begin, None, f"c{id_}", type_, default, parent)


OF_VERSION_3 = {"clickhouse", "datafusion", "flink", "polars", "pyiceberg", "trino"}


def hidden(columns, *clients, large=()) -> set[int]:
    return {*misread(columns, frozenset(clients), large)}


@pytest.mark.parametrize(
    ("type_", "clients"),
    [
        ("time", {"clickhouse", "flink", "spark"}),
        ("blob", {"flink"}),
        ("variant", OF_VERSION_3 | {"daft", "sail"}),
        ("geometry", OF_VERSION_3 | {"spark"}),
        ("timestamp_ms", {"datafusion"}),
        ("uuid", {"daft"}),
        ("timestamp_ns", {"flink", "sail", "spark", "trino"}),
        ("timestamptz_ns", {"duckdb", "flink", "sail", "spark", "trino"}),
        ("int64", set()),
    ],
)
def test_a_type_is_hidden_from_those_that_misread_it(type_, clients):
    columns = [column(1, "int64"), column(2, type_)]
    for client in CLIENTS:
        assert hidden(columns, client) == ({2} if client in clients else set()), client


def test_nobody_has_named_all():
    assert chosen(CLIENTS) == chosen(frozenset()) == frozenset()
    assert chosen(CLIENTS - {"sail"}) == CLIENTS - {"sail"}


def test_lists_and_maps_of_structs_are_hidden_from_pyiceberg():
    columns = [column(1, "struct"), column(2, "list", 1), column(3, "struct", 2)]
    columns += [column(4, "int64", 3), column(5, "list"), column(6, "int8", 5)]
    columns += [column(7, "map"), column(8, "varchar", 7), column(9, "uint32", 7)]
    assert hidden(columns, "pyiceberg") == {2, 7}
    assert hidden(columns, "polars", "duckdb") == set()


def test_a_default_in_a_list_is_hidden_and_one_in_a_struct_is_not():
    columns = [column(1, "list"), column(2, "struct", 1), column(3, "int64", 2, "9")]
    columns += [column(4, "struct"), column(5, "int64", 4, "9")]
    assert hidden(columns, "trino") == {3}
    assert hidden(columns, "duckdb") == set()


def test_a_default_in_a_later_struct_is_hidden_from_those_that_find_it_where_the_struct_is_null():
    columns = [column(1, "struct"), column(2, "int64", 1, "9", begin=5)]
    columns += [column(3, "struct", 1, begin=5), column(4, "int64", 3, "9", begin=6)]
    assert hidden(columns, "pyiceberg") == hidden(columns, "duckdb") == {4}
    assert hidden(columns, "sail", "trino") == set()


def test_a_default_in_a_struct_is_hidden_if_an_added_file_lacks_the_struct():
    columns = [column(1, "struct"), column(2, "struct", 1), column(3, "int64", 2, "9", begin=5)]
    for files, ids in (([{1, 2}], set()), ([{1, 2}, {1}], {3}), ([{4}], {3}), ([()], {3})):
        assert {*misread(columns, {"pyiceberg"}, (), (), files)} == ids, files


@pytest.mark.parametrize(
    ("clients", "needs"),
    [
        ({"trino"}, True),
        ({"daft", "clickhouse", "flink"}, True),
        ({"flink"}, False),
        ({"trino", "spark"}, False),
        (set(), False),
    ],
)
def test_position_deletes_are_for_those_that_know_neither_vectors_nor_defaults(clients, needs):
    assert lacks_vectors(clients) == needs


def test_a_struct_is_hidden_from_those_that_fail_over_a_field_that_they_need_not_read():
    """Files lose columns of the top level alone."""
    columns = [column(1, "int64"), column(2, "struct"), column(3, "struct", 2)]
    columns += [column(4, "int64", 2), column(5, "interval", 3)]
    assert hidden(columns, "polars") == hidden(columns, "spark") == {2}
    assert hidden([*columns[:4], column(5, "uuid", 3)], "pyiceberg") == {5}
    assert hidden([column(1, "uuid")], "pyiceberg") == set()
    for type_ in ("time", "timetz", "uint64"):
        assert 2 in hidden([*columns[:4], column(5, type_, 3)], "spark")
    assert hidden(columns, "pyiceberg", "trino") == set()
    columns += [column(6, "list"), column(7, "geometry", 6)]
    assert hidden(columns, "trino") == {6, 7}
    assert hidden(columns, "pyiceberg") == {7}


def test_a_struct_is_hidden_from_datafusion_since_files_lack_a_field():
    columns = [column(1, "struct"), column(2, "struct", 1), column(3, "int64", 2)]
    columns += [column(4, "int64", 2, begin=5), column(5, "struct"), column(6, "int64", 5)]
    columns += [column(7, "int64", 5, "9", begin=6), Column(8, 2, 6, "c8", "int64", None, 5)]
    gaps = misread(columns, frozenset(("datafusion",)), ())
    assert {id_: gap.begin_snapshot for id_, [gap] in gaps.items()} == {1: 5}
    assert hidden(columns, "duckdb", "sail", "trino") == set()


def test_large_values_are_hidden_while_a_file_has_them():
    columns = [column(1, "uint32"), column(2, "uint32"), column(3, "uint8")]
    columns += [column(4, "int64"), column(5, "int64")]
    assert may_be_large(columns, {"trino"}, {1, 3, 5}) == {1: False, 2: False, 5: True}
    assert may_be_large(columns, {"daft"}, {5}) == {}
    large = [(1, 3, 5), (1, 4, 7), (1, 7, 8), (1, 10, None), (1, 11, 12), (2, 4, 6)]
    found = misread(columns, frozenset(("trino",)), large)
    spans = {id_: [(g.begin_snapshot, g.end_snapshot) for g in gaps] for id_, gaps in found.items()}
    assert spans == {1: [(3, 8), (10, None)], 2: [(4, 6)]}
    reason = found[1][0].reason
    assert reason == "trino would misread it: a file may have a UINTEGER of 2147483648 or more"


def test_decimals_are_hidden_while_an_added_file_has_another_scale():
    columns = [column(1, "decimal(20,3)"), column(2, "list"), column(3, "decimal(9, 0)", 2)]
    columns += [column(4, "int64"), column(5, "decimal(5,2)")]
    for client in CLIENTS:
        is_one = client in {"datafusion", "flink", "polars", "pyiceberg", "trino"}
        assert scales(columns, {client}, {1, 3, 4}) == ({1: 3, 3: 0} if is_one else {}), client
    assert scales(columns, {"flink"}, ()) == {}
    found = misread(columns, frozenset(("flink", "sail")), (), [(1, 4, 6), (1, 5, None)])
    [(column_id, [gap])] = found.items()
    assert (column_id, gap.begin_snapshot, gap.end_snapshot) == (1, 4, None)
    assert gap.reason == "flink would misread it: an added file has a DECIMAL of another scale"


def test_partitions_are_left_out_for_those_that_misread_them():
    def are_misread(clients, *names, transform="identity"):
        return misreads_partitions(clients, [(name, transform) for name in names])

    assert are_misread({"daft"}, "day")
    assert not are_misread({"daft"})
    assert not are_misread({"sail", "spark"}, "day", "my column")
    assert are_misread({"sail"}, "day", "per%cent")
    assert are_misread({"sail"}, "straße")
    for client in sorted(CLIENTS):
        before_1970 = [are_misread({client}, "t", transform=t) for t in ("day", "year")]
        assert all(before_1970) == any(before_1970) == (client in {"clickhouse", "daft", "duckdb"})
        assert are_misread({client}, "t", transform="bucket[4]") == (client == "daft")
