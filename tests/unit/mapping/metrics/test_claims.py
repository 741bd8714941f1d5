"""What catalog rows claim of files, and which of it can be true.

Expected partition values come from `transformed`, which other tests compare with PyIceberg.
"""

from dataclasses import replace
from datetime import date, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.ducklake.rows.files import ChunkColumns, ColumnStats, DataFile, FileGroup
from polynya.ducklake.rows.lifetimes import Lifetime
from polynya.ducklake.rows.objects import Column, PartitionColumn, Partitioning
from polynya.iceberg.manifest import PartitionField
from polynya.iceberg.types import transformed
from polynya.mapping import claims
from polynya.mapping.bounds import Leaf, joined
from polynya.mapping.data_files import column_metrics, doubts, partition_tuples
from polynya.mapping.partitions import partitions
from polynya.mapping.schemas import schemas
from polynya.types.names import to_bytes, value

from tests.unit.mapping.as_columns import file_columns, key_column, stats_columns, values_of

EPOCH = datetime(1970, 1, 1)
MOMENTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: (moment - EPOCH) // (datetime(1970, 1, 1, 0, 0, 0, 1) - EPOCH)
)
DATES = st.dates().map(lambda day: (day - date(1970, 1, 1)).days)
TEXTS = st.text(max_size=5)
CASES = st.one_of(
    st.tuples(st.just("timestamp"), st.sampled_from(["year", "month", "day", "hour"]), MOMENTS),
    st.tuples(st.just("date"), st.sampled_from(["year", "month", "day", "identity"]), DATES),
    st.tuples(st.just("long"), st.sampled_from(["identity", "bucket[7]"]), st.integers(-9, 9)),
    st.tuples(st.just("string"), st.sampled_from(["identity", "bucket[7]", "truncate[2]"]), TEXTS),
    st.tuples(st.just("binary"), st.just("truncate[2]"), st.binary(max_size=5)),
)
OTHER = {int: 1, str: "xyz", bytes: b"xyz"}
"""What makes another value of one."""


def wrong(transform, type_name, values, lower, upper, nulls=None, rows=10) -> list[bool]:
    """`lower` and `upper`: values of the column; None if they are not known."""
    field = PartitionField(1, 1000, "f", transform, "int")
    bounds = (
        joined([None if one is None else to_bytes(type_name, one) for one in of])
        for of in (lower, upper)
    )
    known = np.array(nulls or [-1] * len(values))
    counts = np.full(len(values), rows)
    stats = claims.SourceStats(*bounds, known)
    return claims.contradicted(field, type_name, values, stats, counts).tolist()


@given(CASES)
def test_a_value_that_the_bounds_have_is_not_contradicted(case):
    type_name, transform, one = case
    of_one = transformed(transform, type_name, one)
    assert wrong(transform, type_name, [of_one], [one], [one]) == [False]
    assert wrong(transform, type_name, [of_one], [None], [None], [0]) == [False]
    other = of_one + OTHER[type(of_one)]
    assert wrong(transform, type_name, [other], [one], [one]) == [True]
    assert wrong(transform, type_name, [None], [one], [one]) == [True]


def test_nulls_and_values_contradict_each_other():
    # Values of a file, its NULLs among 10 rows, and whether both cannot be.
    cases = [("x", 0, False), ("x", 3, True), ("x", 10, True), ("x", -1, False)]
    cases += [(None, 10, False), (None, 0, True), (None, 9, True), (None, -1, False)]
    values, nulls, expected = zip(*cases, strict=True)
    nothing = [None] * len(cases)
    assert wrong("identity", "string", values, nothing, nothing, list(nulls)) == list(expected)


def test_a_value_is_the_same_at_both_ends():
    assert wrong("identity", "long", [1, 1, 1], [1, 1, 0], [1, 2, 1]) == [False, True, True]
    days = [transformed("year", "date", one) for one in (0, 0)]
    assert wrong("year", "date", days, [0, 0], [364, 365]) == [False, True]


def test_a_bucket_is_below_its_number():
    nothing = [None] * 3
    assert wrong("bucket[4]", "string", [0, 4, -1], nothing, nothing) == [False, True, True]


MEASURED = ColumnStats(7, 1, 40, 10, 0, None, None, None)
DELTA = replace(MEASURED, column_size_bytes=None)


def metrics(type_name: str, known: ColumnStats):
    [column] = stats_columns([known])
    leaf = Leaf(type_name, type_name)
    return column_metrics(column, np.array([7]), np.array([10]), [leaf])


# The type, the bounds, and those that are published if nobody has measured them.
LOOSE = [
    ("timestamp", "2020-01-01 01:02:03.456000", "2020-01-01 01:02:03.456999"),
    ("timestamp", "2020-01-01T01:02:03.456+00:00", "2020-01-01 01:02:03.456999"),
    ("timestamp", "2020-01-01 01:02:03.456001", "2020-01-01 01:02:03.456001"),
    ("decimal(30, 2)", "1234567890123456.00", None),
    ("decimal(30, 2)", "1234567890123.45", "1234567890123.45"),
]


