"""DuckLake's text forms of single values: statistics, defaults.

Only what is read with certainty: years 1 to 9999, finite values. Everything else is a ValueError,
and who asked does without (a bound) or refuses (a default).
"""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.date().toordinal()

BOOLEANS = {"0": False, "1": True, "false": False, "true": True}


def value(type_name: str, text: str) -> Any:
    """Read `text` as a value of an Iceberg type: days for date, microseconds for the other times.

    Raises:
        ValueError: the text is not of this type, or not certain to be.
    """
    if type_name.startswith("decimal"):
        return _decimal(text)
    if type_name not in READ:
        raise ValueError(f"no text form of {type_name}")
    return READ[type_name](text)


def _boolean(text: str) -> bool:
    if text not in BOOLEANS:
        raise ValueError(f"not a boolean: {text!r}")
    return BOOLEANS[text]


def _float(text: str) -> float:
    number = float(text)
    if math.isnan(number):
        raise ValueError("NaN is not a bound")
    return number


def _decimal(text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"not a decimal: {text!r}") from None
    if not number.is_finite():
        raise ValueError(f"not a finite decimal: {text!r}")
    return number


def _days(text: str) -> int:
    return date.fromisoformat(text).toordinal() - EPOCH_DAY


def _time(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    # Not datetime.time: DuckDB has 24:00:00.
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
    "int": int,
    "long": int,
    "float": _float,
    "double": _float,
    "string": str,
    "binary": bytes.fromhex,
    "date": _days,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}
