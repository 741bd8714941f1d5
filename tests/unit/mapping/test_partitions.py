"""Partition values: PyIceberg's own transforms compute the expected values."""

import datetime as dt
from decimal import Decimal

import duckdb
import pytest
from polynya.ducklake.rows.files import FileGroup
from polynya.ducklake.rows.lifetimes import Lifetime
from polynya.ducklake.rows.objects import Column, PartitionColumn, Partitioning, Tag
from polynya.iceberg.manifest import PartitionField
from polynya.iceberg.types import Field, Primitive
from polynya.mapping.partitions import (
    NO_VALUE,
    Constant,
    client_specs,
    partitions,
    specs_text,
    texts_in_path,
)
from polynya.mapping.properties import PARTITION_SPECS
from polynya.mapping.rows_files import added_row
from polynya.mapping.schemas import schemas
from polynya.runtime.errors import Refused
from pyiceberg.partitioning import PartitionSpec as IcebergSpec
from pyiceberg.schema import Schema

GROUP = FileGroup(7, None)


def partitioned(column_type: str, *transforms: str):
    """A table with one column `c`, partitioned by it: its specs, and PyIceberg's schema."""
    columns = [Column(1, 1, None, "c", column_type, None, None)]
    shown = schemas(columns, 1, 9)
    keys = [PartitionColumn(index, 1, transform) for index, transform in enumerate(transforms)]
    partitioning = Partitioning(
        {7: keys}, {1: frozenset({column_type})}, {}, {GROUP: Lifetime(2, None)}, 7
    )
    return partitions(partitioning, shown, 9), Schema.model_validate(shown.schema_at(9).json())


GROUP = FileGroup(7, None)


MOMENT = dt.datetime(2024, 2, 29, 23, 59, 59)
OLD = dt.datetime(1969, 12, 31, 23, 0, 0)
YMDH = ("year", "month", "day", "hour")


def parts(moment: dt.datetime, count: int) -> list[str]:
    """The parts of the calendar that DuckLake writes."""
    return [str(getattr(moment, part)) for part in YMDH[:count]]


# (DuckLake type, its transforms, the texts that DuckLake writes, a value of the column)
SAME = [
    *(
        ("timestamp", YMDH[:n], parts(then, n), then)
        for n in (1, 2, 3, 4)
        for then in (MOMENT, OLD)
    ),
    *(("date", YMDH[:n], parts(then, n), then.date()) for n in (1, 2, 3) for then in (MOMENT, OLD)),
    ("int32", ("identity",), ["-7"], -7),
    ("int64", ("identity",), [str(2**40)], 2**40),
    ("varchar", ("identity",), ["NULL"], "NULL"),
    ("varchar", ("identity",), [""], ""),
    ("boolean", ("identity",), ["true"], True),
    ("decimal(9,2)", ("identity",), ["1.50"], Decimal("1.50")),
    ("date", ("identity",), ["2024-02-29"], dt.date(2024, 2, 29)),
    *(
        (type_, (f"epoch_{part}",), [text], MOMENT)
        for type_ in ("timestamp", "timestamptz", "timestamp_s", "timestamp_ms")
        for part, text in zip(YMDH, ("54", "649", "19782", str(19782 * 24 + 23)), strict=True)
    ),
    *(
        ("timestamptz", (f"epoch_{part}",), ["-1"], dt.datetime(1969, 12, 31, 23, 59, 59, 999999))
        for part in YMDH
    ),
    ("date", ("epoch_month",), ["-1"], OLD.date()),
    ("date", ("epoch_day",), ["-1"], OLD.date()),
    ("timestamp", ("epoch_year", "epoch_day"), ["54", "19782"], MOMENT),  # the finest alone
    ("timestamp", ("year", "epoch_day"), ["2024", "19782"], MOMENT),
]


