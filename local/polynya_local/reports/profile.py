"""The profile of a table's columns: what DuckLake's statistics say, and what all rows say.

Statistics cost nothing, but may be wider than the rows, because DuckLake never narrows them. On
request all rows are read in two scans: the first finds the bounds between which the second counts.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from duckdb.sqltypes import DuckDBPyType

from ..clients.duckdb import identifier
from .opened_table import TableHead
from .preview import ColumnChoice, Limits, Question
from .preview_sql import NESTED, Side

BINS = 24
MOST_VALUES = 12
"""The values of a column are listed with their rows if there are at most this many."""
MOST_COUNTED = 10_000
"""The second scan counts the distinct values if the first one estimates at most this many."""
LONGEST_TEXT = 60
PLAIN = ("BOOLEAN", "VARCHAR", "UUID", "ENUM")
"""Types whose values have an order, but no distance."""
UNORDERED = ("BLOB", "BIT", "JSON", "VARIANT", "GEOMETRY")


@dataclass(frozen=True, slots=True)
class ProfileQuestion:
    """A question, all of whose rows are read."""

    question: Question


@dataclass(frozen=True, slots=True)
class ValueCount:
    """A value of a column as text, and how many rows have it."""

    value: str
    rows: int


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What all rows say of a column."""

    name: str
    type: str
    """DuckDB's, as its Iceberg extension has it."""
    nulls: int
    distinct: int
    """How many different values there are."""
    is_estimated: bool
    """`distinct` is an estimate by a HyperLogLog, because there are too many values to count."""
    least: str | None
    greatest: str | None
    bins: tuple[int, ...] = ()
    """The numbers of rows in intervals of equal width from the least to the greatest value, without
    infinite ones and NaN. Empty: the values have no distance, or are all the same."""
    values: tuple[ValueCount, ...] = ()
    """All values with their rows, the most frequent ones first, if they are few and have an order
    but no distance."""


@dataclass(frozen=True, slots=True)
class ProfileAnswer:
    """The parts that arrived in time."""

    rows: int | None = None
    columns: tuple[ColumnProfile, ...] | None = None
    notes: dict[str, str] = field(default_factory=dict)
    """Why a part is missing, by its name."""


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """The columns of a table at a snapshot."""

    head: TableHead
    choices: tuple[ColumnChoice, ...]
    """With the bounds in DuckLake's statistics."""
    limits: Limits
    answer: ProfileAnswer | None = None
    """None: it was not requested, or is not there yet."""


RunQuery = Callable[[str, list[Any]], list[tuple[Any, ...]]]


def profile(table: Side, names: Sequence[str], run: RunQuery) -> tuple[int, list[ColumnProfile]]:
    """The number of rows of a table, and the profiles of these columns."""
    types = [table.columns[name] for name in names]
    sums = [part for pair in zip(names, types, strict=True) for part in _sums(*pair)]
    [(rows, *values)] = run(f"SELECT {', '.join(['count(*)', *sums])} FROM {table.source}", [])
    columns = [
        ColumnProfile(name, str(type_), rows - count, min(distinct, count), True, least, greatest)
        for name, type_, count, distinct, least, greatest in zip(
            names, types, values[::6], values[1::6], values[2::6], values[3::6], strict=True
        )
    ]
    bounds = zip(values[4::6], values[5::6], strict=True)
    counts = [
        (place, count)
        for place, of in enumerate(zip(columns, types, bounds, strict=True))
        for count in _counts(*of)
    ]
    if counts:
        select_list = ", ".join(count.sql for _, count in counts)
        parameters = [value for _, count in counts for value in count.parameters]
        [results] = run(f"SELECT {select_list} FROM {table.source}", parameters)
        for (place, count), result in zip(counts, results, strict=True):
            columns[place] = replace(columns[place], **count.fields(result or {}))
    return rows, columns


def _is_ordered(type_: DuckDBPyType) -> bool:
    return type_.id not in NESTED and not str(type_).startswith(UNORDERED)


def _number(name: str, type_: DuckDBPyType) -> str | None:
    """A value as a number whose differences are distances; None: it has none."""
    words = str(type_)
    if not _is_ordered(type_) or words.startswith(PLAIN):
        return None
    is_time = words.startswith(("DATE", "TIME", "INTERVAL"))
    value = f"epoch({identifier(name)})" if is_time else f"CAST({identifier(name)} AS DOUBLE)"
    return f"CASE WHEN isfinite({value}) THEN {value} END"


def _sums(name: str, type_: DuckDBPyType) -> Iterator[str]:
    column = identifier(name)
    number = _number(name, type_)
    yield f"count({column})"
    yield f"approx_count_distinct({column})"
    for function in ("min", "max"):
        is_ordered = _is_ordered(type_)
        text = f"left(CAST({function}({column}) AS VARCHAR), {LONGEST_TEXT})"
        yield text if is_ordered else "CAST(NULL AS VARCHAR)"
    for function in ("min", "max"):
        yield f"{function}({number})" if number else "CAST(NULL AS DOUBLE)"


@dataclass(frozen=True, slots=True)
class _Count:
    """An aggregate of the second scan."""

    sql: str
    fields: Callable[[Any], dict[str, Any]]
    """The fields of a profile that its result gives."""
    parameters: tuple[float, ...] = ()


def _counts(
    column: ColumnProfile, type_: DuckDBPyType, bounds: tuple[float | None, float | None]
) -> Iterator[_Count]:
    name, number, (low, high) = identifier(column.name), _number(column.name, type_), bounds
    if column.distinct <= MOST_COUNTED:
        yield _Count(f"count(DISTINCT {name})", _distinct)
    if number is None:
        if _is_ordered(type_) and column.distinct <= MOST_VALUES:
            yield _Count(f"histogram(left(CAST({name} AS VARCHAR), {LONGEST_TEXT}))", _values)
    elif low is not None and high is not None and low < high:
        part = f"floor(({number} - ?) / ? * {BINS})"
        sql = f"histogram(CAST(least({part}, {BINS - 1}) AS INTEGER))"
        yield _Count(sql, _bins, (low, high - low))


def _distinct(count: Any) -> dict[str, Any]:
    return {"distinct": count or 0, "is_estimated": False}


def _values(counts: dict[str, int]) -> dict[str, Any]:
    values = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return {"values": tuple(ValueCount(*pair) for pair in values)}


def _bins(counts: dict[int, int]) -> dict[str, Any]:
    return {"bins": tuple(counts.get(number, 0) for number in range(BINS))}
