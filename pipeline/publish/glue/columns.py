"""The columns of a table as Glue shows them, in Hive's types.

Engines read the columns from the Iceberg metadata; these are for Glue's console and Lake Formation.
Names of types and parameters as Iceberg's own Glue catalogs write them.
"""

from collections.abc import Iterator
from typing import Any

from polynya.iceberg.table_metadata import TableMetadata
from polynya.iceberg.types import Field, List, Map, Primitive, Struct, Type

HIVE_TYPES = {
    "long": "bigint",
    "time": "string",
    "uuid": "string",
    "timestamptz": "timestamp",
    "timestamptz_ns": "timestamp_ns",
}
"""Where the name differs from Iceberg's."""

MOST_CHARACTERS = 131_072
"""Of the text of a type in Glue."""


def columns(document: TableMetadata) -> list[dict[str, Any]]:
    """The columns of a table for Glue's `StorageDescriptor`: the current ones, then former ones."""
    current = document.current_schema_id
    schemas = sorted(document.schemas, key=lambda schema: schema.schema_id != current)
    found: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        for field in schema.fields:
            is_current = schema.schema_id == current
            found.setdefault(field.name, _column(field, is_current, document.docs))
    return list(found.values())


def _column(field: Field, is_current: bool, docs: Any) -> dict[str, Any]:
    column = {
        "Name": field.name,
        "Type": hive_type(field.type),
        "Parameters": {
            "iceberg.field.id": str(field.field_id),
            "iceberg.field.optional": str(not field.required).lower(),
            "iceberg.field.current": str(is_current).lower(),
        },
    }
    if comment := docs.get(field.field_id):
        column["Comment"] = _line(comment)
    return column


def _line(comment: str) -> str:
    """A comment as Glue accepts it: one line of at most 255 characters."""
    return " ".join(comment.split())[:255]


def hive_type(type_: Type) -> str:
    """The text of a type in Hive's syntax."""
    text = "".join(_parts(type_))
    return text if len(text) <= MOST_CHARACTERS else text.partition("<")[0]


def _parts(type_: Type) -> Iterator[str]:
    match type_:
        case Primitive(name):
            yield HIVE_TYPES.get(name, name.replace(" ", ""))
        case Struct(fields):
            members = (f"{field.name}:{hive_type(field.type)}" for field in fields)
            yield f"struct<{','.join(members)}>"
        case List(_, element):
            yield f"array<{hive_type(element)}>"
        case Map(_, key, _, value):
            yield f"map<{hive_type(key)},{hive_type(value)}>"
