"""DuckLake's text forms of single values: statistics, defaults.

Only certain values: years 1 to 9999, finite numbers. Everything else is a ValueError, and the
caller omits it (a bound) or refuses it (a default).
"""

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from ..iceberg.single_value import DECIMAL

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.date().toordinal()

LIMITS = {"int": 2**31, "long": 2**63}

BOOLEANS = {"0": False, "1": True, "false": False, "true": True}


def value(type_name: str, text: str) -> Any:
    """Read `text` as a value of an Iceberg type: days for date, microseconds for the other times.

    Raises:
        ValueError: the text is not a value of this type, or this is not certain.
    """
    if match := DECIMAL.fullmatch(type_name):
        return _decimal(text, *map(int, match.groups()))
    if type_name in LIMITS:
        return in_range(type_name, int(text))
    if type_name not in READ:
        raise ValueError(f"no text form of {type_name}")
    return READ[type_name](text)


def in_range(type_name: str, number: int) -> int:
    """Return the number if it fits the type.

    Raises:
        ValueError: it does not fit the Iceberg type `int` or `long`.
    """
    if not -LIMITS[type_name] <= number < LIMITS[type_name]:
        raise ValueError(f"{number} is no {type_name}")
    return number


def _boolean(text: str) -> bool:
    if text not in BOOLEANS:
        raise ValueError(f"not a boolean: {text!r}")
    return BOOLEANS[text]


def _float(text: str) -> float:
    number = float(text)
    if math.isnan(number):
        raise ValueError("NaN is not a bound")
    return number


# Not everything that Decimal reads: 1e999999999 would be an integer of a billion digits.
NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?|[+-]?\.[0-9]{1,40}")
TIME = re.compile(r"([0-9]{1,2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]{1,9})?)")


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    # Not abs, which rounds to 28 digits.
    if not NUMBER.fullmatch(text) or Decimal(text).copy_abs() >= 10 ** (precision - scale):
        raise ValueError(f"not a decimal({precision}, {scale}): {text!r}")
    return Decimal(text)


def _days(text: str) -> int:
    return date.fromisoformat(text).toordinal() - EPOCH_DAY


def _time(text: str) -> int:
    # Not datetime.time: DuckDB has 24:00:00.
    match = TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time: {text!r}")
    hours, minutes, seconds = match.groups()
    micros = int(Decimal(seconds) * 1_000_000)
    return (int(hours) * 60 + int(minutes)) * 60_000_000 + micros


def _timestamp(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(f"a time zone in a timestamp: {text!r}")
    return _since_epoch(moment.replace(tzinfo=UTC))


def _timestamptz(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in a timestamptz: {text!r}")
    return _since_epoch(moment)


def _since_epoch(moment: datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


READ: dict[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "float": _float,
    "double": _float,
    "string": str,
    "binary": bytes.fromhex,
    "date": _days,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}
