"""DuckLake's text forms of single values, and its columns as a tree.

The parsers read the texts of statistics, partition values and defaults, but only certain values:
years 1 to 9999, no NaN. Everything else is a ValueError. `comparable` parses a text of statistics
into a value that has DuckDB's order.

`ColumnNode` is a column with its nested columns; ids are numbered depth first, as DuckLake does.
"""

import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

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


LIST, MAP, STRUCT = "list", "map", "struct"
DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
"""The column type of decimals, with precision and scale; Spark spells it in the same way."""
FLOATS = {"float32", "float64"}


@dataclass(frozen=True, slots=True)
class ColumnNode:
    """A row of ducklake_column with its nested columns.

    `rows.objects.Column` is one version of it, with the snapshots at which it is visible.
    """

    column_id: int
    """Also the Parquet field id."""
    column_name: str
    column_type: str
    nulls_allowed: bool = True
    default_value: str | None = None
    """None: no default, for which DuckLake writes the text NULL."""
    children: tuple["ColumnNode", ...] = ()
    comment: str | None = None

    @property
    def leaves(self) -> Iterator["ColumnNode"]:
        """The columns that Parquet stores, in Parquet's order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves


def column_tree(rows: Iterable[tuple[ColumnNode, int | None]]) -> tuple[ColumnNode, ...]:
    """Build the tree from columns and the ids of their parents, as `ducklake_column` has them."""
    children: dict[int | None, list[ColumnNode]] = {}
    for column, parent in rows:
        children.setdefault(parent, []).append(column)

    def below(parent: int | None) -> tuple[ColumnNode, ...]:
        return tuple(
            replace(column, children=below(column.column_id)) for column in children.get(parent, ())
        )

    return below(None)


class NewColumn(NamedTuple):
    """A column that a table does not have yet, with its nested columns."""

    column: ColumnNode
    parent_column: int | None
    """The id of the existing struct that it becomes a field of; None: a top-level column."""
    path: str
    """Dotted, from the top level."""


def new_columns(
    columns: Iterable[ColumnNode], last_column_id: int, parent: int | None = None, above: str = ""
) -> Iterator[NewColumn]:
    """The columns with ids greater than `last_column_id`, at any level of the tree."""
    for column in columns:
        path = above + column.column_name
        if column.column_id > last_column_id:
            yield NewColumn(column, parent, path)
        else:
            yield from new_columns(column.children, last_column_id, column.column_id, f"{path}.")


def leaves(columns: Iterable[ColumnNode]) -> list[ColumnNode]:
    """The columns that Parquet stores, in Parquet's order."""
    return [leaf for column in columns for leaf in column.leaves]


INFINITIES = {"infinity": math.inf, "-infinity": -math.inf}
"""The infinite dates and timestamps."""


class _NaN(float):
    """NaN as DuckDB orders it: above every number, infinity included."""

    def __lt__(self, other: float) -> bool:
        return False

    def __gt__(self, other: float) -> bool:
        return not isinstance(other, _NaN)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NaN)

    __hash__ = float.__hash__


NAN = _NaN("nan")


def comparable(column_type: str, text: str) -> Any:
    """Parse a text of statistics into a value that Python orders as DuckDB orders the column.

    Args:
        column_type: DuckLake's.

    Raises:
        ValueError: the text is not a value of this type, or the type has no known order.
    """
    return parser(column_type)(text)


@lru_cache(maxsize=256)
def parser(column_type: str) -> Callable[[str], Any]:
    """The function that parses texts of one type; it raises ValueError as `comparable` does.

    Raises:
        ValueError: the type has no known order.
    """
    if match := DECIMAL.fullmatch(column_type):
        width, scale = map(int, match.groups())
        return lambda text: decimal(text, width, scale)
    if column_type not in PARSERS:
        raise ValueError(f"{column_type} has no known order")
    parse = PARSERS[column_type]
    if column_type.startswith(("date", "timestamp")):
        return lambda text: INFINITIES[text] if text in INFINITIES else parse(text)
    return parse


def _integer(text: str) -> int:
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number} has more than 64 bits")
    return number


def _float64(text: str) -> float:
    return NAN if text in {"nan", "-nan"} else double(text)


def _float32(text: str) -> float:
    """The nearest number of 32 bits: Parquet's 0.10000000149 is written 0.1."""
    number = _float64(text)
    if number is NAN:
        return number
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return nearest


PARSERS: dict[str, Callable[[str], Any]] = {
    **{f"{sign}int{bits}": _integer for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "boolean": boolean,
    "float32": _float32,
    "float64": _float64,
    "varchar": str.encode,
    "json": str.encode,
    "blob": bytes.fromhex,
    "uuid": lambda text: bytes.fromhex(text.replace("-", "")),
    "date": days,
    "time": time,
    "timestamp": timestamp,
    "timestamp_s": timestamp,
    "timestamp_ms": timestamp,
    "timestamptz": timestamptz,
}
