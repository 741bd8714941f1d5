"""The base of the request bodies, which pydantic checks, and schemas in them.

https://iceberg.apache.org/spec/#appendix-c-json-serialization
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic import Field as JsonField

from ..iceberg import types
from ..runtime.errors import BadRequest

Parsed = TypeVar("Parsed")


class Body(BaseModel):
    """A JSON object with names in kebab-case. Unknown keys are ignored: the specification may add
    some."""

    model_config = ConfigDict(
        alias_generator=lambda name: name.replace("_", "-"),
        frozen=True,
        strict=True,
        extra="ignore",
    )


# In JSON a NUL is always escaped; an even number of backslashes before it is text.
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def parse(kind: type[Parsed], body: bytes) -> Parsed:
    """The body of a request that changes something.

    Raises:
        BadRequest: it does not have the form of the specification; the message says where. Or it
            has a text with a NUL.
    """
    # PostgreSQL's texts cannot hold one, but tags with JSON can: DuckDB 1.5.5 aborts its process
    # when it reads it in the metadata of a table.
    if NUL.search(body):
        raise BadRequest("a text of the body has a NUL character: remove it")
    try:
        return TypeAdapter(kind).validate_json(body)
    except ValidationError as error:
        raise malformed(error) from None


def malformed(error: ValidationError) -> BadRequest:
    """The error for a body: where it first differs from the specification, and how."""
    # Without the value, which can be anything.
    first = error.errors(include_input=False, include_url=False)[0]
    where = ".".join(map(str, first["loc"])) or "the body"
    return BadRequest(f"{where}: {first['msg']}")


class StructField(Body):
    """A field of a struct, or a column."""

    id: int
    name: str
    required: bool
    type: Type
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None


class StructType(Body):
    """A struct."""

    type: Literal["struct"]
    fields: list[StructField]


class ListType(Body):
    """A list."""

    type: Literal["list"]
    element_id: int
    element: Type
    element_required: bool


class MapType(Body):
    """A map."""

    type: Literal["map"]
    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool


Type = str | StructType | ListType | MapType


class Schema(Body):
    """A schema with its fields."""

    type: Literal["struct"] = "struct"
    fields: list[StructField]
    schema_id: int | None = None
    identifier_field_ids: list[int] = JsonField(default_factory=list)


DEFAULT_GEOMETRY = {"geometry(ogc:crs84)"}
"""DuckDB's spelling of the type `geometry`, with its coordinate reference system."""


def type_of(type_: Type) -> types.Type:
    """The record of a type."""
    match type_:
        case str(name):
            is_default = name.replace(" ", "").casefold() in DEFAULT_GEOMETRY
            return types.Primitive(
                # Some clients write a decimal with a space, some without one.
                "geometry" if is_default else name.replace(",", ", ").replace("  ", " ")
            )
        case StructType(fields=fields):
            return types.Struct(tuple(map(field_of, fields)))
        case ListType():
            return types.List(type_.element_id, type_of(type_.element))
        case MapType():
            return types.Map(type_.key_id, type_of(type_.key), type_.value_id, type_of(type_.value))


def field_of(field: StructField) -> types.Field:
    """The record of a field."""
    defaults = field.initial_default, field.required, field.write_default
    return types.Field(field.id, field.name, type_of(field.type), *defaults)


def docs(fields: list[StructField]) -> dict[int, str]:
    """The comments of all fields, by field id."""
    return {field.id: field.doc for field in _fields(fields) if field.doc is not None}


def _fields(fields: list[StructField]) -> Iterator[StructField]:
    for field in fields:
        yield field
        yield from _nested_fields(field.type)


def _nested_fields(type_: Type) -> Iterator[StructField]:
    match type_:
        case StructType(fields=fields):
            yield from _fields(fields)
        case ListType():
            yield from _nested_fields(type_.element)
        case MapType():
            yield from _nested_fields(type_.key)
            yield from _nested_fields(type_.value)


StructField.model_rebuild()
ListType.model_rebuild()
MapType.model_rebuild()
