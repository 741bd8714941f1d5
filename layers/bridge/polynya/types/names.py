"""Types by their names, and the tables that follow from their records.

`docs/exactness.md` is the list for users.
"""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from . import nested, numbers, temporal, texts
from .numbers import ducklake_decimal, iceberg_decimal, precision_and_scale
from .records import DuckLakeType, IcebergType

ICEBERG: Mapping[str, IcebergType] = {
    type_.name: type_
    for type_ in (*numbers.ICEBERG, *temporal.ICEBERG, *texts.ICEBERG, *nested.ICEBERG)
}
"""All but decimals."""

DUCKLAKE: Mapping[str, DuckLakeType] = {
    type_.name: type_ for family in (numbers, texts, temporal, nested) for type_ in family.DUCKLAKE
}
"""All but decimals and nested types."""

FORMS: Mapping[str, IcebergType] = {
    type_.form: type_ for type_ in (*ICEBERG.values(), iceberg_decimal(38, 0)) if type_.form
}
"""The widest type of each form, whose record defines how literals are spelled and sorted."""

INTEGERS = frozenset(name for name, type_ in DUCKLAKE.items() if type_.limit)
FLOATS = frozenset(
    type_.name for type_ in DUCKLAKE.values() if type_.iceberg and type_.iceberg.is_float
)
TEXTS = frozenset(
    type_.name for type_ in DUCKLAKE.values() if type_.iceberg and type_.iceberg.has_cut_bounds
)
"""The types of DuckLake whose bounds can be too long."""

UNCOUNTED = frozenset(name for name, type_ in DUCKLAKE.items() if not type_.has_counts)
UNORDERED = frozenset(name for name, type_ in DUCKLAKE.items() if type_.order is None)
"""The types of DuckLake whose counts are wrong, and whose bounds are not compared."""


@lru_cache(maxsize=1024)
def iceberg_type(name: str) -> IcebergType:
    """The Iceberg type with this name; if it is unknown, a type that supports nothing."""
    if name in ICEBERG:
        return ICEBERG[name]
    parameters = precision_and_scale(name)
    if parameters and (decimal := iceberg_decimal(*parameters)).name == name:
        return decimal
    return IcebergType(name)


def is_ducklake_type(name: str) -> bool:
    """Whether columns of DuckLake can have this type, which is not nested."""
    return name in DUCKLAKE or precision_and_scale(name) is not None


ALIASES = {"timestamp with time zone": "timestamptz", "time with time zone": "timetz"}
"""Names that other programs than DuckDB write (ducklake-dataframe), which DuckDB refuses."""


@lru_cache(maxsize=1024)
def ducklake_name(spelled: str) -> str:
    """DuckLake's name of a type that a catalog may spell otherwise; an unknown one stays."""
    name = " ".join(spelled.lower().split())
    if parameters := precision_and_scale(name):
        return ducklake_decimal(*parameters).name
    name = ALIASES.get(name, name)
    return name if name in DUCKLAKE or name in nested.NESTED else spelled


@lru_cache(maxsize=1024)
def ducklake_type(name: str) -> DuckLakeType:
    """The DuckLake type with this name; if it is unknown, a type that has no Iceberg type."""
    name = ducklake_name(name)
    if name in DUCKLAKE:
        return DUCKLAKE[name]
    if parameters := precision_and_scale(name):
        return ducklake_decimal(*parameters)
    return DuckLakeType(name, reason=f"the DuckLake type {name} is not known to Polynya")


def equivalent(column_type: str) -> str | None:
    """The name of the Iceberg type that is equivalent to a DuckLake type, or None."""
    iceberg = ducklake_type(column_type).iceberg
    return None if iceberg is None else iceberg.name


def may_become(before: str, after: str) -> bool:
    """Whether Iceberg reads files that were written as `before` if the column is now `after`.

    Specification, "Schema Evolution": the promotions of format version 2.
    """
    if after in (before, iceberg_type(before).promoted):
        return True
    old, new = precision_and_scale(before), precision_and_scale(after)
    return bool(old and new and old[1] == new[1] and old[0] <= new[0])


def value(type_name: str, text: str) -> Any:
    """Read a text of DuckLake as a value of an Iceberg type.

    Raises:
        ValueError: the text is not a value of this type, or this is not certain.
    """
    return iceberg_type(type_name).parse(text)


def default_json(type_name: str, text: str) -> Any:
    """Convert DuckLake's `initial_default` to Iceberg's `initial-default`, in JSON.

    It applies to files that were written before the column was added. `default_value` is never
    converted: it is for new rows, and is the text 'NULL' if there is none.
    https://iceberg.apache.org/spec/#json-single-value-serialization

    Raises:
        ValueError: the value of the default is not certain.
    """
    type_ = iceberg_type(type_name)
    return (type_.default or type_.parse)(text)


def default_text(type_name: str, value: Any) -> str:
    """Convert a default of Iceberg in JSON to DuckLake's `initial_default` or `default_value`.

    Raises:
        ValueError: the type has no certain defaults, or the value is not of the type.
    """
    is_plain = type_name == "uuid" or (type_name == "boolean" and isinstance(value, bool))
    try:
        text = str(value).lower() if is_plain else iceberg_type(type_name).literal(value)
        text = texts.blob_text(bytes.fromhex(text)) if type_name == "binary" else text
        # Statistics have it in UTC without a zone, which native DuckLake would take for the
        # session's zone.
        text += "+00" if type_name in ("timestamptz", "timestamptz_ns") else ""
        default_json(type_name, text)
    except (TypeError, ArithmeticError) as error:
        raise ValueError(str(error)) from None
    if text == "NULL":
        raise ValueError("DuckLake takes the text NULL for no default")
    return text


def to_bytes(type_name: str, value: Any) -> bytes:
    """Serialize a value of an Iceberg type (specification, Appendix D).

    Raises:
        ValueError: the type has no single-value form here.
    """
    type_ = iceberg_type(type_name)
    return struct.pack(type_.layout, value) if type_.layout else type_.to_bytes(value)


def order(column_type: str) -> Callable[[str], Any]:
    """The function that parses texts of statistics into values that have DuckDB's order.

    It raises ValueError if a text is not a value of the type.

    Args:
        column_type: DuckLake's.

    Raises:
        ValueError: the type has no known order.
    """
    parse = ducklake_type(column_type).order
    if parse is None:
        raise ValueError(f"{column_type} has no known order")
    return parse


def comparable(column_type: str, text: str) -> Any:
    """Parse a text of statistics into a value that Python orders as DuckDB orders the column.

    Raises:
        ValueError: the text is not a value of this type, or the type has no known order.
    """
    return order(column_type)(text)
