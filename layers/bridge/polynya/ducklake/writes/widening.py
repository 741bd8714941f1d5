"""The statistics of a table's columns, widened to cover new data files."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..column_tree import FLOATS, ColumnNode, leaves
from ..rows.table_stats import TableColumnStats
from ..text_order import comparable
from .files import FileColumnStats, NewDataFile

Range = tuple[str | None, str | None]
"""The smallest and the largest value; None: unknown."""

NOTHING_LIVE: Mapping[int, Sequence[Range]] = {}


def widened(
    before: Mapping[int, TableColumnStats],
    columns: Iterable[ColumnNode],
    files: Sequence[NewDataFile],
    *,
    had_rows: bool,
    new_ids: Collection[int],
    live: Mapping[int, Sequence[Range]] = NOTHING_LIVE,
) -> list[TableColumnStats]:
    """The statistics of the table's columns, widened to cover the new files.

    Args:
        before: the table's statistics so far, by column_id.
        columns: all columns of the table. A file without statistics of a leaf has NULL in it.
        had_rows: the table has other rows, ended ones included.
        new_ids: the columns that are added in the same snapshot, nested ones included.
        live: the ranges of the live files, of columns without bounds (`unbounded`).
    """
    covering = []
    by_column: dict[int, list[FileColumnStats]] = defaultdict(list)
    for file in files:
        for one in file.stats:
            by_column[one.column_id].append(one)
    for leaf in leaves(columns):
        stats = by_column[leaf.column_id]
        # Rows that are older than a column have NULL in it, and no other value.
        is_late = leaf.column_id in new_ids and had_rows
        known = before.get(leaf.column_id)
        row = _widened(known, leaf, stats, had_rows and not is_late, live.get(leaf.column_id))
        has_null = is_late or len(stats) < len(files)
        covering.append(replace(row, contains_null=True) if has_null else row)
    return covering


def unbounded(
    before: Mapping[int, TableColumnStats],
    columns: Iterable[ColumnNode],
    files: Sequence[NewDataFile],
) -> list[int]:
    """The columns of which the files have bounds and the table has none.

    NULL for both bounds means "no values" to native DuckLake: its next INSERT would set the bounds
    of its own rows, and filters would lose all others. So NULL must not stay without need.
    """
    bounded = {one.column_id for file in files for one in file.stats if one.min_value is not None}
    known = {column_id for column_id, row in before.items() if row.min_value is not None}
    ids = (leaf.column_id for leaf in leaves(columns))
    return [column_id for column_id in ids if column_id in bounded - known]


def _widened(
    before: TableColumnStats | None,
    column: ColumnNode,
    files: Sequence[FileColumnStats],
    had_rows: bool,
    live: Sequence[Range] | None,
) -> TableColumnStats:
    """The statistics of one column.

    Args:
        before: None: the table has no statistics of this column.
        had_rows: the table has rows already; without `before` nothing is known about them.
        live: the ranges of these rows, if `before` has none; None: unknown.
    """
    contains_null = any(stats.null_count != 0 for stats in files)
    contains_nan = None
    if column.column_type in FLOATS:
        contains_nan = any(stats.contains_nan for stats in files)
    ranges: list[Range] = [(s.min_value, s.max_value) for s in files if s.value_count != 0]
    unknown: Sequence[Range] = [(None, None)] if live is None else live
    if before is not None:
        contains_null = contains_null or before.contains_null is not False
        if contains_nan is not None:
            contains_nan = contains_nan or before.contains_nan is not False
        has_bounds = before.min_value is not None and before.max_value is not None
        ranges[:0] = [(before.min_value, before.max_value)] if has_bounds else unknown
    elif had_rows:
        contains_null, contains_nan = True, contains_nan if contains_nan is None else True
        ranges[:0] = unknown
    low, high = _covering(column.column_type, ranges)
    return TableColumnStats(column.column_id, contains_null, contains_nan, low, high)


def _covering(column_type: str, ranges: list[Range]) -> tuple[str | None, str | None]:
    """The smallest and the largest text; None for both if one of them is uncertain."""
    lows, highs = [low for low, _ in ranges], [high for _, high in ranges]
    if not ranges or None in lows or None in highs:
        return None, None  # DuckDB does not use one bound alone
    try:
        return (
            min(lows, key=lambda text: comparable(column_type, text or "")),
            max(highs, key=lambda text: comparable(column_type, text or "")),
        )
    except ValueError:
        return None, None
