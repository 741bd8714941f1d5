"""Statistics of the columns of a written file, and the table's statistics widened by them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..common import text_values
from ..common.catalog import TableColumnStats
from ..common.columns import FLOATS, LIST, MAP, STRUCT, Column, leaves


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """A row of ducklake_file_column_stats, without the ids of file and table."""

    column_id: int
    column_size_bytes: int
    value_count: int
    """Without NULLs, as DuckDB writes it; DuckLake's documentation says otherwise."""
    null_count: int
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None


class FileStatistics:
    """Collects the smallest and largest values of the columns of one file."""

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self._extremes: dict[int, tuple[Any, Any]] = {}
        self._nan: set[int] = set()
        self._value_counts: Counter[int] = Counter()

    def add(self, table: pa.RecordBatch) -> None:
        """Include rows, whose columns are those of the table in its order."""
        for column, array in zip(self._columns, table.columns, strict=True):
            for leaf, values in _leaf_arrays(column, array):
                self._add(leaf, values)

    def _add(self, leaf: Column, values: pa.Array) -> None:
        values = text_values.plain_array(values)
        self._value_counts[leaf.column_id] += len(values) - values.null_count
        if leaf.column_type in FLOATS:
            nan = pc.is_nan(values)
            if pc.any(nan).as_py():
                self._nan.add(leaf.column_id)
                values = values.filter(pc.invert(nan))
        found = pc.min_max(values)
        low, high = found["min"].as_py(), found["max"].as_py()
        if low is None:
            return
        if leaf.column_type in FLOATS:
            low, high = (_first_zero(values) if number == 0 else number for number in (low, high))
        if leaf.column_id in self._extremes:
            before = self._extremes[leaf.column_id]
            low, high = min(before[0], low), max(before[1], high)
        self._extremes[leaf.column_id] = (low, high)

    def stats(self, footer: pq.FileMetaData) -> list[ColumnStats]:
        """The statistics of each leaf column.

        A NULL is any level of the column in the file that holds no value, as DuckLake counts.
        """
        return [
            self._stats(leaf, [footer.row_group(g).column(i) for g in range(footer.num_row_groups)])
            for i, leaf in enumerate(leaves(self._columns))
        ]

    def _stats(self, leaf: Column, chunks: list[pq.ColumnChunkMetaData]) -> ColumnStats:
        value_count = self._value_counts[leaf.column_id]
        low, high = None, None
        if leaf.column_id in self._extremes:
            low, high = text_values.bounds(leaf.column_type, *self._extremes[leaf.column_id])
        return ColumnStats(
            leaf.column_id,
            sum(chunk.total_compressed_size for chunk in chunks),
            value_count,
            sum(chunk.num_values for chunk in chunks) - value_count,
            low,
            high,
            leaf.column_id in self._nan if leaf.column_type in FLOATS else None,
        )


def _first_zero(values: pa.Array) -> float:
    """The first zero: -0.0 equals 0.0, and DuckDB records the first of equal values."""
    index = pc.index(values, pa.scalar(0.0, values.type)).as_py()
    zero: float = values[index].as_py()
    return zero


def _leaf_arrays(column: Column, array: pa.Array) -> Iterator[tuple[Column, pa.Array]]:
    if column.column_type == STRUCT:
        parts = array.flatten()
    elif column.column_type == LIST:
        parts = [array.flatten()]
    elif column.column_type == MAP:
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        parts = [array.keys[start:end], array.items[start:end]]
    else:
        yield column, array
        return
    for child, part in zip(column.children, parts, strict=True):
        yield from _leaf_arrays(child, part)


def widened(
    before: TableColumnStats | None, column: Column, files: list[ColumnStats], had_rows: bool
) -> TableColumnStats:
    """The table's statistics of a column, widened to cover the new `files`.

    Args:
        before: None: the table has no statistics of this column.
        had_rows: the table has rows already; without `before` nothing is known about them.
    """
    contains_null = any(stats.null_count > 0 for stats in files)
    contains_nan = None
    if column.column_type in FLOATS:
        contains_nan = any(stats.contains_nan for stats in files)
    ranges = [(s.min_value, s.max_value) for s in files if s.value_count]
    if before is not None:
        contains_null = contains_null or before.contains_null is not False
        if contains_nan is not None:
            contains_nan = contains_nan or before.contains_nan is not False
        ranges.insert(0, (before.min_value, before.max_value))  # NULL: unknown, and stays unknown
    elif had_rows:
        contains_null, contains_nan = True, contains_nan if contains_nan is None else True
        ranges.insert(0, (None, None))
    low, high = _covering(column.column_type, ranges)
    return TableColumnStats(column.column_id, contains_null, contains_nan, low, high)


def _covering(
    column_type: str, ranges: list[tuple[str | None, str | None]]
) -> tuple[str | None, str | None]:
    """The smallest and the largest text; None for both if one of them is uncertain."""
    lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
    if not ranges or None in lows or None in highs:
        return None, None  # DuckDB does not use one bound alone
    try:
        return (
            min(lows, key=lambda text: text_values.comparable(column_type, text or "")),
            max(highs, key=lambda text: text_values.comparable(column_type, text or "")),
        )
    except ValueError:
        return None, None
