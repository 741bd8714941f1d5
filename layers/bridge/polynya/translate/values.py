"""DuckLake's texts of single values, read as values of Iceberg types: statistics, defaults.

Only certain values: years 1 to 9999, finite numbers. Everything else is a ValueError, and the
caller omits it (a bound) or refuses it (a default).
"""

from collections.abc import Callable
from typing import Any

from ..ducklake import text_values
from ..iceberg.single_value import DECIMAL

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
