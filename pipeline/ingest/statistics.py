"""Statistics of the columns of a file while its rows are written."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from polynya.ducklake.column_tree import FLOATS, LIST, MAP, STRUCT, ColumnNode, leaves
from polynya.ducklake.writes.files import FileColumnStats

from ..common import text_values


class FileStatistics:
    """Collects the smallest and largest values of the columns of one file."""

    def __init__(self, columns: tuple[ColumnNode, ...]) -> None:
        self._columns = columns
        self._extremes: dict[int, tuple[Any, Any]] = {}
        self._nan: set[int] = set()
        self._value_counts: Counter[int] = Counter()

    def add(self, table: pa.RecordBatch) -> None:
        """Include rows, whose columns are those of the table in its order."""
        for column, array in zip(self._columns, table.columns, strict=True):
            for leaf, values in _leaf_arrays(column, array):
                self._add(leaf, values)

    def _add(self, leaf: ColumnNode, values: pa.Array) -> None:
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

    def stats(self, footer: pq.FileMetaData) -> list[FileColumnStats]:
        """The statistics of each leaf column.

        A NULL is any level of the column in the file that holds no value, as DuckLake counts.
        """
        return [
            self._stats(leaf, [footer.row_group(g).column(i) for g in range(footer.num_row_groups)])
            for i, leaf in enumerate(leaves(self._columns))
        ]

    def _stats(self, leaf: ColumnNode, chunks: list[pq.ColumnChunkMetaData]) -> FileColumnStats:
        value_count = self._value_counts[leaf.column_id]
        low, high = None, None
        exact: tuple[bool | None, bool | None] = (None, None)
        if leaf.column_id in self._extremes:
            extremes = self._extremes[leaf.column_id]
            low, high = text_values.bounds(leaf.column_type, *extremes)
            exact = self._exactness(leaf, low, high)
        return FileColumnStats(
            leaf.column_id,
            sum(chunk.total_compressed_size for chunk in chunks),
            value_count,
            sum(chunk.num_values for chunk in chunks) - value_count,
            low,
            high,
            leaf.column_id in self._nan if leaf.column_type in FLOATS else None,
            *exact,
        )

    def _exactness(
        self, leaf: ColumnNode, low: str | None, high: str | None
    ) -> tuple[bool | None, bool | None]:
        """Whether the bounds are values; None: there is no bound, or NaN is above it."""
        texts = [
            text_values.statistics_text(leaf.column_type, value)
            for value in self._extremes[leaf.column_id]
        ]
        return (
            None if low is None else low == texts[0],
            None if high is None or leaf.column_id in self._nan else high == texts[1],
        )


def _first_zero(values: pa.Array) -> float:
    """The first zero: -0.0 equals 0.0, and DuckDB records the first of equal values."""
    index = pc.index(values, pa.scalar(0.0, values.type)).as_py()
    zero: float = values[index].as_py()
    return zero


def _leaf_arrays(column: ColumnNode, array: pa.Array) -> Iterator[tuple[ColumnNode, pa.Array]]:
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
