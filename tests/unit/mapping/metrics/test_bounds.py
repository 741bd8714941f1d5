"""Column statistics as metrics: only certain values are written.

There is a row for each rule. Then real DuckLake writes files of generated values, and no bound may
exclude a value that pyarrow finds in the file.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from polynya.ducklake.rows.files import ColumnStats
from polynya.mapping.bounds import Leaf
from polynya.mapping.data_files import column_metrics
from polynya.types.names import equivalent
from polynya_local.clients.duckdb import connect
from pyiceberg.conversions import from_bytes
from pyiceberg.types import NestedField

from tests.unit.mapping.as_columns import BOUNDS, KINDS, stats_columns, values_of

ROWS = 10
ALL = {"value_count": 8, "null_count": 2}
MEASURED = {**ALL, "column_size_bytes": 40}
SEEN = {"values": 10, "nulls": 2, "size": 40}
"""Statistics as DuckDB writes them, and how a client reads them."""


def stats(column_id: int = 1, **known: Any) -> ColumnStats:
    nothing = dict.fromkeys(
        ("column_size_bytes", "value_count", "null_count", "min_value", "max_value", "contains_nan")
    )
    return ColumnStats(data_file_id=7, column_id=column_id, **(nothing | known))


def type_of(name: str):
    field = {"id": 1, "name": "c", "type": name, "required": False}
    return NestedField.model_validate(field).field_type


def metrics(known: ColumnStats, records: int, leaf: Leaf | None) -> dict[str, Any]:
    """The metrics of a column in one file, by kind; only known ones."""
    [column] = stats_columns([known])
    found = column_metrics(column, np.array([known.data_file_id]), np.array([records]), [leaf])
    assert found.field_id == known.column_id
    values = {kind: values_of(getattr(found, kind), 1)[0] for kind in (*KINDS, *BOUNDS)}
    return {kind: value for kind, value in values.items() if value is not None}


def shown(found: dict[str, Any], type_name: str) -> dict[str, Any]:
    """The metrics as a client reads them: bounds decoded by PyIceberg."""
    return {
        NAMES[kind]: from_bytes(type_of(type_name), value) if kind in BOUNDS else value
        for kind, value in found.items()
    }


NAMES = dict(
    zip((*KINDS, *BOUNDS), ("size", "values", "nulls", "nans", "lower", "upper"), strict=True)
)


# Which of DuckLake's statistics are certain: (rule, type shown, type written, statistics, the
# metrics that a client reads)
RULES = [
    # a: counts only if both are known and their sum is the number of rows
    ("a", "int", "int", ALL, {"values": 10, "nulls": 2}),
    ("a", "int", "int", {"value_count": 10, "null_count": 0}, {"values": 10, "nulls": 0}),
    ("a", "int", "int", {"value_count": 0, "null_count": 10}, {"values": 10, "nulls": 10}),
    ("a", "int", "int", {"value_count": 0, "null_count": 0}, {}),
    ("a", "int", "int", {"value_count": 10, "null_count": 2}, {}),
    ("a", "int", "int", {"value_count": 9, "null_count": 0}, {}),
    ("a", "int", "int", {"value_count": 10}, {}),
    ("a", "int", "int", {"null_count": 0}, {}),
    # b: NaN
    ("b", "double", "double", {"contains_nan": False, **MEASURED}, {"nans": 0, **SEEN}),
    ("b", "double", "double", {"contains_nan": False, **ALL}, {"values": 10, "nulls": 2}),
    ("b", "double", "double", {"contains_nan": True}, {}),
    ("b", "double", "double", {}, {}),
    (
        "b",
        "double",
        "double",
        {"min_value": "1.5", "max_value": "2.5", "contains_nan": False, **MEASURED},
        {"lower": 1.5, "upper": 2.5, "nans": 0, **SEEN},
    ),
    (
        "b",
        "double",
        "double",
        {"min_value": "1.5", "max_value": "2.5", "contains_nan": True},
        {"lower": 1.5},
    ),
    ("b", "float", "float", {"min_value": "1.5", "max_value": "2.5"}, {"lower": 1.5}),
    (
        "b",
        "double",
        "double",
        {"min_value": "-inf", "max_value": "inf", "contains_nan": False, **MEASURED},
        {"lower": -math.inf, "upper": math.inf, "nans": 0, **SEEN},
    ),
    # e: text in the type that was written, bytes in the type that is shown
    ("e", "long", "int", {"min_value": "-7", "max_value": "7"}, {"lower": -7, "upper": 7}),
    ("e", "long", "int", {"min_value": "1.5"}, {}),
    ("e", "int", "boolean", {"min_value": "false"}, {"lower": 0}),
    (
        "e",
        "double",
        "float",
        {"min_value": "0.1", "max_value": "0.1", "contains_nan": False, **MEASURED},
        {"nans": 0, **SEEN},
    ),
    (
        "e",
        "decimal(18, 2)",
        "decimal(9, 2)",
        {"min_value": "-.01", "max_value": "1.00"},
        {"lower": -0.01, "upper": 1},
    ),
    # f: sizes
    ("f", "int", "int", {"column_size_bytes": 96}, {"size": 96}),
    ("f", "int", "int", {"column_size_bytes": 0}, {"size": 0}),
    # h: the partition column of a hive file has one value and no size
    (
        "h",
        "string",
        "string",
        {"min_value": "x", "max_value": "x", "column_size_bytes": 0},
        {"lower": "x", "upper": "x", "size": 0},
    ),
    # i: in a partial file counts are too large, and bounds are those of a superset
    (
        "i",
        "int",
        "int",
        {"value_count": 30, "null_count": 0, "min_value": "1", "max_value": "9"},
        {"lower": 1, "upper": 9},
    ),
    # only one bound: the other was truncated and has no exact form
    ("one side", "string", "string", {"min_value": "a"}, {"lower": "a"}),
    ("one side", "string", "string", {"max_value": "b"}, {"upper": "b"}),
    (
        "one side",
        "date",
        "date",
        {"min_value": "2024-01-01", "max_value": "infinity"},
        {"lower": 19723},
    ),
    (
        "one side",
        "date",
        "date",
        {"min_value": "0044-03-15 (BC)", "max_value": "1970-01-02"},
        {"upper": 1},
    ),
    ("empty", "string", "string", {"min_value": "", "max_value": ""}, {"lower": "", "upper": ""}),
    ("zero", "int", "int", {"min_value": "0", "max_value": "0"}, {"lower": 0, "upper": 0}),
    # values that are not certain
    ("none", "timestamp", "timestamp", {"min_value": "-infinity", "max_value": "infinity"}, {}),
    ("none", "timestamp", "timestamp", {"max_value": "290000-01-01 00:00:00"}, {}),
    ("none", "int", "int", {"min_value": "-9999999999", "max_value": "9999999999"}, {}),
    ("none", "decimal(9, 2)", "decimal(9, 2)", {"min_value": "1.234"}, {}),
    (
        "none",
        "float",
        "float",
        {"max_value": "1e39", "contains_nan": False, **MEASURED},
        {"nans": 0, **SEEN},
    ),
    (
        "none",
        "uuid",
        "uuid",
        dict.fromkeys(("min_value", "max_value"), "00000000-0000-0000-0000-000000000001"),
        {},
    ),
    (
        "hex",
        "binary",
        "binary",
        {"min_value": "00", "max_value": "7B"},
        {"lower": b"\0", "upper": b"{"},
    ),
    ("hex", "binary", "binary", {"min_value": "\\x00"}, {}),
    (
        "bool",
        "boolean",
        "boolean",
        {"min_value": "0", "max_value": "1"},
        {"lower": False, "upper": True},
    ),
]


@pytest.mark.parametrize(("rule", "type_name", "written", "known", "expected"), RULES)
def test_metrics_follow_the_rule(rule, type_name, written, known, expected):
    seen = shown(metrics(stats(**known), ROWS, Leaf(type_name, written)), type_name)
    if type_name.startswith("decimal"):
        seen = {name: float(number) for name, number in seen.items()}
    assert seen == expected


def test_column_that_is_not_in_the_file_has_no_metrics():
    """Hive files have statistics of columns that are only in their path."""
    known = {
        **ALL,
        "column_size_bytes": 9,
        "min_value": "1",
        "max_value": "2",
        "contains_nan": False,
    }
    assert metrics(stats(**known), ROWS, None) == {}


# d: DuckLake's (min, max) of {-0.0, 0.0} and other values, and the signs of the bounds
ZEROS = [
    ("-0.0", "-0.0", -1, 1),
    ("0.0", "0.0", -1, 1),
    ("-0.0", "0.0", -1, 1),
    ("0.0", "-0.0", -1, 1),
    ("0", "0", -1, 1),
]


@pytest.mark.parametrize("name", ["float", "double"])
@pytest.mark.parametrize(("least", "most", "lower", "upper"), ZEROS)
def test_rule_d_a_bound_of_zero_includes_both_zeros(name, least, most, lower, upper):
    known = stats(min_value=least, max_value=most, contains_nan=False, **MEASURED)
    seen = shown(metrics(known, ROWS, Leaf(name, name)), name)
    assert (seen["lower"], seen["upper"]) == (0.0, 0.0)
    assert (math.copysign(1, seen["lower"]), math.copysign(1, seen["upper"])) == (lower, upper)


def test_integer_zero_does_not_become_a_float():
    seen = shown(metrics(stats(min_value="0", max_value="0"), ROWS, Leaf("long", "int")), "long")
    assert seen == {"lower": 0, "upper": 0}


# Texts of a column that numpy's fast path cannot parse, among others that it can.
ODD = [
    ("int", ["1", "-2", "99999999999", "x", "3"]),
    ("long", ["1", "9223372036854775808", "-9223372036854775808", ""]),
    ("double", ["1.5", "inf", "nan", "-0.0", "1e400", "5e-324", "x"]),
    ("float", ["1.5", "1e39", "0.1", "-inf", "nan", "1e-50"]),
    ("string", ["", "a\0", "é", "z"]),
    ("date", ["2024-01-01", "infinity", "0044-03-15 (BC)", "9999-12-31"]),
]


@pytest.mark.parametrize(("name", "least"), ODD, ids=[name for name, _ in ODD])
def test_files_have_the_same_bounds_together_and_alone(name, least):
    leaf = Leaf(name, name)
    known = [
        replace(stats(min_value=text, max_value=text, contains_nan=n % 3 == 0), data_file_id=n)
        for n, text in enumerate([*least, None, *least])
    ]
    [column] = stats_columns(known)
    ids, records = np.arange(len(known)), np.full(len(known), ROWS)
    for leaves in ([leaf] * len(known), [None, *[leaf] * (len(known) - 1)]):
        found = column_metrics(column, ids, records, leaves)
        for kind in BOUNDS:
            alone = [
                metrics(one, ROWS, of).get(kind) for one, of in zip(known, leaves, strict=True)
            ]
            assert values_of(getattr(found, kind), len(known)) == alone


def test_files_without_statistics_and_statistics_without_a_file_are_distinguished():
    known = [
        replace(stats(min_value=str(n), column_size_bytes=n), data_file_id=n) for n in (1, 2, 4, 9)
    ]
    [column] = stats_columns(known)
    leaf = Leaf("int", "int")
    found = column_metrics(column, np.array([2, 3, 4]), np.full(3, ROWS), [leaf] * 3)
    assert values_of(found.column_sizes, 3) == [2, None, 4]
    assert values_of(found.lower_bounds, 3) == [b"\2\0\0\0", None, b"\4\0\0\0"]


# ---------------------------------------------------------------- no bound excludes a value

LONG_TEXT = st.text(alphabet="az~é漢🦆\x00\x7f", min_size=200, max_size=300)
LONG_BLOB = st.binary(min_size=250, max_size=260) | st.just(b"\xff" * 300)
ODD_DATES = st.sampled_from(["infinity", "-infinity", "0044-03-15 (BC)", "100000-01-01"])
ENDS = st.sampled_from(["infinity", "-infinity"])
ODD_TIMES = ENDS | st.sampled_from(["0044-03-15 (BC) 01:02:03", "290000-01-01 00:00:00"])
ZONED = st.datetimes().map(lambda then: f"{then}+00")


def integers(first: int, last: int) -> st.SearchStrategy[int]:
    return st.integers(first, last)


def decimals(precision: int, scale: int) -> st.SearchStrategy[str]:
    most = 10**precision - 1
    return st.integers(-most, most).map(
        lambda unscaled: f"{Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale)):f}"
    )


# DuckDB type: values, as SQL parameters
GENERATED: dict[str, st.SearchStrategy] = {
    "BOOLEAN": st.booleans(),
    "TINYINT": integers(-128, 127),
    "UTINYINT": integers(0, 255),
    "INTEGER": integers(-(2**31), 2**31 - 1),
    "UINTEGER": integers(0, 2**32 - 1),
    "BIGINT": integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32),
    "DOUBLE": st.floats(),
    "DECIMAL(4,2)": decimals(4, 2),
    "DECIMAL(18,4)": decimals(18, 4),
    "DECIMAL(38,10)": decimals(38, 10),
    "VARCHAR": st.text() | LONG_TEXT,
    "BLOB": st.binary() | LONG_BLOB,
    "DATE": st.dates().map(str) | ODD_DATES,
    "TIME": st.times().map(str) | st.just("24:00:00"),
    "TIMESTAMP": st.datetimes().map(str) | ODD_TIMES,
    "TIMESTAMP_S": st.datetimes().map(str),
    "TIMESTAMP_MS": st.datetimes().map(str),
    "TIMESTAMPTZ": ZONED | ENDS,
    "UUID": st.uuids().map(str),
}

NUMBERS = {
    "DATE": pa.int32(),
    "TIME": pa.int64(),
    "TIMESTAMP": pa.int64(),
    "TIMESTAMP_S": pa.int64(),
    "TIMESTAMP_MS": pa.int64(),
    "TIMESTAMPTZ": pa.int64(),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Callable:
    """Let DuckLake write a file; for each type: statistics, DuckLake's type, the file's values."""
    folder = tmp_path_factory.mktemp("lake")
    with connect(("ducklake",)) as con:
        con.execute(
            f"ATTACH 'ducklake:{folder}/catalog.ducklake' AS lake "
            f"(DATA_PATH '{folder}/data', DATA_INLINING_ROW_LIMIT 0)"
        )
        con.execute("USE lake")

        def write(columns: dict[str, list]) -> dict[str, tuple[ColumnStats, str, list]]:
            types = ", ".join(f'"{type_}" {type_}' for type_ in columns)
            con.execute(f"CREATE OR REPLACE TABLE t({types})")
            values = ", ".join(f"unnest(?)::{type_}" for type_ in columns)
            con.execute(f"INSERT INTO t SELECT {values}", list(columns.values()))
            found = con.execute("""
                SELECT f.path, c.column_name, c.column_type, s.data_file_id, s.column_id,
                  s.column_size_bytes, s.value_count, s.null_count, s.min_value, s.max_value,
                  s.contains_nan
                FROM __ducklake_metadata_lake.ducklake_data_file AS f
                JOIN __ducklake_metadata_lake.ducklake_file_column_stats AS s USING (data_file_id)
                JOIN __ducklake_metadata_lake.ducklake_column AS c
                  ON c.table_id = f.table_id AND c.column_id = s.column_id
                WHERE f.end_snapshot IS NULL""").fetchall()
            assert len(found) == len(columns)
            in_file = pq.read_table(folder / "data" / "main" / "t" / found[0][0])
            return {
                name: (ColumnStats(*known), column_type, numbers_of(name, in_file.column(name)))
                for _, name, column_type, *known in found
            }

        yield write


def numbers_of(type_: str, column: pa.ChunkedArray) -> list:
    """The values; dates and times as Iceberg's numbers."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us"))
    if type_ in NUMBERS:
        column = column.cast(NUMBERS[type_])
    return column.to_pylist()


