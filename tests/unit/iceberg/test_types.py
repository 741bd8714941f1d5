"""Schemas in JSON, read by PyIceberg."""

import json

import pytest
from polynya.iceberg.types import (
    Field,
    List,
    Map,
    Primitive,
    Struct,
    TableSchema,
    primitives,
    type_json,
)
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

INT, STRING = Primitive("int"), Primitive("string")

TYPES = [
    (Primitive("boolean"), BooleanType()),
    (Primitive("int"), IntegerType()),
    (Primitive("long"), LongType()),
    (Primitive("float"), FloatType()),
    (Primitive("double"), DoubleType()),
    (Primitive("decimal(38, 10)"), DecimalType(38, 10)),
    (Primitive("string"), StringType()),
    (Primitive("binary"), BinaryType()),
    (Primitive("date"), DateType()),
    (Primitive("time"), TimeType()),
    (Primitive("timestamp"), TimestampType()),
    (Primitive("timestamptz"), TimestamptzType()),
    (Primitive("uuid"), UUIDType()),
    (Struct((Field(5, "a b", INT),)), StructType(NestedField(5, "a b", IntegerType()))),
    (List(7, STRING), ListType(7, StringType(), element_required=False)),
    (Map(8, STRING, 9, INT), MapType(8, StringType(), 9, IntegerType(), value_required=False)),
    (
        List(7, Struct((Field(8, "m", Map(9, STRING, 10, List(11, INT))),))),
        ListType(
            7,
            StructType(
                NestedField(
                    8,
                    "m",
                    MapType(
                        9,
                        StringType(),
                        10,
                        ListType(11, IntegerType(), element_required=False),
                        value_required=False,
                    ),
                )
            ),
            element_required=False,
        ),
    ),
]


@pytest.mark.parametrize(("type_", "expected"), TYPES, ids=lambda value: str(value)[:40])
def test_pyiceberg_reads_the_same_type(type_, expected):
    document = TableSchema(3, (Field(1, "ünï \"c'", type_),)).json()
    schema = Schema.model_validate_json(json.dumps(document))
    # Schema.__eq__ does not compare the id.
    assert schema.schema_id == 3
    assert schema == Schema(NestedField(1, "ünï \"c'", expected, required=False))


def test_pyiceberg_reads_the_same_default():
    document = TableSchema(0, (Field(1, "n", INT, 42), Field(2, "zero", INT, 0))).json()
    schema = Schema.model_validate_json(json.dumps(document))
    assert [field.initial_default for field in schema.fields] == [42, 0]


def test_field_without_a_default_has_no_default_keys():
    [field] = TableSchema(0, (Field(1, "n", INT),)).json()["fields"]
    assert field == {"id": 1, "name": "n", "required": False, "type": "int"}


def test_only_map_keys_are_required():
    assert type_json(Map(1, STRING, 2, INT)) == {
        "type": "map",
        "key-id": 1,
        "key": "string",
        "value-id": 2,
        "value": "int",
        "value-required": False,
    }


def test_leaves_with_statistics_are_in_no_list_and_no_map():
    fields = (
        Field(1, "i", INT),
        Field(2, "s", Struct((Field(3, "x", STRING), Field(4, "l", List(5, INT))))),
        Field(6, "l", List(7, Struct((Field(8, "y", INT),)))),
        Field(9, "m", Map(10, STRING, 11, INT)),
        Field(12, "deep", Struct((Field(13, "s", Struct((Field(14, "d", Primitive("date")),))),))),
    )
    assert primitives(fields) == {1: "int", 3: "string", 14: "date"}
