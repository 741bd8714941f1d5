"""Filters of scans and the partition values of inlined rows.

Daft drops a condition on a partition column, because it expects that all files of a plan were
chosen by it (Daft issue 7428): files of other values would give it wrong rows.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ...ducklake.rows.conditions import AllOf, AnyOf, ColumnTest, Condition
from ...iceberg.partition import PartitionSpec
from ..values import value

Partition = tuple[Any, ...]


def may_hold(condition: Condition, spec: PartitionSpec, partition: Partition | None) -> bool:
    """Whether a file of a partition may hold a row that a filter selects.

    Only the fields are compared whose values are those of their column.
    """
    fields = zip(spec.fields, partition or (), strict=bool(partition))
    known = {
        field.source_id: (field.result_type, found)
        for field, found in fields
        if field.transform == "identity"
    }
    return _may_hold(condition, known)


def _may_hold(condition: Condition, known: Mapping[int, tuple[str, Any]]) -> bool:
    match condition:
        case AllOf(parts):
            return all(_may_hold(part, known) for part in parts)
        case AnyOf(parts):
            return any(_may_hold(part, known) for part in parts)
        case ColumnTest(column) if column.column_id in known:
            return _passes(condition, *known[column.column_id])
    return True


def _passes(test: ColumnTest, type_name: str, found: Any) -> bool:
    if test.operation not in COMPARED or found is None:
        return test.operation not in (NEVER_NULL if found is None else {"is-null"})
    try:
        values = [value(type_name, text) for text in test.values]
    except ValueError:
        return True  # a value that the column cannot have
    return COMPARED[test.operation](found, values)


NEVER_NULL = {"not-null", "is-nan", "lt", "lt-eq", "gt", "gt-eq", "in", "one-of", "starts-with"}
"""The operations that a NULL does not pass. Clients disagree on the negated ones."""

COMPARED: dict[str, Callable[[Any, list[Any]], bool]] = {
    "lt": lambda found, values: found < values[0],
    "lt-eq": lambda found, values: found <= values[0],
    "gt": lambda found, values: found > values[0],
    "gt-eq": lambda found, values: found >= values[0],
    "in": lambda found, values: found in values,
    "one-of": lambda found, values: found in values,
    "not-in": lambda found, values: found not in values,
    "starts-with": lambda found, values: found.startswith(values[0]),
    "not-starts-with": lambda found, values: not found.startswith(values[0]),
}
"""Whether a value passes."""
