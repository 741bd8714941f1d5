"""DuckLake's column statistics as Iceberg's metrics: counts and bounds, or none.

A bound that is not certain is absent: an absent one costs time, a wrong one costs rows.
"""

import math
import struct
from dataclasses import dataclass, field
from typing import Any

from ..ducklake.rows import ColumnStats
from ..iceberg.single_value import to_bytes
from .values import value

NO_BOUNDS = {
    # Java's UUID.compareTo is signed, DuckDB's order is unsigned: a bound would mean two things.
    "uuid",
}


@dataclass(frozen=True, slots=True)
class Metrics:
    """Of one file, by field id; the members of `iceberg.manifest.DataFile` of the same names."""

    column_sizes: dict[int, int] = field(default_factory=dict)
    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column with statistics: the type that Iceberg shows and the one the file was written in."""

    type_name: str
    written_type: str


def metrics(stats: list[ColumnStats], record_count: int, leaves: dict[int, Leaf]) -> Metrics:
    """Metrics of a file.

    Args:
        stats: of one data file.
        leaves: by field id, those that the schema shows and that are in no list and no map:
            Parquet counts levels in those, not values.
    """
    result = Metrics()
    for column in stats:
        leaf = leaves.get(column.column_id)
        if leaf is None:
            continue
        if column.column_size_bytes is not None:
            result.column_sizes[column.column_id] = column.column_size_bytes
        _add_counts(result, column, record_count)
        _add_bounds(result, column, leaf)
    return result


def _add_counts(result: Metrics, column: ColumnStats, record_count: int) -> None:
    values, nulls = column.value_count, column.null_count
    # value_count leaves NULLs out. Counts that do not add up are wrong: those of timetz and
    # interval are all 0, and of a merged file seen at an older snapshot too large.
    if values is not None and nulls is not None and values + nulls == record_count:
        result.value_counts[column.column_id] = record_count
        result.null_value_counts[column.column_id] = nulls
    if column.contains_nan is False:
        result.nan_value_counts[column.column_id] = 0


def _add_bounds(result: Metrics, column: ColumnStats, leaf: Leaf) -> None:
    lower = _bound(column.min_value, leaf, zero=-0.0)
    upper = _bound(column.max_value, leaf, zero=0.0)
    # DuckDB and Spark order NaN above every number and prune by the bound: without certainty
    # that there is none, `x >= 1` would lose the NaN rows.
    may_have_nan = leaf.type_name in {"float", "double"} and column.contains_nan is not False
    if lower is not None:
        result.lower_bounds[column.column_id] = lower
    if upper is not None and not may_have_nan:
        result.upper_bounds[column.column_id] = upper


def _bound(text: str | None, leaf: Leaf, zero: float) -> bytes | None:
    """The bound as bytes of the type that Iceberg shows now; None where it is not certain."""
    promoted_float = leaf.written_type == "float" and leaf.type_name == "double"
    if text is None or leaf.type_name in NO_BOUNDS or promoted_float:
        # The text of a float32 is shorter than its value: 0.1 for 0.10000000149.
        return None
    try:
        return to_bytes(leaf.type_name, _widest(value(leaf.written_type, text), zero))
    except (ValueError, OverflowError, struct.error):
        return None


def _widest(read: Any, zero: float) -> Any:
    """{-0.0, 0.0} stands as one of the two in the statistics, and Iceberg orders -0.0 first."""
    if isinstance(read, float) and read == 0.0:
        return math.copysign(0.0, zero)
    return read