def in_icebergs_order(value: Any) -> Any:
    """A sort key: -0.0 before 0.0, and text by its code points, which is the order of its UTF-8."""
    if isinstance(value, float):
        return value, math.copysign(1, value)
    return value.encode() if isinstance(value, str) else value


def assert_sound(known: ColumnStats, column_type: str, in_file: list) -> None:
    name = equivalent(column_type) or ""
    result = metrics(known, len(in_file), Leaf(name, name))
    lower, upper = result.get("lower_bounds"), result.get("upper_bounds")
    nans = [value for value in in_file if isinstance(value, float) and math.isnan(value)]
    nulls = in_file.count(None)
    keys = [in_icebergs_order(one) for one in in_file if one is not None and one == one]
    if lower is not None:
        least = in_icebergs_order(from_bytes(type_of(name), lower))
        assert all(least <= key for key in keys)
    if upper is not None:
        most = in_icebergs_order(from_bytes(type_of(name), upper))
        assert all(key <= most for key in keys) and not nans
    truth = {
        "value_counts": len(in_file),
        "null_value_counts": nulls,
        "nan_value_counts": len(nans),
    }
    for kind, count in truth.items():
        assert result.get(kind, count) == count


@given(data=st.data())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_bound_excludes_a_value_of_the_file(data, written):
    rows = data.draw(st.integers(1, 8))
    columns = {
        type_: data.draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        for type_, values in GENERATED.items()
    }
    for type_, (known, column_type, in_file) in written(columns).items():
        assert len(in_file) == rows, type_
        assert_sound(known, column_type, in_file)