@pytest.mark.parametrize(("type_name", "text", "upper"), LOOSE)
def test_bounds_that_nobody_measured_may_be_cut(type_name, text, upper):
    for known, expected in ((DELTA, upper), (MEASURED, text.removesuffix("+00:00"))):
        found = metrics(type_name, replace(known, max_value=text)).upper_bounds
        wanted = expected and to_bytes(type_name, value(type_name, expected))
        assert (values_of(found, 1)[0] if found else None) == wanted


# Statistics of a column of 10 rows that cannot be those of a file.
IMPOSSIBLE = [
    ("long", {"min_value": "9", "max_value": "1"}),
    ("string", {"min_value": "b", "max_value": "a"}),
    ("string", {"min_value": "\U0001f986", "max_value": "\uffff"}),
    ("decimal(9, 2)", {"min_value": "-1.00", "max_value": "-2.00"}),
    ("decimal(9, 2)", {"min_value": "300.00", "max_value": "2.00"}),
    ("double", {"min_value": "1.5", "max_value": "-1.5", "contains_nan": False}),
    ("date", {"min_value": "2024", "max_value": "2024", "column_size_bytes": 0}),
    ("timestamp", {"min_value": "1577836923456789", "column_size_bytes": None}),
]


@pytest.mark.parametrize(("type_name", "known"), IMPOSSIBLE)
def test_of_statistics_that_cannot_be_nothing_is_published(type_name, known):
    found = metrics(type_name, replace(MEASURED, **known))
    kinds = "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds"
    assert [kind for kind in kinds if values_of(getattr(found, kind), 1)[0] is not None] == []


@pytest.mark.parametrize("text", ["infinity", "290000-01-01", "0044-03-15 (BC)"])
def test_dates_that_iceberg_does_not_have_are_possible(text):
    found = metrics("date", replace(DELTA, min_value="2024-01-01", max_value=text))
    assert found.lower_bounds and found.null_value_counts and not found.upper_bounds


@pytest.mark.parametrize(
    "known",
    [
        {"column_size_bytes": 0},
        {"column_size_bytes": None},
        {"value_count": None},
        {"value_count": 8},
        {"null_count": 3},
    ],
)
def test_that_there_is_no_nan_is_known_to_those_who_looked(known):
    says = replace(MEASURED, min_value="1.5", max_value="2.5", contains_nan=False)
    assert metrics("double", says).upper_bounds and metrics("double", says).nan_value_counts
    found = metrics("double", replace(says, **known))
    assert found.lower_bounds and not found.upper_bounds and not found.nan_value_counts


COLUMNS = [
    Column(1, 1, None, "i", "int64", None, None),
    Column(2, 1, None, "s", "varchar", None, None),
    Column(3, 1, None, "d", "date", None, None),
]
SCHEMAS = schemas(COLUMNS, 1, 100)
OWN, ADDED, IN_PATH = FileGroup(5, None), FileGroup(5, 8), FileGroup(5, 9)
PARTITIONS = partitions(
    Partitioning(
        columns={5: [PartitionColumn(0, 2, "identity"), PartitionColumn(1, 1, "bucket(4)")]},
        column_types={column.column_id: frozenset({column.column_type}) for column in COLUMNS},
        constants={9: {2: "s"}},
        groups=dict.fromkeys((OWN, ADDED, IN_PATH), Lifetime(1, None)),
        current=5,
        mapped={8: frozenset({1, 3}), 9: frozenset({1, 2, 3})},
    ),
    SCHEMAS,
    100,
)


def file(id_: int, group: FileGroup, path_is_relative=True) -> DataFile:
    path = f"s=x/{id_}" if group == IN_PATH else f"{id_}"
    return DataFile(id_, 1, None, path, path_is_relative, 10, 700, None, None, *_ids(group))


def _ids(group: FileGroup) -> tuple[int | None, int | None]:
    return group.partition_id, group.mapping_id


def test_the_partition_of_a_file_is_what_its_rows_do_not_contradict():
    files = [
        *(file(1, OWN), file(2, OWN), file(3, OWN, path_is_relative=False)),
        *(file(4, ADDED), file(5, IN_PATH)),
    ]
    texts = {1: "x", 2: "y", 3: "x", 4: "x", 5: "y"}
    stats = [ColumnStats(id_, 2, 40, 10, 0, text, text, None) for id_, text in texts.items()]
    keys = [
        key_column(0, dict.fromkeys(range(1, 6), "x")),
        key_column(1, dict.fromkeys(range(1, 6), "3")),
    ]
    columns = ChunkColumns(file_columns(files), keys, stats_columns(stats))
    given = columns, SCHEMAS, PARTITIONS, 9
    found = partition_tuples(*given)
    names = {id_: [f.transform for f in spec.fields] for id_, (spec, _) in found.items()}
    # Two buckets are not published, and one file lacks the column.
    assert names == {1: ["identity", "bucket[4]"], 2: [], 3: [], 4: [], 5: ["identity"]}
    assert [found[id_][1] for id_ in (1, 5)] == [("x", 3), ("x",)]
    seen = {(d.column_id, d.what, id_) for d in doubts(*given) for id_ in d.data_file_ids}
    assert seen == {
        (2, claims.NO_COLUMN, 4),
        *((2, claims.NOT_THE_VALUE, id_) for id_ in (2, 4, 5)),
        *((1, claims.NO_BUCKET, id_) for id_ in (3, 4, 5)),
    }
