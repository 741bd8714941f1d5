"""The addresses of pages, and how the page writes numbers, sizes and times.

A name of the lake is one segment of a path, as is a namespace. A browser and HTTP itself treat some
characters of a path as their own, percent-encoded or not: a slash, and segments of dots. They are
written as `~` and two hexadecimal digits, as in Datasette.

`Addresses` says where clients find the lake that the page shows.
"""

import json
import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup
from polynya.access.caller import TOKEN, Caller
from polynya.runtime.context import assigned
from polynya.runtime.namespaces import dotted, parsed
from polynya_pipeline.common.errors import counted

from ..lakes.lake_files import BUCKET

UNSAFE = re.compile(r"[~/\\\x00-\x1f\x7f]|^\.{1,2}$|^$")
ENCODED = re.compile(r"~([0-9A-F]{2})")
DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}|\d{4}-?W\d{2}-?\d?")
BETWEEN = "~."
"""Separates the levels of a namespace in a segment; no segment of a name has it."""
EMPTY = "~00~"
"""The segment of the empty name; no other name has this segment."""
LONGEST_LINE = 24
"""The longest name in which no line may break."""

LOGIN_PATH, LOGOUT_PATH = "/login", "/logout"
"""Where people sign in and out, if the server knows callers."""

LAKES_PATH = "lakes"
"""The first segment of the paths of pages, if there are several lakes; their names follow."""

_base: ContextVar[str] = ContextVar("base", default="")


def prefix_links(base: str) -> AbstractContextManager[None]:
    """Begin the paths of all links that the block makes with this text."""
    return assigned(_base, base)


NAMES = (TOKEN, "preferred_username", "email", "name", "sub")
"""The claims with the name of a person, best first."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at a page."""

    name: str = ""
    """Empty: the server does not know callers."""
    sees_all: bool = True
    """Whether they may read everything in the lake."""

    @classmethod
    def from_caller(cls, caller: Caller, sees_all: bool = True) -> "Visitor":
        """The visitor for a caller, under the name that people know."""
        names = (caller.claims.get(claim) for claim in NAMES)
        return cls(str(next(filter(None, names), caller.identity)), sees_all)


ANYBODY = Visitor()
_visitor: ContextVar[Visitor] = ContextVar("visitor", default=ANYBODY)


def shown_to(visitor: Visitor) -> AbstractContextManager[None]:
    """Make the pages of the block for a visitor."""
    return assigned(_visitor, visitor)


def visitor() -> Visitor:
    """Who looks at the page."""
    return _visitor.get()


def home(path: str = "/") -> str:
    """The path of a page of the lake, for a link."""
    return _base.get() + path


def segment(name: str) -> str:
    """A name as a segment of a path in a link."""
    return quote(_tilded(name), safe="")


def name_of(segment: str) -> str:
    """The name that a percent-decoded segment stands for."""
    return "" if segment == EMPTY else ENCODED.sub(lambda m: chr(int(m[1], 16)), segment)


def _tilded(name: str) -> str:
    if not name:
        return EMPTY
    return UNSAFE.sub(lambda m: "".join(f"~{ord(character):02X}" for character in m[0]), name)


def namespace_of(segment: str) -> str:
    """The namespace that a segment stands for, as people write it."""
    return dotted(*map(name_of, segment.split(BETWEEN)))


def table_path(namespace: str, table: str, kind: str = "table") -> str:
    """The path of a table, or of a view.

    Args:
        namespace: all of its levels, as people write them.
    """
    levels = BETWEEN.join(map(segment, parsed(namespace)))
    return home(f"/{kind}s/{levels}/{segment(table)}")


def time_of(text: str, *, ends_day: bool = True) -> datetime | None:
    """The time that a person writes, in UTC unless it has an offset; None: it is not a time.

    Args:
        ends_day: a day means its end, so that the state of a day has all of its changes.
    """
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    if ends_day and DAY.fullmatch(text.strip()):
        time += timedelta(days=1, microseconds=-1)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def link(path: str, **query: object) -> str:
    """A path with the parts of its query that are not None."""
    text = urlencode({key: value for key, value in query.items() if value not in (None, "")})
    return f"{path}?{text}" if text else path


def with_query(path: str, query: Mapping[str, str], **changed: object) -> str:
    """The same page with another query: parts that are None are left out."""
    return link(path, **{**query, **changed})


UNITS = ("kB", "MB", "GB", "TB")


def number(value: int | None) -> str:
    """`12,345`; a dash for what is not known."""
    return "–" if value is None else f"{value:,}"


def size(value: int | None) -> str:
    """`12.3 MB`."""
    if value is None:
        return "–"
    if value < 1000:
        return f"{value} B"
    amount = float(value)
    for unit in UNITS:
        amount /= 1000
        # 999.96 would be rounded to 1000.0.
        if amount < 999.95 or unit == UNITS[-1]:
            return f"{amount:.1f} {unit}"
    return ""


def time_text(value: datetime | None) -> str:
    """`2026-11-22 14:03:05 UTC`; a dash for what has expired."""
    return "–" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def weekday(value: datetime) -> str:
    """`Fri`."""
    return f"{value.astimezone(UTC):%a}"


def iso(value: datetime) -> str:
    """The attribute `datetime` of an element `time`."""
    return value.astimezone(UTC).isoformat(timespec="seconds")


AGES = ((86400 * 60, 86400 * 30, "month"), (86400 * 2, 86400, "day"), (7200, 3600, "hour"))


def ago(value: datetime | None) -> str:
    """`3 days ago`."""
    if value is None:
        return ""
    seconds = (datetime.now(UTC) - value.astimezone(UTC)).total_seconds()
    for least, unit, noun in (*AGES, (120, 60, "minute")):
        if seconds >= least:
            return f"{counted(int(seconds // unit), noun)} ago"
    return "just now" if seconds > -60 else ""


def tojson_text(value: Any) -> str:
    """A document to read; the template escapes it like any text."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def breakable(name: str) -> Markup:
    """A name in which a line may break after an underscore, a dot or a hyphen, if it is long."""
    parts = re.findall(r"[^_.-]+[_.-]*|[_.-]+", name) if len(name) > LONGEST_LINE else [name]
    return Markup("<wbr>").join(parts)


FILTERS: dict[str, Any] = {
    "number": number,
    "size": size,
    "counted": counted,
    "time_text": time_text,
    "iso": iso,
    "weekday": weekday,
    "ago": ago,
    "tojson_text": tojson_text,
    "dotted": dotted,
    "breakable": breakable,
}


@dataclass(frozen=True, slots=True)
class Addresses:
    """What clients are given: the line of JSON that `polynya serve` prints."""

    catalog_uri: str
    s3_endpoint: str
    warehouse: str
    delivery: str
    writes: bool
    folder: str = ""
    """The local folder with the data, which is served as a bucket; empty: the data is in S3."""
    lake: str = ""
    """What people call the lake: the name of its file, or of its database."""
    has_tokens: bool = False
    """Whether clients need a token."""

    def folder_of(self, location: str) -> str:
        """The path in the local folder for a location in S3; empty: there is none."""
        bucket = f"s3://{BUCKET}/"
        if not self.folder or not location.startswith(bucket):
            return ""
        return f"{self.folder.rstrip('/')}/{location.removeprefix(bucket)}"
