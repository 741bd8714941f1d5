"""DuckLake's `initial_default` as Iceberg's `initial-default`.

It applies to files that were written before the column was added. Never `default_value`, which is
for new rows, and is the text 'NULL' if there is none.
JSON single-value form: https://iceberg.apache.org/spec/#json-single-value-serialization
"""

import math
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

from ...ducklake.text_values import EPOCH
from ..values import value


def default_json(type_name: str, text: str) -> Any:
    """The default of a column of an Iceberg primitive type in JSON.

    Raises:
        ValueError: the value of the default is not certain.
    """
    if type_name == "binary":
        # The text is in DuckDB's escape form, not in hexadecimal like a statistic.
        raise ValueError("defaults of binary columns are not served")
    if type_name == "uuid":
        return str(UUID(text))
    return JSON.get(type_name, str)(value(type_name, text))


def _number(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("JSON has no infinity")
    return number


def _timestamp(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(timespec=MICROS)


def _timestamptz(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).isoformat(timespec=MICROS)


def _time(micros: int) -> str:
    if micros >= 86_400_000_000:
        raise ValueError("Iceberg has no 24:00:00")
    return (EPOCH + timedelta(microseconds=micros)).time().isoformat(timespec=MICROS)


def _date(days: int) -> str:
    return (EPOCH + timedelta(days=days)).date().isoformat()


MICROS = "microseconds"

JSON: dict[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": _number,
    "double": _number,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}
"""Decimals and strings are JSON strings."""
