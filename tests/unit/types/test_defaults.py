"""Defaults of added columns in JSON, parsed by PyIceberg; the texts are in DuckLake's form."""

import datetime as dt
import json
import math
import uuid
from decimal import Decimal

import pytest
from polynya.types.names import default_json
from pyiceberg.types import NestedField

UTC = dt.UTC

DEFAULTS = [
    ("boolean", "true", True),
    ("boolean", "false", False),
    ("int", "42", 42),
    ("int", "0", 0),
    ("long", "-9223372036854775808", -(2**63)),
    ("float", "0.1", 0.1),
    ("double", "1e+300", 1e300),
    ("double", "-0.0", -0.0),
    ("decimal(9, 2)", "1.00", Decimal("1.00")),
    ("decimal(9, 2)", "-1.25", Decimal("-1.25")),
    ("decimal(20, 10)", "0.0000001000", Decimal("0.0000001000")),
    ("string", "", ""),
    ("string", 'it\'s "d" ü\n', 'it\'s "d" ü\n'),
    ("string", "NULL", "NULL"),
    ("date", "2024-02-29", dt.date(2024, 2, 29)),
    ("date", "0001-01-01", dt.date(1, 1, 1)),
    ("date", "9999-12-31", dt.date(9999, 12, 31)),
    ("time", "00:00:00", dt.time(0)),
    ("time", "23:59:59.999999", dt.time(23, 59, 59, 999999)),
    ("timestamp", "2024-01-02 03:04:05.678", dt.datetime(2024, 1, 2, 3, 4, 5, 678000)),
    ("timestamp", "1969-12-31 23:59:59.999999", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    ("timestamptz", "2024-02-28 19:32:03+00", dt.datetime(2024, 2, 28, 19, 32, 3, tzinfo=UTC)),
    ("timestamptz", "1969-12-31 23:59:59.5+00", dt.datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)),
    ("uuid", "00000000-0000-0000-0000-000000000abc", uuid.UUID(int=0xABC)),
    ("binary", "\\x00\\xFFa", b"\x00\xffa"),
    ("binary", "ab", b"ab"),  # two letters, not one byte in hexadecimal
    ("binary", "", b""),
]


@pytest.mark.parametrize(("name", "text", "expected"), DEFAULTS)
def test_default_is_parsed_by_pyiceberg_as_the_value(name, text, expected):
    field = {"id": 1, "name": "c", "type": name, "required": False}
    document = json.dumps(field | {"initial-default": default_json(name, text)}, allow_nan=False)
    parsed = NestedField.model_validate_json(document).initial_default
    assert parsed == expected and type(parsed) is type(expected)
    if isinstance(expected, float):
        assert math.copysign(1, parsed) == math.copysign(1, expected)


# https://iceberg.apache.org/spec/#json-single-value-serialization
SPECIFIED = [
    ("boolean", "true", True),
    ("int", "34", 34),
    ("date", "2017-11-16", "2017-11-16"),
    ("time", "22:31:08.123456", "22:31:08.123456"),
    ("timestamp", "2017-11-16 22:31:08.123456", "2017-11-16T22:31:08.123456"),
    ("timestamptz", "2017-11-16 22:31:08.123456+00", "2017-11-16T22:31:08.123456+00:00"),
    ("timestamp_ns", "2017-11-16 22:31:08.123456789", "2017-11-16T22:31:08.123456789"),
    ("timestamp_ns", "1969-12-31 23:59:59", "1969-12-31T23:59:59.000000000"),
    ("timestamptz_ns", "2017-11-16 22:31:08.12+00", "2017-11-16T22:31:08.120000000+00:00"),
    ("string", "iceberg", "iceberg"),
    ("uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
    ("binary", "\\x00\\x01\\x02\\xFF", "000102ff"),
    ("decimal(4, 2)", "14.20", "14.20"),
    ("decimal(9, 5)", "-.00001", "-0.00001"),
]


@pytest.mark.parametrize(("name", "text", "expected"), SPECIFIED)
def test_default_has_the_specifications_form(name, text, expected):
    assert default_json(name, text) == expected


NOT_SERVED = [
    ("binary", "\\x0"),
    ("binary", "é"),
    ("timestamp_ns", "2024-01-02 03:04:05+01"),
    ("timestamp_ns", "infinity"),
    ("timestamptz_ns", "2024-01-02 03:04:05"),
    ("geometry", "POINT(1 2)"),
    ("float", "nan"),
    ("double", "inf"),
    ("double", "-inf"),
    ("date", "infinity"),
    ("date", "0044-03-15 (BC)"),
    ("date", "10000-01-01"),
    ("timestamp", "infinity"),
    ("timestamp", "290000-01-01 00:00:00"),
    ("timestamptz", "2024-01-02 03:04:05"),
    ("time", "24:00:00"),  # the end of the day, not midnight at its beginning
    ("int", "NULL"),
    ("uuid", "x"),
    ("decimal(9, 2)", "nan"),
]


@pytest.mark.parametrize(("name", "text"), NOT_SERVED)
def test_default_that_json_cannot_hold_exactly_is_an_error(name, text):
    with pytest.raises(ValueError):
        default_json(name, text)
