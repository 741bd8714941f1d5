"""Iceberg's types and schemas as records, and their JSON (specification, Appendix C).

https://iceberg.apache.org/spec/#schemas-and-data-types

`transformed` applies a partition transform to one value: days for a date, microseconds for a time
or a timestamp. https://iceberg.apache.org/spec/#partition-transforms
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..types.names import iceberg_type

NO_DOCS: Mapping[int, str] = {}


@dataclass(frozen=True, slots=True)
class Primitive:
    """A primitive type."""

    name: str
    """The name of a `types.records.IcebergType`."""

    @property
    def members(self) -> tuple["Field", ...]:
        """No fields."""
        return ()


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a struct. Below the top level it is always optional, because DuckLake's nested NOT
    NULL flags cannot be trusted."""

    field_id: int
    name: str
    type: "Type"
    initial_default: Any = None
    """The value in files written before the field was added, in JSON single-value form."""
    required: bool = False
    write_default: Any = None
    """The value in new rows if the writer gives none."""


class AddedField(NamedTuple):
    """A column that a file lacks, with the value that it has in all rows."""

    field: Field
    """Its `initial_default` is the value."""
    parent: int | None = None
    """The field id of the struct that it is in; None: it is at the top level."""
    depth: int = 0
    """How many structs it is in."""


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct of fields."""

    fields: tuple[Field, ...]

    @property
    def members(self) -> tuple[Field, ...]:
        """The fields."""
        return self.fields


@dataclass(frozen=True, slots=True)
class List:
    """A list, with the field id of its element."""

    element_id: int
    element: "Type"

    @property
    def members(self) -> tuple[Field, ...]:
        """The element as a field."""
        return (Field(self.element_id, "element", self.element),)


@dataclass(frozen=True, slots=True)
class Map:
    """A map, with the field ids of its key and value."""

    key_id: int
    key: "Type"
    value_id: int
    value: "Type"

    @property
    def members(self) -> tuple[Field, ...]:
        """The key and the value as fields."""
        return Field(self.key_id, "key", self.key), Field(self.value_id, "value", self.value)


Type = Primitive | Struct | List | Map


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A schema of a table."""

    schema_id: int
    fields: tuple[Field, ...]
    identifiers: tuple[int, ...] = ()
    """The ids of the fields that identify a row."""

    def json(self, docs: Mapping[int, str] = NO_DOCS) -> dict[str, Any]:
        """The schema; `docs` are comments by field id."""
        identifiers = {"identifier-field-ids": list(self.identifiers)} if self.identifiers else {}
        return {"schema-id": self.schema_id, **type_json(Struct(self.fields), docs), **identifiers}


def type_json(type_: Type, docs: Mapping[int, str] = NO_DOCS) -> Any:
    """A type as the specification writes it in JSON."""
    match type_:
        case Primitive(name):
            return name
        case Struct(fields):
            return {"type": "struct", "fields": [_field_json(field, docs) for field in fields]}
        case List(element_id, element):
            return {
                "type": "list",
                "element-id": element_id,
                "element": type_json(element, docs),
                "element-required": False,  # as for `Field`
            }
        case Map(key_id, key, value_id, value):
            return {
                "type": "map",
                "key-id": key_id,
                "key": type_json(key, docs),
                "value-id": value_id,
                "value": type_json(value, docs),
                "value-required": False,  # as for `Field`
            }


def _field_json(field: Field, docs: Mapping[int, str]) -> dict[str, Any]:
    json = {
        "id": field.field_id,
        "name": field.name,
        "required": field.required,
        "type": type_json(field.type, docs),
    }
    if field.field_id in docs:
        json["doc"] = docs[field.field_id]
    if field.initial_default is not None:
        json["initial-default"] = field.initial_default
    if field.write_default is not None:
        json["write-default"] = field.write_default
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


def top_level(fields: tuple[Field, ...]) -> dict[int, int]:
    """The id of the top-level field that each of the `primitives` is, or is in."""
    return {leaf: field.field_id for field in fields for leaf in primitives((field,))}


def leaf_types(fields: Iterable[Field]) -> Iterator[str]:
    """The name of the type of each leaf, at every level, in the order of Parquet's columns."""
    for field in fields:
        if isinstance(field.type, Primitive):
            yield field.type.name
        yield from leaf_types(field.type.members)


def type_names(fields: Iterable[Field]) -> set[str]:
    """The names of all primitive types, at every level."""
    return set(leaf_types(fields))


def dotted_names(type_: Type, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The dotted names and the ids of all fields below a type, as Iceberg's clients write them."""
    for field in type_.members:
        yield prefix + field.name, field.field_id
        yield from dotted_names(field.type, f"{prefix}{field.name}.")


BUCKET = re.compile(r"bucket\[([1-9][0-9]{0,8})\]")
TRUNCATE = re.compile(r"truncate\[([1-9][0-9]{0,8})\]")
VOID = "void"


def result_type(transform: str, type_name: str) -> str | None:
    """The type of a transform's values, by its name; None: it does not take this type."""
    type_ = iceberg_type(type_name)
    if transform in {"identity", VOID}:
        # Java orders UUIDs by signed halves: no summary of their values is right for all clients.
        return type_name if type_.avro is not None else None
    if TRUNCATE.fullmatch(transform):
        return type_name if type_.truncated is not None else None
    takes = type_.hashed is not None if BUCKET.fullmatch(transform) else transform in type_.parts
    return "int" if takes else None


def transformed(transform: str, type_name: str, value: Any) -> Any:
    """The partition value of a value of an Iceberg primitive type; None for None.

    Raises:
        ValueError: the transform does not take this type, or is unknown, or clients disagree on
            the value.
    """
    if value is None or transform == VOID:
        return None
    if transform == "identity":
        if isinstance(value, float) and value == 0:
            raise ValueError("zero has two signs")
        return value
    if match := BUCKET.fullmatch(transform):
        return _hash(type_name, value) % int(match[1])
    truncated = iceberg_type(type_name).truncated
    if truncated is not None and (match := TRUNCATE.fullmatch(transform)):
        return truncated(value, int(match[1]))
    parts = iceberg_type(type_name).parts
    if transform not in parts:
        raise ValueError(f"no transform {transform} of {type_name}")
    return parts[transform](value)


def _hash(type_name: str, value: Any) -> int:
    hashed = iceberg_type(type_name).hashed
    if hashed is None:
        raise ValueError(f"no bucket of {type_name}")
    return hash_of(hashed(value))


def hash_of(hashed: bytes) -> int:
    """Murmur3, 32 bits, without the sign (specification, Appendix B)."""
    import mmh3  # only tables with buckets need it

    return int(mmh3.hash(hashed, signed=False)) & 0x7FFFFFFF
