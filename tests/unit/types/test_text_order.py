"""Texts of statistics are ordered as DuckDB orders the values that they stand for."""

import math
import struct

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polynya.types.names import comparable

TIMESTAMPS = [
    *("0001-01-01 00:00:00", "1969-12-31 23:59:59", "1970-01-01 00:00:00"),
    *("2024-02-29 12:00:00", "9999-12-31 23:59:59", "infinity", "-infinity"),
]
MILLIS = [*TIMESTAMPS, "2024-02-29 12:00:00.5", "2024-02-29 12:00:00.25"]
MICROS = [*MILLIS, "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"]
ZONED = [text if "inf" in text else f"{text}+00" for text in MICROS]
FLOATS = ["-inf", "-1e+30", "-0.0", "0.0", "1e-40", "0.1", "0.10000000149", "9", "10", "inf", "nan"]
UUIDS = ["00000000-0000-0000-0000-000000000000", "7fffffff-ffff-4fff-8fff-ffffffffffff"]
UUIDS += ["80000000-0000-4000-8000-000000000000", "ffffffff-ffff-4fff-8fff-ffffffffffff"]

# DuckLake's type, DuckDB's expression for the value of a text, texts as DuckLake writes them.
TEXTS = [
    ("int8", "t::TINYINT", ["-128", "-1", "0", "9", "10", "127"]),
    ("int16", "t::SMALLINT", ["-32768", "-9", "-10", "32767"]),
    ("int32", "t::INTEGER", ["-2147483648", "0", "99", "2147483647"]),
    ("int64", "t::BIGINT", ["-9223372036854775808", "10", "9", "9223372036854775807"]),
    ("uint8", "t::UTINYINT", ["0", "100", "20", "255"]),
    ("uint16", "t::USMALLINT", ["0", "7", "65535"]),
    ("uint32", "t::UINTEGER", ["0", "5", "4294967295"]),
    ("uint64", "t::UBIGINT", ["0", "3", "9223372036854775807"]),
    ("boolean", "t::BOOLEAN", ["0", "1"]),
    ("float32", "t::FLOAT", [*FLOATS, "-nan", "16777216", "16777217", "3.4028235e+38"]),
    ("float64", "t::DOUBLE", [*FLOATS, "-nan", "16777216", "16777217", "1.7976931348623157e+308"]),
    ("decimal(9,2)", "t::DECIMAL(9,2)", ["-9999999.99", "-0.01", "0.00", "9.00", "10.00"]),
    (
        "decimal(38,3)",
        "t::DECIMAL(38,3)",
        [f"{'9' * 35}.998", f"{'9' * 35}.999", f"-{'9' * 35}.999", "0.001"],
    ),
    ("varchar", "t", ["", "10", "9", "A", "a", "ab", "z", "ä", "\uffff", "🦆"]),
    ("json", "t::JSON", ['{"a":1}', "[1]", '"x"', "1"]),
    ("blob", "unhex(t)", ["", "00", "0001", "7F", "80", "FF", "FF00"]),
    ("uuid", "t::UUID", UUIDS),
    ("date", "t::DATE", ["0001-01-01", "1969-12-31", "9999-12-31", "infinity", "-infinity"]),
    ("time", "t::TIME", ["00:00:00", "09:59:59.5", "09:59:59.25", "23:59:59.999999", "24:00:00"]),
    ("timestamp", "t::TIMESTAMP", MICROS),
    ("timestamp_s", "t::TIMESTAMP_S", TIMESTAMPS),
    ("timestamp_ms", "t::TIMESTAMP_MS", MILLIS),
    ("timestamptz", "t::TIMESTAMPTZ", ZONED),
]


def ranks(expression: str, texts: list[str]) -> dict[str, int]:
    """The place of each text in DuckDB's order; equal values have the same place."""
    with duckdb.connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        rank = f"SELECT t, dense_rank() OVER (ORDER BY {expression}) FROM (SELECT unnest(?) AS t)"
        return dict(con.execute(rank, [texts]).fetchall())


def assert_ordered(column_type: str, expression: str, texts: list[str]) -> None:
    places = ranks(expression, texts)
    values = {text: comparable(column_type, text) for text in texts}
    for one in texts:
        for other in texts:
            place = (places[one] > places[other]) - (places[one] < places[other])
            order = (values[one] > values[other]) - (values[one] < values[other])
            assert order == place, (one, other)
            assert (values[one] == values[other]) == (place == 0), (one, other)


@pytest.mark.parametrize(
    ("column_type", "expression", "texts"), TEXTS, ids=[name for name, *_ in TEXTS]
)
def test_the_order_of_the_texts_is_duckdbs(column_type, expression, texts):
    assert_ordered(column_type, expression, texts)


BITS = st.integers(0, 2**32 - 1).map(lambda bits: struct.unpack("<f", struct.pack("<I", bits))[0])
NUMBERS = st.floats(allow_nan=False).map(str) | BITS.map(str)


@settings(max_examples=30, deadline=None)
@given(st.lists(NUMBERS, min_size=2, max_size=40, unique=True))
def test_the_order_of_any_floats_is_duckdbs(texts):
    assert_ordered("float64", "t::DOUBLE", texts)
    # DuckDB refuses to cast what a float32 cannot hold.
    texts = [text for text in texts if text == "nan" or not _overflows(float(text))]
    if texts:
        assert_ordered("float32", "t::FLOAT", texts)


def _overflows(number: float) -> bool:
    with np.errstate(over="ignore"):
        return bool(np.isinf(np.float32(number))) and not math.isinf(number)


@settings(max_examples=500)
@given(NUMBERS.filter(lambda text: text != "nan"))
def test_a_float32_is_rounded_as_numpy_rounds_it(text):
    with np.errstate(over="ignore"):
        assert comparable("float32", text) == float(np.float32(text))


NOT_COMPARED = [
    ("int8", "x"),
    ("int64", "1.0"),
    ("int64", "9223372036854775808"),
    ("boolean", "t"),
    ("float32", "NaN"),
    ("float64", "NaN"),
    ("float64", "x"),
    ("decimal(9,2)", "10000000.00"),
    ("decimal(9,2)", "1e2"),
    ("blob", "\\x00"),
    ("uuid", "x"),
    ("date", "0044-03-15 (BC)"),
    ("date", "10000-01-01"),
    ("time", "infinity"),
    ("timestamp", "2024-02-29 12:00:00+01"),
    ("timestamptz", "2024-02-29 12:00:00"),
    ("varchar", "\ud800"),
    *((name, "1") for name in ("int128", "uint128", "timestamp_ns", "interval", "list", "struct")),
]


@pytest.mark.parametrize(("column_type", "text"), NOT_COMPARED)
def test_a_text_without_a_certain_order_is_an_error(column_type, text):
    with pytest.raises(ValueError, match=r".+"):
        comparable(column_type, text)
