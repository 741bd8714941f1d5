"""The texts of statistics in DuckDB's order of the values that they stand for."""

import math
import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from . import text_values
from .column_tree import DECIMAL

INFINITIES = {"infinity": math.inf, "-infinity": -math.inf}
"""Those of dates and timestamps."""


class _NaN(float):
    """NaN as DuckDB orders it: above every number, infinity included."""

    def __lt__(self, other: float) -> bool:
        return False

    def __gt__(self, other: float) -> bool:
        return not isinstance(other, _NaN)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NaN)

    __hash__ = float.__hash__


NAN = _NaN("nan")


def comparable(column_type: str, text: str) -> Any:
    """Parse a text of statistics into a value that Python orders as DuckDB orders the column.

    Args:
        column_type: DuckLake's.

    Raises:
        ValueError: the text is not a value of this type, or the type has no known order.
    """
    return parser(column_type)(text)


@lru_cache(maxsize=256)
def parser(column_type: str) -> Callable[[str], Any]:
    """The function that parses texts of one type; it raises ValueError as `comparable` does.

    Raises:
        ValueError: the type has no known order.
    """
    if match := DECIMAL.fullmatch(column_type):
        width, scale = map(int, match.groups())
        return lambda text: text_values.decimal(text, width, scale)
    if column_type not in PARSERS:
        raise ValueError(f"{column_type} has no known order")
    parse = PARSERS[column_type]
    if column_type.startswith(("date", "timestamp")):
        return lambda text: INFINITIES[text] if text in INFINITIES else parse(text)
    return parse


def _integer(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number} has more than 64 bits")
    return number


def _float64(text: str) -> float:
    return NAN if text in {"nan", "-nan"} else text_values.double(text)


def _float32(text: str) -> float:
    """The nearest number of 32 bits: Parquet's 0.10000000149 is written 0.1."""
    number = _float64(text)
    if number is NAN:
        return number
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return nearest


PARSERS: dict[str, Callable[[str], Any]] = {
    **{f"{sign}int{bits}": _integer for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "boolean": text_values.boolean,
    "float32": _float32,
    "float64": _float64,
    "varchar": str.encode,
    "json": str.encode,
    "blob": bytes.fromhex,
    "uuid": lambda text: bytes.fromhex(text.replace("-", "")),
    "date": text_values.days,
    "time": text_values.time,
    "timestamp": text_values.timestamp,
    "timestamp_s": text_values.timestamp,
    "timestamp_ms": text_values.timestamp,
    "timestamptz": text_values.timestamptz,
}
