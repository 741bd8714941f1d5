"""What requests ask for: byte ranges and conditions (RFC 9110), and which body is a commit."""

import json
import re

from ..runtime.errors import InvalidRange

RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")

ENTITY_TAG = re.compile(r'(?:W/)?(?:"([^"]*)"|([^\s,"]+))')
"""An entity tag; S3's clients may leave out the quotes."""


def matches_etag(header: str, etag: str) -> bool:
    """Whether If-Match or If-None-Match names an entity tag: in a list, or all of them by `*`.

    The comparison is the weak one (RFC 9110, section 8.8.3.2): `W/` makes no difference, because a
    name never changes its bytes.

    Args:
        header: the field's value.
        etag: the entity tag of what would be sent, with its quotes.
    """
    if header.strip() == "*":
        return True
    tags = (quoted or bare for quoted, bare in ENTITY_TAG.findall(header))
    return etag.strip('"') in tags


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first and the last byte of a requested range; None for the whole object.

    A header that is no single byte range is ignored, as in S3 and RFC 9110, section 14.2.

    Args:
        header: the value of Range; None if there is none.
        size: of the object, in bytes.

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
    """A number, cut to 18 digits: Python refuses to parse thousands of them."""
    return int(digits.lstrip("0")[:18] or "0") if digits else None


def is_commit(body: bytes) -> bool:
    """Whether a body is one of updateTable, and not of reportMetrics.

    API Gateway decodes the path: that of a commit to the table `a/metrics` is the path of a report
    about the table `a`.
    """
    try:
        document = json.loads(body or b"null")
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"requirements", "updates"} <= document.keys()
