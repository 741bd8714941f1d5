"""Bounds as bytes, compared with PyIceberg's `to_bytes` and the specification's examples."""

import math
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.types.names import to_bytes
from pyiceberg import conversions
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

INT = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63), 2**63 - 1)

TYPES = {
    "boolean": (BooleanType(), st.booleans()),
    "int": (IntegerType(), INT),
    "long": (LongType(), LONG),
    "float": (FloatType(), st.floats(width=32)),
    "double": (DoubleType(), st.floats()),
    "date": (DateType(), INT),
    "time": (TimeType(), st.integers(0, 86_400_000_000)),
    "timestamp": (TimestampType(), LONG),
    "timestamptz": (TimestamptzType(), LONG),
    "string": (StringType(), st.text()),
    "binary": (BinaryType(), st.binary()),
}


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_value_has_the_same_bytes_as_in_pyiceberg(name, data):
    type_, values = TYPES[name]
    value = data.draw(values)
    assert to_bytes(name, value) == conversions.to_bytes(type_, value)


@given(data=st.data())
def test_decimal_has_the_same_bytes_as_in_pyiceberg(data):
    precision = data.draw(st.integers(1, 38))
    scale = data.draw(st.integers(0, precision))
    unscaled = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    sign, digits = int(unscaled < 0), tuple(map(int, str(abs(unscaled))))
    value = Decimal((sign, digits, -scale))
    expected = conversions.to_bytes(DecimalType(precision, scale), value)
    assert to_bytes(f"decimal({precision}, {scale})", value) == expected


# A text with fewer decimals than the scale is the same number: (type, value, unscaled big-endian)
DECIMALS = [
    ("decimal(9, 2)", "0", "00"),
    ("decimal(9, 2)", "-0.00", "00"),
    ("decimal(9, 2)", "1", "64"),
    ("decimal(9, 2)", "1.5", "0096"),
    ("decimal(9, 2)", "-1.28", "80"),  # one byte is enough for -128,
    ("decimal(9, 2)", "1.28", "0080"),  # but not for 128
    ("decimal(9, 2)", "-1.29", "ff7f"),
    ("decimal(9, 2)", "1E+1", "03e8"),
    ("decimal(9, 5)", "-.00001", "ff"),
    ("decimal(38, 0)", "9" * 38, "4b3b4ca85a86c47a098a223fffffffff"),
    ("decimal(38, 0)", "-" + "9" * 38, "b4c4b357a5793b85f675ddc000000001"),
    ("decimal(38, 38)", "." + "9" * 38, "4b3b4ca85a86c47a098a223fffffffff"),
]


@pytest.mark.parametrize(("name", "text", "expected"), DECIMALS)
def test_decimal_is_unscaled_and_in_as_few_bytes_as_possible(name, text, expected):
    assert to_bytes(name, Decimal(text)).hex() == expected


# Appendix D: examples from the specification's text. (type, value, bytes)
SPECIFIED = [
    ("boolean", False, "00"),
    ("boolean", True, "01"),
    ("int", 1, "01000000"),
    ("date", -1, "ffffffff"),
    ("long", -2, "feffffffffffffff"),
    ("float", -0.0, "00000080"),
    ("float", 0.0, "00000000"),
    ("double", -0.0, "0000000000000080"),
    ("double", -math.inf, "000000000000f0ff"),
    ("string", "é", "c3a9"),
    ("string", "", ""),
    ("binary", b"\x00\xff", "00ff"),
]


@pytest.mark.parametrize(("name", "value", "expected"), SPECIFIED)
def test_value_has_the_bytes_of_the_specification(name, value, expected):
    assert to_bytes(name, value).hex() == expected


IMPOSSIBLE = [
    ("decimal(9, 2)", Decimal("1.234"), ValueError),  # never rounded
    ("int", 2**31, struct.error),
    ("long", -(2**63) - 1, struct.error),
    ("float", 1e39, OverflowError),
    ("string", "\ud800", ValueError),
    ("timestamp_ns", 2**63, struct.error),
    ("geometry", b"", ValueError),
    ("list", [], ValueError),
    ("decimal(9,2)", Decimal("1"), ValueError),  # not the spelling of the specification
]


@pytest.mark.parametrize(("name", "value", "error"), IMPOSSIBLE)
def test_value_that_its_type_cannot_hold_is_an_error(name, value, error):
    with pytest.raises(error):
        to_bytes(name, value)
