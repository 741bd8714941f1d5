"""The Range header of a request for an object of known size (RFC 9110, section 14)."""

import re

from .errors import InvalidRange

RANGE = re.compile(r"bytes=(\d*)-(\d*)")


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first and the last byte that are asked for; None for the whole object.

    A header that is no single byte range is ignored, as S3 and the RFC have it.

    Raises:
        InvalidRange: the range holds no byte of the object.
    """
    match = RANGE.fullmatch((header or "").strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        first, last = max(0, size - int(match[2])), size - 1
    else:
        first, last = int(match[1]), min(int(match[2] or size - 1), size - 1)
        if match[2] and int(match[2]) < first:
            return None  # "invalid if the last-pos value is less than the first-pos value"
    if first > last or not size:
        raise InvalidRange("the requested range is not satisfiable")
    return first, last
