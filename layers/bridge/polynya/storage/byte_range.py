"""The Range header of a request for an object of known size (RFC 9110, section 14)."""

import re

from ..errors import InvalidRange

RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first and the last byte that are asked for; None for the whole object.

    A header that is no single byte range is ignored, as S3 and the RFC have it.

    Raises:
        InvalidRange: the range holds no byte of the object.
    """
    match = RANGE.fullmatch((header or "").strip())
    if match is None or not (match[1] or match[2]):
        return None
    start, end = _number(match[1]), _number(match[2])
    if start is None:
        first, last = max(0, size - (end or 0)), size - 1
    else:
        first, last = start, size - 1 if end is None else min(end, size - 1)
        if end is not None and end < start:
            return None  # "invalid if the last-pos value is less than the first-pos value"
    if first > last or not size:
        raise InvalidRange("the requested range is not satisfiable")
    return first, last


def _number(digits: str) -> int | None:
    """Numbers beyond every object are one: Python refuses to read thousands of digits."""
    return int(digits.lstrip("0")[:18] or "0") if digits else None
