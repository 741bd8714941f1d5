"""Schemas of Avro files that others wrote: what a decoder must not be given.

An array of items without bytes (null, or a record of nulls) can have 2^60 of them in a few bytes,
and a record that contains itself can be nested as deep as the file is long.
"""

import json
from typing import Any

from .malformed import Malformed

PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
LONGEST_SCHEMA = 1024 * 1024


def check_schema(text: bytes) -> None:
    """Check the schema of a file.

    Raises:
        Malformed: it is none, or has one of these types.
    """
    if len(text) > LONGEST_SCHEMA:
        raise Malformed("its schema is too long")
    try:
        _has_bytes(json.loads(text), {})
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Malformed("its schema is none of Iceberg's") from None


def _has_bytes(schema: Any, named: dict[str, bool]) -> bool:
    """Whether every value of a type has at least one byte.

    Args:
        named: the types so far that are complete, by their names.
    """
    match schema:
        case str():
            return schema != "null" if schema in PRIMITIVES else named[schema]
        case list():
            for branch in schema:
                _has_bytes(branch, named)
            return True
        case {"type": "record", "fields": fields, "name": name}:
            found = [_has_bytes(field["type"], named) for field in fields]
            named[name] = any(found)
            return named[name]
        case {"type": "fixed", "size": size, "name": name}:
            named[name] = size > 0
            return named[name]
        case {"type": "array", "items": items}:
            if not _has_bytes(items, named):
                raise KeyError("items")
            return True
        case {"type": "map", "values": values}:
            _has_bytes(values, named)
            return True
        case {"type": "enum", "name": name}:
            named[name] = True
            return True
        case {"type": inner}:
            return _has_bytes(inner, named)
    raise KeyError("type")
