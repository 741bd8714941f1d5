"""The addresses of pages. A name of the lake is one segment of a path, as is a namespace.

A browser and HTTP itself treat some characters of a path as their own, percent-encoded or not: a
slash, and segments of dots. They are written as `~` and two hexadecimal digits, as in Datasette.
"""

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from polynya.namespaces import dotted, parsed

UNSAFE = re.compile(r"[~/\\\x00-\x1f\x7f]|^\.{1,2}$|^$")
ENCODED = re.compile(r"~([0-9A-F]{2})")
BETWEEN = "~."
"""Between the levels of a namespace; no name becomes this, or has it in its segment."""
EMPTY = "~00~"
"""A name without characters; no other name becomes this."""


def segment(name: str) -> str:
    """A name as a segment of a path, as it is in a link."""
    return quote(_tilded(name), safe="")


def name_of(segment: str) -> str:
    """The name that a segment is, after percent-decoding."""
    return "" if segment == EMPTY else ENCODED.sub(lambda m: chr(int(m[1], 16)), segment)


def _tilded(name: str) -> str:
    if not name:
        return EMPTY
    return UNSAFE.sub(lambda m: "".join(f"~{ord(character):02X}" for character in m[0]), name)


def namespace_of(segment: str) -> str:
    """The namespace that a segment is, as people write it."""
    return dotted(*map(name_of, segment.split(BETWEEN)))


def table_path(namespace: str, table: str, kind: str = "table") -> str:
    """The path of a table, or of a view.

    Args:
        namespace: all of its levels, as people write them.
    """
    levels = BETWEEN.join(map(segment, parsed(namespace)))
    return f"/{kind}s/{levels}/{segment(table)}"


def link(path: str, **query: object) -> str:
    """A path with the parts of its query that are given."""
    text = urlencode({key: value for key, value in query.items() if value not in (None, "")})
    return f"{path}?{text}" if text else path


def with_query(path: str, query: Mapping[str, str], **changed: object) -> str:
    """The same page with another query: parts that are None are left out."""
    return link(path, **{**query, **changed})
