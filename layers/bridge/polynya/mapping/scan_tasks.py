"""Literals of filters as texts that compare with the texts of DuckLake's statistics.

Clients write dates and times as text or as numbers since 1970. A literal that is not certain is
None, and keeps every file.
"""

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from ...ducklake import text_values
from ...ducklake.text_values import EPOCH, EPOCH_DAY

Literal = bool | int | float | str

MOST_DIGITS = 100
MICROS_PER_DAY = 86_400_000_000
MICROSECONDS = re.compile(r".*:[0-9]{2}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9:]{5})?")
"""A time of day without nanoseconds, which Python would cut off."""


def literal_text(form: str, literal: Literal) -> str | None:
    """A literal in a form of `ducklake.rows.conditions`; None if it is not certain."""
    try:
        return TEXTS[form](literal)
    except (ValueError, TypeError, OverflowError, struct.error):
        return None


def _boolean(literal: Literal) -> str:
    if not isinstance(literal, bool):
        raise TypeError(literal)
    return str(int(literal))


def _integer(literal: Literal) -> str:
    text = str(_number(literal))
    if len(text) > MOST_DIGITS:
        raise ValueError(text)
    return text


def _decimal(literal: Literal) -> str:
    if not isinstance(literal, str):
        return _integer(literal)
    if not text_values.NUMBER.fullmatch(literal):
        raise ValueError(literal)
    return literal


def _double(literal: Literal) -> str:
    if isinstance(literal, bool | str) or not math.isfinite(number := float(literal)):
        raise TypeError(literal)
    return repr(number)


def _float(literal: Literal) -> str:
    [nearest] = struct.unpack("<f", struct.pack("<f", float(_double(literal))))
    return repr(nearest)


def _string(literal: Literal) -> str:
    if not isinstance(literal, str) or "\0" in literal:  # no text of PostgreSQL holds it
        raise TypeError(literal)
    literal.encode()
    return literal


def _binary(literal: Literal) -> str:
    if not isinstance(literal, str):
        raise TypeError(literal)
    return bytes.fromhex(literal).hex().upper()


def _date(literal: Literal) -> str:
    if isinstance(literal, str):
        return date.fromordinal(text_values.days(literal) + EPOCH_DAY).isoformat()
    return date.fromordinal(_number(literal) + EPOCH_DAY).isoformat()


def _time(literal: Literal) -> str:
    micros = text_values.time(literal) if isinstance(literal, str) else _number(literal)
    if not 0 <= micros < MICROS_PER_DAY:
        raise ValueError(micros)
    return _trimmed((EPOCH + timedelta(microseconds=micros)).time().isoformat())


def _timestamp(literal: Literal) -> str:
    return _moment(literal, text_values.timestamp)


def _timestamptz(literal: Literal) -> str:
    return _moment(literal, text_values.timestamptz)


def _moment(literal: Literal, parse: Callable[[str], int]) -> str:
    """Years before 1000 too: `isoformat` writes four digits, as DuckDB does."""
    if isinstance(literal, str) and not MICROSECONDS.fullmatch(literal):
        raise ValueError(literal)
    micros = parse(literal) if isinstance(literal, str) else _number(literal)
    moment: datetime = EPOCH + timedelta(microseconds=micros)
    return _trimmed(moment.astimezone(UTC).replace(tzinfo=None).isoformat(" "))


def _number(literal: Literal) -> int:
    if isinstance(literal, bool) or not isinstance(literal, int):
        raise TypeError(literal)
    return literal


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


TEXTS: dict[str, Callable[[Literal], str]] = {
    "boolean": _boolean,
    "integer": _integer,
    "decimal": _decimal,
    "float": _float,
    "double": _double,
    "string": _string,
    "binary": _binary,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}
