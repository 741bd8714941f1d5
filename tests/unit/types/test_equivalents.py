"""DuckLake types and their Iceberg equivalents; PyIceberg defines the valid promotions."""

import itertools

import pytest
from polynya.types.names import (
    DUCKLAKE,
    ICEBERG,
    ducklake_name,
    ducklake_type,
    equivalent,
    may_become,
)
from pyiceberg.exceptions import ResolveError
from pyiceberg.schema import promote
from pyiceberg.types import DecimalType, NestedField, PrimitiveType

# https://ducklake.select/docs/stable/specification/data_types
SPECIFIED = {
    *("boolean", "int8", "int16", "int32", "int64", "int128", "float32", "float64"),
    *("uint8", "uint16", "uint32", "uint64", "uint128", "decimal(9,2)", "varchar", "blob", "json"),
    *("date", "time", "timetz", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns"),
    *("timestamptz", "timestamptz_ns", "interval", "uuid", "geometry", "variant"),
}

TWINS = [
    ("boolean", "boolean"),
    ("int8", "int"),
    ("int16", "int"),
    ("int32", "int"),
    ("uint8", "int"),
    ("uint16", "int"),
    ("uint32", "long"),
    ("int64", "long"),
    ("float32", "float"),
    ("float64", "double"),
    ("decimal(9,2)", "decimal(9, 2)"),
    ("decimal(38, 10)", "decimal(38, 10)"),
    ("decimal(1,1)", "decimal(1, 1)"),
    ("varchar", "string"),
    ("json", "string"),
    ("blob", "binary"),
    ("date", "date"),
    ("time", "time"),
    ("timestamp", "timestamp"),
    ("timestamp_s", "timestamp"),
    ("timestamp_ms", "timestamp"),
    ("timestamptz", "timestamptz"),
    ("uuid", "uuid"),
    *((name, name) for name in ("timestamp_ns", "timestamptz_ns", "geometry", "variant")),
]
NONE = [
    *("uint64", "int128", "uint128", "timetz", "interval"),
    *(
        "time_ns",
        "bit",
        "decimal",
        "decimal(9)",
        "decimal(39,2)",
        "decimal(2,3)",
        "struct",
        "list",
        "",
    ),
]


@pytest.mark.parametrize(("column_type", "expected"), TWINS)
def test_iceberg_type_holds_every_value(column_type, expected):
    assert equivalent(column_type) == expected


@pytest.mark.parametrize("column_type", NONE)
def test_type_without_an_iceberg_equivalent_has_a_reason(column_type):
    assert equivalent(column_type) is None
    assert ducklake_type(column_type).reason


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("timestamp with time zone", "timestamptz"),  # ducklake-dataframe
        ("TIMESTAMP WITH TIME ZONE", "timestamptz"),
        ("decimal(12, 2)", "decimal(12,2)"),  # ducklake-sdk
        ("DECIMAL(12,2)", "decimal(12,2)"),
        ("INT32", "int32"),
        ("List", "list"),
        ("varchar", "varchar"),
        ("Time_NS", "Time_NS"),  # unknown: the reason has it as it is
    ],
)
def test_other_spellings_of_a_type(spelled, name):
    assert ducklake_name(spelled) == name
    assert equivalent(spelled) == equivalent(name)


def test_reason_names_an_unknown_type():
    assert "time_ns" in ducklake_type("time_ns").reason


def test_every_ducklake_type_has_an_iceberg_type_or_a_reason():
    for column_type in SPECIFIED:
        type_ = ducklake_type(column_type)
        assert column_type in DUCKLAKE or "(" in column_type
        has_reason = type_.iceberg is None or type_.needs_version_3
        assert has_reason == bool(type_.reason), column_type


UNKNOWN_TO_PYICEBERG = {"variant"}


@pytest.mark.parametrize("name", sorted({name for _, name in TWINS} - UNKNOWN_TO_PYICEBERG))
def test_pyiceberg_has_the_iceberg_type(name):
    field = NestedField.model_validate({"id": 1, "name": "c", "type": name, "required": False})
    assert str(field.field_type) == name


DECIMALS = ["decimal(9, 2)", "decimal(18, 2)", "decimal(18, 4)", "decimal(38, 2)", "decimal(8, 2)"]
NAMES = sorted({*ICEBERG, *DECIMALS} - UNKNOWN_TO_PYICEBERG)


def type_of(name: str) -> PrimitiveType:
    field = {"id": 1, "name": "c", "type": name, "required": False}
    return NestedField.model_validate(field).field_type


@pytest.mark.parametrize(("before", "after"), [*itertools.product(NAMES, NAMES)])
def test_promotions_are_those_of_iceberg(before, after):
    # PyIceberg reads both as bytes of the same length; the specification has no such promotion.
    if {before, after} == {"string", "binary"}:
        assert not may_become(before, after)
        return
    old, new = type_of(before), type_of(after)
    try:
        is_legal = old == new or promote(old, new) == new
    except ResolveError:
        is_legal = False
    if isinstance(old, DecimalType) and isinstance(new, DecimalType):
        # PyIceberg 0.12 does not compare the scales.
        is_legal = old.scale == new.scale and old.precision <= new.precision
    assert may_become(before, after) == is_legal
