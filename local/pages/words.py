"""Numbers, sizes and times as a person reads them; the templates' filters."""

import json
from datetime import UTC, datetime
from typing import Any

from polynya.namespaces import dotted

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
        if amount < 999.95 or unit == UNITS[-1]:
            return f"{amount:.1f} {unit}"
    return ""


def counted(value: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{value:,} {noun}" + ("" if value == 1 else "s")


def time_text(value: datetime | None) -> str:
    """`2026-11-22 14:03:05 UTC`; a dash for what has expired."""
    return "–" if value is None else value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


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


FILTERS: dict[str, Any] = {
    "number": number,
    "size": size,
    "counted": counted,
    "time_text": time_text,
    "iso": iso,
    "ago": ago,
    "tojson_text": tojson_text,
    "dotted": dotted,
}
