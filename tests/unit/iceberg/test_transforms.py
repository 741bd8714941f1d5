"""Partition values, compared with PyIceberg's transforms."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from polynya.iceberg.types import result_type, transformed
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

DAYS = st.integers(-719162, 2932896)  # the years 1 to 9999
MICROS = DAYS.flatmap(
    lambda day: st.integers(0, 86_400_000_000 - 1).map(lambda m: day * 86_400_000_000 + m)
)
TYPES = {
    "int": (IntegerType(), st.integers(-(2**31), 2**31 - 1)),
    "long": (LongType(), st.integers(-(2**63), 2**63 - 1)),
    "date": (DateType(), DAYS),
    "time": (TimeType(), st.integers(0, 86_400_000_000 - 1)),
    "timestamp": (TimestampType(), MICROS),
    "timestamptz": (TimestamptzType(), MICROS),
    "string": (StringType(), st.text()),
    "binary": (BinaryType(), st.binary()),
    "uuid": (UUIDType(), st.uuids()),
    "decimal(9, 2)": (
        DecimalType(9, 2),
        st.decimals("-9999999", "9999999", places=2, allow_nan=False),
    ),
}
CALENDAR = {
    "date": ["year", "month", "day"],
    "timestamp": ["year", "month", "day", "hour"],
    "timestamptz": ["year", "month", "day", "hour"],
}
LEAST = {"int": -(2**31), "long": -(2**63), "decimal(9, 2)": -10_000_000}
HASHED = ["bucket[1]", "bucket[16]"]
TRUNCATED = {
    name: ["truncate[1]", "truncate[7]"]
    for name in ("int", "long", "string", "binary", "decimal(9, 2)")
}
CASES = [
    (transform, name)
    for name in TYPES
    for transform in [
        *("identity", "void", *HASHED),
        *TRUNCATED.get(name, []),
        *CALENDAR.get(name, []),
    ]
]


@pytest.mark.parametrize(("transform", "type_name"), CASES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_value_has_the_same_partition_as_in_pyiceberg(transform, type_name, data):
    type_, values = TYPES[type_name]
    value = data.draw(st.none() | values)
    expected = parse_transform(transform).transform(type_)(value)
    if transform.startswith("truncate") and type_name in LEAST and value is not None:
        assume(expected >= LEAST[type_name])  # it does not fit the type
    own = value.bytes if type_name == "uuid" and value is not None else value
    if type_name == "uuid" and transform == "identity":
        expected = own
    assert transformed(transform, type_name, own) == expected


@pytest.mark.parametrize(
    ("transform", "type_name"),
    [("hour", "date"), ("year", "string"), ("truncate[3]", "date"), ("bucket[4]", "float")],
)
def test_an_unsupported_transform_is_an_error(transform, type_name):
    with pytest.raises(ValueError, match=r"no (transform|bucket)"):
        transformed(transform, type_name, 1)


FITTING = [
    ("identity", "timestamptz", "timestamptz"),
    ("truncate[4]", "string", "string"),
    ("void", "double", "double"),
    ("bucket[4]", "uuid", "int"),
    ("bucket[4]", "decimal(9, 2)", "int"),
    ("day", "timestamptz", "int"),
    ("hour", "date", None),
    ("identity", "uuid", None),  # Java orders them otherwise
    ("bucket[4]", "double", None),
    ("truncate[4]", "boolean", None),
    ("identity", "timestamp_ns", None),
    ("identity", "geometry", None),
    ("bucket[0]", "int", None),
    ("century", "date", None),
]


@pytest.mark.parametrize(("transform", "type_name", "expected"), FITTING)
def test_the_type_of_a_transforms_values(transform, type_name, expected):
    assert result_type(transform, type_name) == expected


def test_zero_has_two_signs():
    with pytest.raises(ValueError, match="two signs"):
        transformed("identity", "double", -0.0)
