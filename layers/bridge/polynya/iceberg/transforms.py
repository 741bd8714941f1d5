"""Partition transforms of single values (specification, "Partition Transforms").

https://iceberg.apache.org/spec/#partition-transforms
Values are as in `translate.values`: days for date, microseconds for time and timestamp.
"""

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

BUCKET = re.compile(r"bucket\[(\d+)\]")

EPOCH = date(1970, 1, 1)
HOUR, DAY = 3_600_000_000, 86_400_000_000  # microseconds
HASHED_AS_LONG = {"int", "long", "date", "time", "timestamp"}


def transformed(transform: str, type_name: str, value: Any) -> Any:
    """The partition value of a value of an Iceberg primitive type; None for None.

    Raises:
        ValueError: the transform does not take this type, or is unknown.
    """
    if value is None or transform == "identity":
        return value
    if match := BUCKET.fullmatch(transform):
        return _hash(type_name, value) % int(match[1])
    if (transform, type_name) not in CALENDAR:
        raise ValueError(f"no transform {transform} of {type_name}")
    return CALENDAR[transform, type_name](value)


def _hash(type_name: str, value: Any) -> int:
    """Murmur3, 32 bits, without the sign (specification, Appendix B)."""
    import mmh3  # only tables with buckets need it

    if type_name in HASHED_AS_LONG:
        data = int(value).to_bytes(8, "little", signed=True)
    elif type_name == "string":
        data = value.encode()
    elif type_name == "binary":
        data = value
    else:
        raise ValueError(f"no bucket of {type_name}")
    return int(mmh3.hash(data, signed=False)) & 0x7FFFFFFF


def _year(days: int) -> int:
    return (EPOCH + timedelta(days)).year - 1970


def _month(days: int) -> int:
    day = EPOCH + timedelta(days)
    return (day.year - 1970) * 12 + day.month - 1


OF_DATES: dict[str, Callable[[int], int]] = {"year": _year, "month": _month, "day": int}
OF_TIMES: dict[str, Callable[[int], int]] = {
    "year": lambda micros: _year(micros // DAY),
    "month": lambda micros: _month(micros // DAY),
    "day": lambda micros: micros // DAY,
    "hour": lambda micros: micros // HOUR,
}
CALENDAR: dict[tuple[str, str], Callable[[int], int]] = {
    **{(name, "date"): of for name, of in OF_DATES.items()},
    **{(name, "timestamp"): of for name, of in OF_TIMES.items()},
    **{(name, "timestamptz"): of for name, of in OF_TIMES.items()},
}
"""Functions that count from 1970 (in UTC), by transform and type."""
