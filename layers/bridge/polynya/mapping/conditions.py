"""Filters of scans as conditions on the statistics of data files.

The rules are those of Iceberg's inclusive projection, which clients apply to the bounds in
manifests: a file is kept unless no row of it can pass.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ...ducklake.rows.conditions import (
    EVERY_FILE,
    AllOf,
    AnyOf,
    ColumnTest,
    Condition,
    FilteredColumn,
)
from ...iceberg.planning.filters import And, Filter, Not, Or, Predicate
from .filtered_columns import FilteredColumns
from .literals import literal_text

MOST_VALUES = 200
"""Of a longer list the smallest and the largest value are compared (as Iceberg does); all only with
files of one value, such as that of a partition."""

NEGATED = {
    "lt": "gt-eq",
    "lt-eq": "gt",
    "gt": "lt-eq",
    "gt-eq": "lt",
    "eq": "not-eq",
    "not-eq": "eq",
    "in": "not-in",
    "not-in": "in",
    "is-null": "not-null",
    "not-null": "is-null",
    "is-nan": "not-nan",
    "not-nan": "is-nan",
    "starts-with": "not-starts-with",
    "not-starts-with": "starts-with",
}

# Zero has two signs, and a client may compare a float as a double: the bound itself may pass.
WIDENED = {"lt": "lt-eq", "gt": "gt-eq"}


def condition_of(filter_: Filter, columns: FilteredColumns, *, negated: bool = False) -> Condition:
    """The files that may hold a row that the filter selects.

    Args:
        negated: a row that it does not select. NULL is in neither: as clients do it, `not` is
            moved to the predicates.

    Raises:
        BadRequest: it names a column that no schema has.
    """
    match filter_:
        case Not(child):
            return condition_of(child, columns, negated=not negated)
        case And(parts) | Or(parts):
            found = tuple(condition_of(one, columns, negated=negated) for one in parts)
            return AllOf(found) if isinstance(filter_, And) != negated else AnyOf(found)
    return _test(filter_, columns, NEGATED[filter_.operation] if negated else filter_.operation)


def _test(predicate: Predicate, columns: FilteredColumns, operation: str) -> Condition:
    if predicate.field is None or (column := columns.find(predicate.field)) is None:
        return EVERY_FILE
    if operation in {"is-null", "not-null", "is-nan"}:
        return ColumnTest(column, operation)
    if column.form is None or operation not in COMPARED:
        return EVERY_FILE
    values = [literal_text(column.form, one) for one in predicate.values]
    if any(one is None for one in values):
        return EVERY_FILE
    texts = [one for one in values if one is not None]
    found = COMPARED[operation](column, operation, texts)
    if operation in {"eq", "in"} and len(texts) <= MOST_VALUES:
        return AllOf((found, *columns.bucket_tests(column, texts)))
    return found


def _comparison(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    if column.form in {"float", "double"}:
        operation = WIDENED.get(operation, operation)
    return ColumnTest(column, operation, tuple(values))


def _membership(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    if len(values) <= MOST_VALUES:
        return ColumnTest(column, "in", tuple(values))
    ordered = sorted(values, key=KEYS.get(column.form or "", _bytes))
    ends = ("gt-eq", ordered[0]), ("lt-eq", ordered[-1])
    return AllOf(
        (
            *(ColumnTest(column, one, (end,)) for one, end in ends),
            ColumnTest(column, "one-of", tuple(values)),
        )
    )


def _exclusion(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    if column.form in {"float", "double"}:
        return EVERY_FILE  # clients disagree whether the two zeros are equal
    return ColumnTest(column, "not-in", tuple(values))


def _prefix(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    return ColumnTest(column, operation, tuple(values)) if column.form == "string" else EVERY_FILE


def _bytes(text: str) -> Any:
    return text.encode()


KEYS: dict[str, Callable[[str], Any]] = {
    "boolean": int,
    "integer": int,
    "decimal": Decimal,
    "float": float,
    "double": float,
}
"""The order of the texts of a form; those of the others have the order of their bytes."""

COMPARED: dict[str, Callable[[FilteredColumn, str, list[str]], Condition]] = {
    **dict.fromkeys(("lt", "lt-eq", "gt", "gt-eq"), _comparison),
    **dict.fromkeys(("eq", "in"), _membership),
    **dict.fromkeys(("not-eq", "not-in"), _exclusion),
    **dict.fromkeys(("starts-with", "not-starts-with"), _prefix),
}
"""The operations by which files can be skipped; all others keep every file."""
