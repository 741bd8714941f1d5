"""Partition values, compared with PyIceberg's transforms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.iceberg.types import transformed
from pyiceberg.transforms import parse_transform
from pyiceberg.types import (
    BinaryType,
    DateType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
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
}
CALENDAR = {
    "date": ["year", "month", "day"],
    "timestamp": ["year", "month", "day", "hour"],
    "timestamptz": ["year", "month", "day", "hour"],
}
HASHED = ["bucket[1]", "bucket[16]"]
BUCKETS = {"timestamptz": []}  # DuckLake's are not used
CASES = [
    (transform, name)
    for name in TYPES
    for transform in ["identity", *BUCKETS.get(name, HASHED), *CALENDAR.get(name, [])]
]


@pytest.mark.parametrize(("transform", "type_name"), CASES)
@given(data=st.data())
def test_a_value_has_the_same_partition_as_in_pyiceberg(transform, type_name, data):
    type_, values = TYPES[type_name]
    value = data.draw(st.none() | values)
    expected = parse_transform(transform).transform(type_)(value)
    assert transformed(transform, type_name, value) == expected


@pytest.mark.parametrize(
    ("transform", "type_name"),
    [("hour", "date"), ("year", "string"), ("truncate[3]", "string"), ("bucket[4]", "float")],
)
def test_an_unsupported_transform_is_an_error(transform, type_name):
    with pytest.raises(ValueError, match=r"no (transform|bucket)"):
        transformed(transform, type_name, 1)