# Each value is alone in a file, so that no other value determines the bounds.
ALONE = {
    "FLOAT": [["nan"], ["nan", "1"], ["-0.0"], ["0.0"], ["-0.0", "0.0"], ["inf"], ["-1e-45"]],
    "DOUBLE": [["nan", None], ["-0.0", "0.0"], ["-inf", "inf"], ["nan", "-1"], ["5e-324"]],
    "VARCHAR": [["z" * 5000], ["é" * 3000], ["a\x00b"], ["\U0010ffff" * 80], ["~" * 300], [""]],
    "BLOB": [[b"\xff" * 300], [b"\xff\xff"], [b"\x00"], [b"z" * 5000], [b""]],
    "DATE": [["infinity"], ["-infinity", "2024-01-01"], ["0044-03-15 (BC)"], ["100000-01-01"]],
    "TIMESTAMP": [["-infinity"], ["infinity", "2024-01-01 00:00:00"]],
    "TIME": [["24:00:00"], ["00:00:00", "24:00:00"]],
    "DECIMAL(38,10)": [["-.0000000001"], [None]],
}


@pytest.mark.parametrize("type_", ALONE)
def test_no_bound_excludes_an_unusual_value(type_, written):
    for values in ALONE[type_]:
        [(known, column_type, in_file)] = written({type_: values}).values()
        assert_sound(known, column_type, in_file)


USEFUL = {
    "INTEGER": ["1", "5"],
    "DOUBLE": ["1.5", "2.5"],
    "DECIMAL(38,10)": ["-1", "1"],
    "VARCHAR": ["a", "z"],
    "DATE": ["2024-01-01", "2024-02-29"],
    "TIMESTAMP_MS": ["2024-01-01 00:00:00", "2024-02-29 00:00:00.001"],
    "TIMESTAMPTZ": ["2024-01-01 00:00:00+01", "2024-02-29 00:00:00+00"],
    "BLOB": ["a", "b"],
    "BOOLEAN": ["false", "true"],
    "UINTEGER": ["0", "4294967295"],
    "TIME": ["00:00:00", "24:00:00"],
}


def test_ordinary_values_have_exact_bounds_and_all_counts(written):
    """Without them nothing would be pruned, and the tests above would test nothing."""
    for known, column_type, in_file in written(USEFUL).values():
        name = equivalent(column_type) or ""
        result = metrics(known, len(in_file), Leaf(name, name))
        assert {"value_counts", "null_value_counts", "column_sizes"} <= result.keys()
        assert [from_bytes(type_of(name), result[kind]) for kind in BOUNDS] == in_file
