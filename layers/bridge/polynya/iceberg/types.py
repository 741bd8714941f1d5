"""Iceberg's types and schemas as records, and their JSON (specification, Appendix C).

https://iceberg.apache.org/spec/#schemas-and-data-types
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str
    """As the specification spells it: `int`, `long`, `decimal(9, 2)`, `timestamptz`, …"""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct. Always optional: DuckLake's nested NOT NULL flags cannot be trusted."""

    field_id: int
    name: str
    type: "Type"
    initial_default: Any = None
    """The value in files written before the field was added, in JSON single-value form."""


@dataclass(frozen=True, slots=True)
class Struct:
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class List:
    element_id: int
    element: "Type"


@dataclass(frozen=True, slots=True)
class Map:
    key_id: int
    key: "Type"
    value_id: int
    value: "Type"


Type = Primitive | Struct | List | Map


@dataclass(frozen=True, slots=True)
class TableSchema:
    schema_id: int
    fields: tuple[Field, ...]

    def json(self) -> dict[str, Any]:
        return {"schema-id": self.schema_id, **type_json(Struct(self.fields))}


def type_json(type_: Type) -> Any:
    """A type as the specification writes it in JSON."""
    match type_:
        case Primitive(name):
            return name
        case Struct(fields):
            return {"type": "struct", "fields": [_field_json(field) for field in fields]}
        case List(element_id, element):
            return {
                "type": "list",
                "element-id": element_id,
                "element": type_json(element),
                "element-required": False,
            }
        case Map(key_id, key, value_id, value):
            return {
                "type": "map",
                "key-id": key_id,
                "key": type_json(key),
                "value-id": value_id,
                "value": type_json(value),
                "value-required": False,
            }


def _field_json(field: Field) -> dict[str, Any]:
    json = {
        "id": field.field_id,
        "name": field.name,
        "required": False,
        "type": type_json(field.type),
    }
    if field.initial_default is not None:
        json["initial-default"] = field.initial_default
    return json


def primitives(fields: tuple[Field, ...]) -> dict[int, str]:
    """Type names by field id of the leaves that are in no list and no map.

    Only these can have bounds and counts: inside lists and maps Parquet counts levels, not values.
    """
    leaves: dict[int, str] = {}
    for field in fields:
        match field.type:
            case Primitive(name):
                leaves[field.field_id] = name
            case Struct(children):
                leaves |= primitives(children)
    return leaves
