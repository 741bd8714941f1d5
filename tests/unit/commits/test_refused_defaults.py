"""Defaults within columns, and in tables of format version 2, which are refused."""

import pytest
from polynya.commits.plan.alter_columns import schema_change
from polynya.commits.plan.new_table import columns_of_request
from polynya.ducklake.column_tree import ColumnNode
from polynya.iceberg.types import Field, Primitive
from polynya.rest.schemas import Schema
from polynya.runtime.errors import BadRequest

ID = {"id": 1, "name": "id", "type": "long", "required": False}


def struct_of(field):
    return {"type": "struct", "fields": [field]}


def list_of(element):
    return {"type": "list", "element-id": 3, "element": element, "element-required": False}


def map_of(key, value):
    of_key = {"key-id": 3, "key": key}
    return {"type": "map", **of_key, "value-id": 4, "value": value, "value-required": False}


# The type of a new column, around the field with the default.
PLACES = {
    "in a struct": struct_of,
    "in two structs": lambda field: struct_of(
        {"id": 3, "name": "inner", "required": False, "type": struct_of(field)}
    ),
    "in the element of a list": lambda field: list_of(struct_of(field)),
    "in the value of a map": lambda field: map_of("string", struct_of(field)),
    "in the key of a map": lambda field: map_of(struct_of(field), "string"),
}
DEFAULTS = ("initial-default", "write-default")


def creates(schema):
    columns_of_request(schema, 3, keep_ids=False)


def creates_staged(schema):
    columns_of_request(schema, 3, keep_ids=True)


def adds(schema):
    shown = Field(1, "id", Primitive("long"))
    schema_change((ColumnNode(1, "id", "int64"),), [shown], {}, schema, 1)


def wanted(place, **default):
    field = {"id": 9, "name": "n", "type": "int", "required": False, **default}
    if place is not None:
        field = {"id": 2, "name": "c", "required": False, "type": PLACES[place](field)}
    return Schema.model_validate({"type": "struct", "fields": [ID, field]})


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("asks", [creates, creates_staged, adds])
def test_a_default_is_refused_and_the_same_column_without_it_is_not(asks, place):
    for default in DEFAULTS:
        with pytest.raises(BadRequest, match="defaults of whole columns"):
            asks(wanted(place, **{default: 3}))
    asks(wanted(place))


@pytest.mark.parametrize("default", DEFAULTS)
def test_a_default_needs_format_version_3(default):
    schema = wanted(None, **{default: 3})
    with pytest.raises(BadRequest, match="needs format version 3"):
        columns_of_request(schema, 2, keep_ids=False)
    columns_of_request(schema, 3, keep_ids=False)
