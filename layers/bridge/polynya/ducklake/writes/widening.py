"""The statistics of a table's columns, widened to cover new data files."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..column_tree import FLOATS, ColumnNode, leaves
from ..rows.writers.table_stats import TableColumnStats
from ..text_order import parser
from .files import FileColumnStats, NewDataFile


@dataclass(frozen=True, slots=True)
class WiderStats:
    """The statistics of a table's columns with new data files."""

    known: list[TableColumnStats] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    """The ids of columns that have none: DuckDB takes NULL for "no values so far", and with its
    next INSERT the bounds of these rows for those of all rows. Where there is no row for a column,
    it writes none."""
    with_null: list[int] = field(default_factory=list)
    """The ids of columns that are NULL in all new rows: nothing else in their rows changes."""


def widened(
    before: Mapping[int, TableColumnStats],
    columns: Iterable[ColumnNode],
    files: Sequence[NewDataFile],
    *,
    had_rows: bool,
    new_ids: Collection[int],
) -> WiderStats:
    """The statistics of the table's columns, widened to cover the new files.

    Args:
        before: the table's statistics so far, by column_id.
        columns: all columns of the table. A file without statistics of a leaf has NULL in it.
        had_rows: the table has other rows, ended ones included.
        new_ids: the columns that are added in the same snapshot, nested ones included.
    """
    wider = WiderStats()
    by_column: dict[int, list[FileColumnStats]] = defaultdict(list)
    for file in files:
        for one in file.stats:
            by_column[one.column_id].append(one)
    for leaf in leaves(columns):
        stats = by_column[leaf.column_id]
        if leaf.column_id in before and _are_null(stats):
            wider.with_null.append(leaf.column_id)
            continue
        # Rows that are older than a column have NULL in it, and no other value.
        is_late = leaf.column_id in new_ids and had_rows
        row = _widened(before.get(leaf.column_id), leaf, stats, had_rows and not is_late)
        has_null = is_late or len(stats) < len(files)
        if row is None:
            wider.unknown.append(leaf.column_id)
        else:
            wider.known.append(replace(row, contains_null=True) if has_null else row)
    return wider


def _are_null(files: Iterable[FileColumnStats]) -> bool:
    """Whether a column is NULL in all rows of all files."""
    return all(stats.value_count == 0 and stats.null_count != 0 for stats in files)


def _widened(
    before: TableColumnStats | None,
    column: ColumnNode,
    files: Sequence[FileColumnStats],
    had_rows: bool,
) -> TableColumnStats | None:
    """The statistics of one column; None: they are not certain.

    Args:
        before: None: the table has no statistics of this column.
        had_rows: the table has rows already; without `before` nothing is known about them.
    """
    if before is None and had_rows:
        return None
    contains_null = any(stats.null_count != 0 for stats in files)
    contains_nan = None
    if column.column_type in FLOATS:
        contains_nan = any(stats.contains_nan for stats in files)
    ranges = [(s.min_value, s.max_value) for s in files if s.value_count != 0]
    if before is not None:
        contains_null = contains_null or before.contains_null is not False
        if contains_nan is not None:
            contains_nan = contains_nan or before.contains_nan is not False
        # NULL in both: no values so far, or another writer did not know them.
        if ranges or before.min_value is not None or before.max_value is not None:
            ranges.insert(0, (before.min_value, before.max_value))
    low, high = None, None
    if ranges:
        low, high = _covering(column.column_type, ranges)
        if low is None:
            return None
    exact = _exactness(low, high, files if before is None else [before, *files])
    return TableColumnStats(column.column_id, contains_null, contains_nan, low, high, *exact)


def _exactness(
    low: str | None, high: str | None, stats: Sequence[FileColumnStats | TableColumnStats]
) -> tuple[bool | None, bool | None]:
    """Whether the bounds are values: where they are the same text, one that is a value is enough.

    DuckLake asks all of them to be values, so that it takes some values for bounds.
    """
    of_low = {one.min_is_exact for one in stats if low is not None and one.min_value == low}
    of_high = {one.max_is_exact for one in stats if high is not None and one.max_value == high}
    return _any(of_low), _any(of_high)


def _any(flags: Collection[bool | None]) -> bool | None:
    """Whether one of them is true; None: not known."""
    return True if True in flags else False if flags == {False} else None


def _covering(
    column_type: str, ranges: list[tuple[str | None, str | None]]
) -> tuple[str | None, str | None]:
    """The smallest and the largest text; None for both if one of them is uncertain."""
    lows = [low for low, _ in ranges if low is not None]
    highs = [high for _, high in ranges if high is not None]
    if len(lows) < len(ranges) or len(highs) < len(ranges):
        return None, None
    try:
        value = parser(column_type)
        return min(lows, key=value), max(highs, key=value)
    except ValueError:
        return None, None
