"""Values as DuckLake's texts in statistics and partition values; and names of tables in options.

Values are those of `plain_array`: days for dates, units since 1970 for timestamps, bytes for UUIDs
and blobs, `str` for strings. Python's `datetime` is not used: its range is smaller.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from polynya.ducklake.writes.stats import truncated
from polynya.runtime.errors import BadRequest
from polynya.runtime.namespaces import Namespace, dotted, parsed
from polynya.types.numbers import DECIMAL

from .errors import BadInput


def plain_array(array: pa.Array) -> pa.Array:
    """The array in a type whose Python values are exact, and ordered as DuckLake orders them."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_date(array.type):
        return array.view(pa.int32())
    if pa.types.is_time64(array.type) or pa.types.is_timestamp(array.type):
        return array.view(pa.int64())
    return array


def _float(number: float) -> str:
    return str(number) if not math.isnan(number) else "nan"


def _float32(number: float) -> str:
    return str(np.float32(number)) if not math.isnan(number) else "nan"


def _date(days: int) -> str:
    if abs(days) == 2**31 - 1:
        return "infinity" if days > 0 else "-infinity"
    return "{} {}".format(*_ymd(days)).rstrip()


def _ymd(days: int) -> tuple[str, str]:
    """The date, and the suffix `(BC)` or an empty text."""
    text = str(np.datetime64(days, "D"))
    sign, text = text[0] == "-", text.lstrip("+-")
    year, month, day = text.split("-")
    number = -int(year) if sign else int(year)
    era = "" if number > 0 else "(BC)"
    return f"{number if number > 0 else 1 - number:04d}-{month}-{day}", era


def _time(micros: int) -> str:
    seconds, micros = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{text}.{micros:06d}".rstrip("0") if micros else text


def _timestamp(micros: int, zone: str = "") -> str:
    if abs(micros) == 2**63 - 1:
        return "infinity" if micros > 0 else "-infinity"
    days, micros = divmod(micros, 86_400_000_000)
    date, era = _ymd(days)
    return " ".join(filter(None, (date, era, _time(micros)))) + zone


def _nanoseconds(nanos: int) -> str:
    micros, remainder = divmod(nanos, 1000)
    if not remainder:
        return _timestamp(micros)
    whole = _timestamp(micros - micros % 1_000_000)
    return f"{whole}.{nanos % 1_000_000_000:09d}".rstrip("0")


def _uuid(data: bytes) -> str:
    digits = data.hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


TEXT_OF: dict[str, Callable[[Any], str]] = {
    "float32": _float32,
    "float64": _float,
    "varchar": str,
    "json": str,
    "blob": lambda data: data.hex().upper(),
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamp_s": _timestamp,
    "timestamp_ms": lambda millis: _timestamp(millis * 1000),
    "timestamp_ns": _nanoseconds,
    "timestamptz": lambda micros: _timestamp(micros, "+00"),
    "uuid": _uuid,
}


def statistics_text(column_type: str, value: Any) -> str:
    """A value as DuckLake writes it in statistics."""
    if column_type == "boolean":
        return str(int(value))
    return partition_text(column_type, value)


def partition_text(column_type: str, value: Any) -> str:
    """A value as DuckLake writes it in partition values."""
    if column_type == "boolean":
        return "true" if value else "false"
    if DECIMAL.fullmatch(column_type):
        return f"{value:f}"
    return TEXT_OF.get(column_type, str)(value)


def bounds(column_type: str, low: Any, high: Any) -> tuple[str | None, str | None]:
    """Texts of the smallest and the largest value; long ones are truncated and remain bounds.

    Returns:
        None for a bound that cannot be written.
    """
    return truncated(
        column_type, statistics_text(column_type, low), statistics_text(column_type, high)
    )


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table, with all levels of its namespace."""

    schema_name: str
    table_name: str
    parents: Namespace = ()
    """The names of the schemas that the schema is in, outermost first."""

    @property
    def namespace(self) -> Namespace:
        """All levels of the schema's name."""
        return (*self.parents, self.schema_name)

    def __str__(self) -> str:
        return dotted(*self.namespace, self.table_name)


def table_name(text: str) -> TableName:
    """Parse `t`, `s.t`, `a.b.t`; with quotes around names that have a dot: `"my.schema"."t"`.

    Raises:
        BadInput: the text is not a table name.
    """
    *levels, name = _levels(text)
    *parents, schema_name = levels or ["main"]
    return TableName(schema_name, name, tuple(parents))


def _levels(text: str) -> Namespace:
    try:
        names = parsed(text)
    except BadRequest:
        names = ()
    if not names or not all(names) or "\0" in text:
        raise BadInput(
            f'{text or "an empty text"} is not a table name: write schema.table, and "a.b"."c" if '
            "a name contains a dot or a quote"
        )
    return names
