"""DuckLake column types as Iceberg types, and DuckLake's texts as values of Iceberg types.

A type that Iceberg lacks is widened if every value in existing Parquet files stays the same
(int8 -> int). Other types have no equivalent here, and their columns are hidden: a wrong type would
not fail, it would read wrong rows. `docs/exactness.md` is the list for users.

`value` reads the texts of statistics and defaults, but only certain ones: years 1 to 9999, finite
numbers. Everything else is a ValueError, and the caller omits it (a bound) or refuses it (a
default).
"""

import re
from collections.abc import Callable
from typing import Any

from ..ducklake import text_values
from ..iceberg.manifest import DECIMAL

PRIMITIVES = {
    "boolean": "boolean",
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "uint8": "int",
    "uint16": "int",
    "uint32": "long",
    "int64": "long",
    "float32": "float",
    "float64": "double",
    "varchar": "string",
    "json": "string",
    "blob": "binary",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamp_s": "timestamp",
    "timestamp_ms": "timestamp",
    "timestamptz": "timestamptz",
    "uuid": "uuid",
}

NO_TWIN = {
    "uint64": "values from 2^63 up do not fit Iceberg's long",
    "int128": "DuckLake stores it as a rounded double",
    "uint128": "DuckLake stores it as a rounded double",
    "timetz": "DuckLake drops the offset in files and keeps it in inlined rows",
    "timestamp_ns": "nanoseconds need format version 3, which not every client reads",
    "timestamptz_ns": "nanoseconds need format version 3, which not every client reads",
    "interval": "Iceberg has no interval",
    "geometry": "geometry needs format version 3, which not every client reads",
    "variant": "variant needs format version 3, which not every client reads",
}

DUCKLAKE_DECIMAL = re.compile(r"decimal\(([1-9][0-9]?), ?(0|[1-9][0-9]?)\)")

MAX_PRECISION = 38
"""The largest precision of a decimal, in DuckLake and in Iceberg."""

# Specification, "Schema Evolution": the promotions of format version 2. Decimals below.
PROMOTIONS = {("int", "long"), ("float", "double")}


def iceberg_type(column_type: str) -> str | None:
    """The Iceberg primitive type that is equivalent to a DuckLake `column_type`, or None."""
    if is_decimal(column_type):
        return column_type if ", " in column_type else column_type.replace(",", ", ")
    return PRIMITIVES.get(column_type)


def is_decimal(column_type: str) -> bool:
    """Whether this is a decimal that DuckLake and Iceberg support."""
    match = DUCKLAKE_DECIMAL.fullmatch(column_type)
    return bool(match and int(match[2]) <= int(match[1]) <= MAX_PRECISION)


def no_twin(column_type: str) -> str:
    """Why a DuckLake type has no Iceberg equivalent, for the user."""
    return NO_TWIN.get(column_type, f"the DuckLake type {column_type} is not known to Polynya")


def may_become(before: str, after: str) -> bool:
    """Whether Iceberg reads files that were written as `before` if the column is now `after`."""
    if before == after or (before, after) in PROMOTIONS:
        return True
    old, new = DUCKLAKE_DECIMAL.fullmatch(before), DUCKLAKE_DECIMAL.fullmatch(after)
    return bool(old and new and old[2] == new[2] and int(old[1]) <= int(new[1]))


LIMITS = {"int": 2**31, "long": 2**63}

READ: dict[str, Callable[[str], Any]] = {
    "boolean": text_values.boolean,
    "float": text_values.double,
    "double": text_values.double,
    "string": str,
    "binary": bytes.fromhex,
    "date": text_values.days,
    "time": text_values.time,
    "timestamp": text_values.timestamp,
    "timestamptz": text_values.timestamptz,
}


def value(type_name: str, text: str) -> Any:
    """Read `text` as a value of an Iceberg type: days for date, microseconds for the other times.

    Raises:
        ValueError: the text is not a value of this type, or this is not certain.
    """
    if type_name in READ:
        return READ[type_name](text)
    if type_name in LIMITS:
        return in_range(type_name, int(text))
    if match := DECIMAL.fullmatch(type_name):
        return text_values.decimal(text, *map(int, match.groups()))
    raise ValueError(f"no text form of {type_name}")


def in_range(type_name: str, number: int) -> int:
    """Return the number if it fits the type.

    Raises:
        ValueError: it does not fit the Iceberg type `int` or `long`.
    """
    if not -LIMITS[type_name] <= number < LIMITS[type_name]:
        raise ValueError(f"{number} is no {type_name}")
    return number