@pytest.mark.parametrize(("column_type", "transforms", "texts", "value"), SAME)
def test_partition_value_is_pyicebergs_transform_of_the_columns_value(
    column_type, transforms, texts, value
):
    found, schema = partitioned(column_type, *transforms)
    spec, values = found.spec_and_values(GROUP, dict(enumerate(texts)), {})
    [field] = IcebergSpec(**spec.json()).fields
    type_ = schema.find_field("c").field_type
    if isinstance(value, dt.datetime):
        value = (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    elif isinstance(value, dt.date):
        value = (value - dt.date(1970, 1, 1)).days
    assert values == (field.transform.transform(type_)(value),)


TIMES = [*(("timestamp", YMDH[:count]) for count in (1, 2, 3, 4)), ("timestamptz", ("epoch_day",))]


@pytest.mark.parametrize(("column_type", "transforms"), TIMES)
def test_null_has_a_null_partition(column_type, transforms):
    """The year of an infinite time is NULL in DuckDB; a reader would skip such a file."""
    found, _ = partitioned(column_type, *transforms)
    texts = dict.fromkeys(range(len(transforms)))
    spec, values = found.spec_and_values(GROUP, texts, {1: NO_VALUE})
    assert values == (None,) and spec.spec_id == 1
    for uncertain in ({}, {1: Constant(1, None, None)}, {1: Constant(None, None, None)}):
        assert found.spec_and_values(GROUP, texts, uncertain) == (found.specs[0], ())


NO_TWIN = [
    ("timestamp", ("month",)),  # the month without the year
    ("timestamp", ("day", "hour")),
    ("timestamptz", ("year",)),  # in the writer's time zone
    ("float64", ("identity",)),
    ("timestamptz", ("identity",)),
    ("uuid", ("identity",)),
    ("decimal(9,2)", ("bucket(4)",)),
    ("timestamp_ms", ("bucket(4)",)),
    # DuckLake does not write these.
    ("int32", (None,)),
    ("int32", ("bucket(0)",)),
    ("int32", ("bucket(99999999999)",)),
    ("timestamp", ("epoch_century",)),
    ("date", ("epoch_hour",)),  # Iceberg has no hours of dates
    ("int32", ("epoch_day",)),
]


@pytest.mark.parametrize(("column_type", "transforms"), NO_TWIN)
def test_partitioning_without_an_iceberg_equivalent_is_omitted(column_type, transforms):
    found, _ = partitioned(column_type, *transforms)
    spec, values = found.spec_and_values(GROUP, {0: "1", 1: "1"}, {})
    assert (spec.spec_id, values) == (0, ())
    assert found.default_spec_id == 0


@pytest.mark.parametrize("text", ["x", "", "infinity", "0044-03-15 (BC)"])
def test_file_with_an_uncertain_value_is_unpartitioned(text):
    found, _ = partitioned("date", "identity")
    assert found.spec_and_values(GROUP, {0: text}, {}) == (found.specs[0], ())
    assert found.spec_and_values(GROUP, {}, {}) == (found.specs[0], ())


TOO_LARGE = [
    ("int32", "identity", str(2**31)),
    ("int32", "bucket(4)", str(2**31)),
    ("date", "year", str(2**31 + 2000)),
    ("decimal(9,2)", "identity", "10000000.00"),
]


@pytest.mark.parametrize(("column_type", "transform", "text"), TOO_LARGE)
def test_file_with_a_value_that_its_type_cannot_hold_is_unpartitioned(column_type, transform, text):
    found, _ = partitioned(column_type, transform)
    spec, values = found.spec_and_values(GROUP, {0: text}, {})
    assert (spec.spec_id, values) == (0, ())


def test_a_repeated_key_is_one_field():
    found, _ = partitioned("int32", "identity", "identity")
    assert [len(spec.fields) for spec in found.specs] == [0, 1]


HIVE = FileGroup(None, 3)


def hive(columns: list[Column], lifetime: Lifetime):
    """A table with added files that have the column 2 in their path."""
    shown = schemas(columns, 1, 9)
    types = {column.column_id: frozenset({column.column_type}) for column in columns}
    return partitions(Partitioning({}, types, {3: {2: "p"}}, {HIVE: lifetime}, None), shown, 9)


OK, PART = (
    Column(1, 1, None, "ok", "int32", None, None),
    Column(2, 1, None, "p", "int32", None, None),
)


def test_column_in_the_path_of_added_files_is_an_identity_field():
    found = hive([OK, PART], Lifetime(2, None))
    spec, values = found.spec_and_values(HIVE, {}, {2: Constant(1, "7", "7")})
    assert [(field.source_id, field.transform) for field in spec.fields] == [(2, "identity")]
    assert (values, found.unservable) == ((7,), ())
    assert found.spec_and_values(HIVE, {}, {2: Constant(0, None, None)})[1] == (None,)


@pytest.mark.parametrize(
    "constants", [{}, {2: Constant(1, "1", "2")}, {2: Constant(1, None, None)}]
)
def test_uncertain_value_in_a_path_is_refused(constants):
    """The file would be unpartitioned, and its readers would return NULL."""
    with pytest.raises(Refused, match="in its path"):
        hive([OK, PART], Lifetime(2, None)).spec_and_values(HIVE, {}, constants)


IN_BOTH = FileGroup(7, 3)
SEVEN, EIGHT = Constant(1, "7", "7"), Constant(1, "8", "8")
REFUSED = "refused"


@pytest.mark.parametrize(
    ("claimed", "stats", "text", "expected"),
    [
        ("7", SEVEN, "7", 7),
        ("7", None, "7", 7),  # of programs that write no statistics
        ("7", Constant(None, None, None), "7", 7),
        ("07", SEVEN, "07", 7),
        (None, Constant(0, None, None), "NULL", None),
        ("NULL", Constant(0, None, None), "NULL", None),
        # DuckDB reads the value in the path.
        (None, SEVEN, "7", 7),
        ("8", SEVEN, "7", 7),
        ("7", EIGHT, "7", 7),
        ("7", Constant(1, "7", "8"), "7", 7),
        ("7", Constant(1, "7", None), None, 7),
        ("7", Constant(0, None, None), "7", 7),
        (None, SEVEN, "NULL", None),
        # Nothing that claims a value claims that of the path.
        (None, SEVEN, "9", REFUSED),
        ("8", SEVEN, "9", REFUSED),
        ("8", SEVEN, None, REFUSED),
        ("8", SEVEN, "seven", REFUSED),
        ("7", Constant(1, "8", None), None, REFUSED),
    ],
)
def test_the_path_decides_where_claims_of_its_value_differ(claimed, stats, text, expected):
    columns = [OK, PART]
    types = {column.column_id: frozenset({column.column_type}) for column in columns}
    keys = {7: [PartitionColumn(0, 2, "identity")]}
    groups = {IN_BOTH: Lifetime(2, None)}
    table = Partitioning(keys, types, {3: {2: "p"}}, groups, 7)
    found = partitions(table, schemas(columns, 1, 9), 9)
    path = {} if text is None else texts_in_path(f"added/p={text}/a.parquet", {2: "p"})
    given = IN_BOTH, {0: claimed}, {} if stats is None else {2: stats}, path
    if expected == REFUSED:
        with pytest.raises(Refused, match="in its path"):
            found.spec_and_values(*given)
    else:
        assert found.spec_and_values(*given) == (found.specs[1], (expected,))


def test_the_texts_in_a_path_are_those_between_slashes():
    names = {1: "a b", 2: "p", 3: "x"}
    path = "s3://bucket/a%20b=%C3%A9/p=1=2/x=y.parquet"
    assert texts_in_path(path, names) == {1: "é"}


# What `read_parquet(…, hive_partitioning=true, hive_types={'p': …})` of DuckDB 1.5.5 gives.
@pytest.mark.parametrize(
    ("text", "varchar", "integer"),
    [
        ("__HIVE_DEFAULT_PARTITION__", None, None),
        ("__hive_default_partition__", "__hive_default_partition__", REFUSED),
        ("NULL", None, None),
        ("null", None, None),
        ("", "", None),
        ("%20NULL", " NULL", REFUSED),
        ("7", "7", 7),
    ],
)
def test_duckdb_reads_the_same_values_in_paths(text, varchar, integer):
    for type_, expected in (("string", varchar), ("int", integer)):
        in_path = texts_in_path(f"added/p={text}/a.parquet", {2: "p"})
        [value] = added_row([], [Field(2, "p", Primitive(type_))], in_path).select
        if expected == REFUSED:
            with pytest.raises(duckdb.ConversionException):
                duckdb.sql(f"SELECT {value}").fetchall()
        else:
            assert duckdb.sql(f"SELECT {value}").fetchall() == [(expected,)]


@pytest.mark.parametrize("type_", ["float64", "timestamptz", "uuid", "time"])
def test_there_is_a_gap_if_no_identity_field_can_provide_a_column_in_the_path(type_):
    found = hive([OK, Column(2, 1, None, "p", type_, None, None)], Lifetime(2, None))
    assert [(gap.begin_snapshot, gap.end_snapshot) for gap in found.unservable] == [(2, None)]


# (the end of the column, the lifetime of the files, the snapshots at which both are visible)
GONE = [
    (6, Lifetime(3, None), (3, 6)),
    (6, Lifetime(3, 5), (3, 5)),
    (6, Lifetime(7, None), None),
    (3, Lifetime(3, 5), None),
]


@pytest.mark.parametrize(("end", "lifetime", "expected"), GONE)
def test_there_is_a_gap_while_files_have_a_dropped_column_in_their_path(end, lifetime, expected):
    dropped = Column(2, 1, end, "p", "int32", None, None)
    unservable = hive([OK, dropped], lifetime).unservable
    assert [(gap.begin_snapshot, gap.end_snapshot) for gap in unservable] == (
        [expected] if expected else []
    )


SPEC = (
    PartitionField(1, 1000, "the day", "day", ""),
    PartitionField(3, 1003, "x", "truncate[2]", ""),
)


def of_client(specs, types=None, names=("c", "st", "x"), keys=None):
    """A table with columns `c` and `st.x`, of which DuckLake has no keys, or these."""
    columns = [
        Column(1, 1, None, names[0], "timestamptz", None, None),
        Column(2, 1, None, names[1], "struct", None, None),
        Column(3, 1, None, names[2], "int32", None, 2),
    ]
    types = {1: frozenset({"timestamptz"}), 3: frozenset({"int32"})} | (types or {})
    groups = {FileGroup(7, None): Lifetime(2, None), FileGroup(None, None): Lifetime(2, None)}
    shown = schemas(columns, 1, 9)
    return partitions(Partitioning(keys or {}, types, {}, groups, 7), shown, 9, specs)


def test_a_spec_that_ducklake_does_not_have_is_the_clients():
    found = of_client({7: SPEC})
    spec = found.specs[found.default_spec_id]
    assert [(f.name, f.field_id, f.transform, f.result_type) for f in spec.fields] == [
        ("the day", 1000, "day", "int"),
        ("x", 1003, "truncate[2]", "int"),
    ]
    texts = {0: "-1", 1: "-4", 2: "the directory"}
    assert found.spec_and_values(GROUP, texts, {}) == (spec, (-1, -4))
    assert found.spec_and_values(GROUP, {0: "-1"}, {}) == (found.specs[0], ())
    # Files of native writers, and inlined rows: a nested column is not among their columns.
    assert found.spec_and_values(FileGroup(None, None), {}, {}) == (found.specs[0], ())
    fields = schemas([Column(1, 1, None, "c", "timestamptz", None, None)], 1, 9).schema_at(9).fields
    assert found.rows_spec(fields) == found.specs[0]


def test_a_field_of_a_promoted_column_is_omitted_and_a_bucket_stays():
    specs = {7: (SPEC[1], PartitionField(3, 1004, "b", "bucket[4]", ""))}
    found = of_client(specs, {3: frozenset({"int32", "int64"})})
    [field] = found.specs[found.default_spec_id].fields
    assert (field.name, field.transform) == ("b", "bucket[4]")
    assert found.spec_and_values(GROUP, {0: "4", 1: "3"}, {})[1] == (3,)


def test_a_field_does_not_have_the_name_of_a_column():
    """A native writer may add it later; Java would refuse the table."""
    found = of_client({7: SPEC}, names=("the day", "st", "y"))
    assert [field.name for field in found.specs[1].fields] == ["the day_day", "x"]


def test_names_of_fields_that_ducklake_has_are_the_clients():
    identity = PartitionField(1, 1004, "own name", "identity", "")
    keys = {7: [PartitionColumn(0, 3, "bucket(4)"), PartitionColumn(1, 1, "epoch_day")]}
    bucket = PartitionField(3, 1009, "b", "bucket[4]", "")
    found = of_client({5: (identity,), 7: (SPEC[0], bucket)}, keys=keys)
    # `bucket` is of a nested column, which DuckLake has no key for: the names alone are taken.
    assert [(f.name, f.field_id) for f in found.specs[1].fields] == [("the day", 1000)]


BY_HAND = ["", "{}", "[1]", '[{"partition-id": 7}]', '[{"partition-id": 7, "fields": [{}]}]']


@pytest.mark.parametrize("text", [*BY_HAND, None])
def test_a_tag_that_somebody_has_changed_says_nothing(text):
    assert client_specs([Tag(1, PARTITION_SPECS, text)]) == {}


def test_specs_stay_the_same_in_a_tag():
    tag = Tag(1, PARTITION_SPECS, specs_text({7: SPEC, 9: SPEC[:1]}))
    assert client_specs([tag]) == {7: SPEC, 9: SPEC[:1]}
