"""What is checked and derived of a table's columns: defaults, faults, NOT NULL.

`default_json` makes Iceberg's `initial-default` of DuckLake's `initial_default`, which applies to
files that were written before the column was added. Never of `default_value`, which is for new
rows, and is the text 'NULL' if there is none. JSON single-value form:
https://iceberg.apache.org/spec/#json-single-value-serialization

`column_fault` finds rows of ducklake_column that do not form a tree; `never_null` finds the columns
that Iceberg may call required.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from ..ducklake.rows.objects import Column
from ..ducklake.text_values import EPOCH
from ..runtime.errors import REMEDY
from .types import value


def default_json(type_name: str, text: str) -> Any:
    """The default of a column of an Iceberg primitive type in JSON.

    Raises:
        ValueError: the value of the default is not certain.
    """
    if type_name == "binary":
        # The text is in DuckDB's escape form, not in hexadecimal like a statistic.
        raise ValueError("defaults of binary columns are not served")
    if type_name == "uuid":
        return str(UUID(text))
    return JSON.get(type_name, str)(value(type_name, text))


def _number(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("JSON has no infinity")
    return number


def _timestamp(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(timespec=MICROS)


def _timestamptz(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).isoformat(timespec=MICROS)


def _time(micros: int) -> str:
    if micros >= 86_400_000_000:
        raise ValueError("Iceberg has no 24:00:00")
    return (EPOCH + timedelta(microseconds=micros)).time().isoformat(timespec=MICROS)


def _date(days: int) -> str:
    return (EPOCH + timedelta(days=days)).date().isoformat()


MICROS = "microseconds"

JSON: dict[str, Callable[[Any], Any]] = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": _number,
    "double": _number,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}
"""Decimals and strings are JSON strings."""


MAX_FIELD_ID = 2147483447
"""The largest id that Iceberg does not reserve (specification, "Reserved Field IDs")."""

MAX_DEPTH = 100
"""Levels of nesting. Readers and writers of JSON, Avro and Parquet recurse, also in clients."""

CHILDREN: Mapping[str, tuple[int, int | None]] = {
    "struct": (1, None),
    "list": (1, 1),
    "map": (2, 2),
}
"""The smallest and the largest number of children of a nested type."""


def column_fault(columns: Sequence[Column]) -> str | None:
    """Why the columns that are visible at one snapshot are not a schema; None if they are."""
    reason = next(filter(None, map(_own_fault, columns)), None)
    reason = reason or _repeated(columns) or _nesting_fault(columns)
    return reason and f"broken rows in ducklake_column: {reason}{REMEDY}"


def _own_fault(column: Column) -> str | None:
    # Columns of the catalog may be NULL, although the types here say otherwise.
    if column.column_id is None or not 0 <= column.column_id <= MAX_FIELD_ID:
        return f"{column.column_id} is no column_id"
    if not column.column_name:
        return f"the column {column.column_id} has no name"
    if not column.column_type:
        return f"the column {column.column_name!r} has no type"
    return None


def _repeated(columns: Sequence[Column]) -> str | None:
    ids = Counter(column.column_id for column in columns)
    names = Counter((column.parent_column, column.column_name) for column in columns)
    for column_id, times in ids.items():
        if times > 1:
            return f"the column_id {column_id} is there {times} times at one snapshot"
    for (_, name), times in names.items():
        if times > 1:
            return f"{times} columns have the name {name!r}"
    return None


def _nesting_fault(columns: Sequence[Column]) -> str | None:
    children: dict[int | None, list[Column]] = defaultdict(list)
    for column in columns:
        children[column.parent_column].append(column)
    level, depth, visited = children[None], 0, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return f"{level[0].column_name!r} is nested deeper than {MAX_DEPTH} levels"
        for column in level:
            least, most = CHILDREN.get(column.column_type, (0, None))
            count = len(children[column.column_id])
            if count < least or (most is not None and count > most):
                return f"the {column.column_type} {column.column_name!r} has {count} children"
        visited += len(level)
        level = [child for column in level for child in children[column.column_id]]
    if visited < len(columns):
        return "a parent_column names no column that is there, or columns are inside each other"
    return None


def never_null(columns: Iterable[Column], table_begin: int) -> frozenset[int]:
    """The top-level columns that have been NOT NULL in every row that the table ever had.

    A column that became NOT NULL later may have NULL in the deleted rows of its files.

    Args:
        columns: every version of every column.
        table_begin: the snapshot that made the table.
    """
    versions: dict[int, list[Column]] = defaultdict(list)
    for column in columns:
        versions[column.column_id].append(column)
    return frozenset(
        column_id
        for column_id, history in versions.items()
        if all(column.parent_column is None and not column.nulls_allowed for column in history)
        and min(column.begin_snapshot for column in history) <= table_begin
    )
