"""DuckLake's text forms of single values, parsed: in statistics, partition values and defaults.

Only certain values: years 1 to 9999, no NaN. Everything else is a ValueError.
"""

import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DAY = EPOCH.date().toordinal()

BOOLEANS = {"0": False, "1": True, "false": False, "true": True}

# Not everything that Decimal reads: 1e999999999 would be an integer of a billion digits.
NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?|[+-]?\.[0-9]{1,40}")
TIME = re.compile(r"([0-9]{1,2}):([0-9]{2}):([0-9]{2}(?:\.[0-9]{1,9})?)")


def boolean(text: str) -> bool:
    """Parse a boolean, as statistics or as partition values spell it.

    Raises:
        ValueError: the text is not a boolean.
    """
    if text not in BOOLEANS:
        raise ValueError(f"not a boolean: {text!r}")
    return BOOLEANS[text]


def double(text: str) -> float:
    """Parse a number, infinities included.

    Raises:
        ValueError: the text is not a number.
    """
    number = float(text)
    if math.isnan(number):
        raise ValueError("NaN is not a bound")
    return number


def decimal(text: str, precision: int, scale: int) -> Decimal:
    """Parse a decimal.

    Raises:
        ValueError: the text is not a decimal, or has too many digits before the point.
    """
    # Not abs, which rounds to 28 digits.
    if not NUMBER.fullmatch(text) or Decimal(text).copy_abs() >= 10 ** (precision - scale):
        raise ValueError(f"not a decimal({precision}, {scale}): {text!r}")
    return Decimal(text)


def days(text: str) -> int:
    """Parse a date: days since 1970.

    Raises:
        ValueError: the text is not a date of the years 1 to 9999.
    """
    return date.fromisoformat(text).toordinal() - EPOCH_DAY


def time(text: str) -> int:
    """Parse a time of day: microseconds since midnight.

    Raises:
        ValueError: the text is not a time.
    """
    # Not datetime.time: DuckDB has 24:00:00.
    match = TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"not a time: {text!r}")
    hours, minutes, seconds = match.groups()
    micros = int(Decimal(seconds) * 1_000_000)
    return (int(hours) * 60 + int(minutes)) * 60_000_000 + micros


def timestamp(text: str) -> int:
    """Parse a timestamp without a time zone: microseconds since 1970.

    Raises:
        ValueError: the text is not a timestamp of the years 1 to 9999, or has a time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError(f"a time zone in a timestamp: {text!r}")
    return _since_epoch(moment.replace(tzinfo=UTC))


def timestamptz(text: str) -> int:
    """Parse a timestamp with a time zone: microseconds since 1970.

    Raises:
        ValueError: the text is not a timestamp of the years 1 to 9999, or has no time zone.
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"no time zone in a timestamptz: {text!r}")
    return _since_epoch(moment)


def _since_epoch(moment: datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
