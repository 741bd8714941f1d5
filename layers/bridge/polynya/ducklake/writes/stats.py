"""The statistics of a table and of its columns, widened to cover new data files.

DuckDB's optimizer relies on them: a bound that is too narrow silently loses rows. Long bounds are
truncated, as DuckLake does it, and remain bounds.
"""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias

from pg8000.native import Connection

from ...types.names import FLOATS, TEXTS, order
from ..column_tree import ColumnNode, leaves
from ..connection.catalog_connection import Rows, Statement
from ..rows.files import TableColumnStats
from ..rows.objects import Layout
from .new_files import FileColumnStats, NewDataFile
from .rows import copy, insert


@dataclass(frozen=True, slots=True)
class WiderStats:
    """The statistics of a table's columns with new data files."""

    certain: list[TableColumnStats] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    """The ids of columns that get no row. With a row of NULLs DuckDB would assume that the column
    has no values yet, and take the bounds of its next INSERT for those of all rows; without a row
    it writes none."""
    with_null: list[int] = field(default_factory=list)
    """The ids of columns that are NULL in all new rows: only `contains_null` changes."""


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
        for column_stats in file.stats:
            by_column[column_stats.column_id].append(column_stats)
    for leaf in leaves(columns):
        stats = by_column[leaf.column_id]
        if leaf.initial_default is not None and len(stats) < len(files):
            wider.unknown.append(leaf.column_id)  # rows of some files have the default
            continue
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
            wider.certain.append(replace(row, contains_null=True) if has_null else row)
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
    if column.column_type in {GEOMETRY, VARIANT}:
        return _stats_without_bounds(column, before, files, contains_null=contains_null)
    contains_nan = None
    if column.column_type in FLOATS:
        contains_nan = any(stats.contains_nan for stats in files)
    ranges = [(s.min_value, s.max_value) for s in files if s.value_count != 0]
    if before is not None:
        contains_null = contains_null or before.contains_null is not False
        if contains_nan is not None:
            contains_nan = contains_nan or before.contains_nan is not False
        # NULL in both: the column had no values, or another writer did not know them.
        if ranges or before.min_value is not None or before.max_value is not None:
            ranges.insert(0, (before.min_value, before.max_value))
    low, high = None, None
    if ranges:
        low, high = _covering(column.column_type, ranges)
        if low is None:
            return None
    exact = _exactness(low, high, files if before is None else [before, *files])
    return TableColumnStats(column.column_id, contains_null, contains_nan, low, high, *exact)


def _stats_without_bounds(
    column: ColumnNode,
    before: TableColumnStats | None,
    files: Sequence[FileColumnStats],
    *,
    contains_null: bool,
) -> TableColumnStats | None:
    """The statistics of a geometry or a variant; None: they are not certain."""
    has_null = contains_null or (before is not None and before.contains_null is not False)
    if column.column_type == VARIANT:
        # A variant that is null is NULL in DuckDB, and files do not count it. Without a shape here
        # DuckLake takes none from later files either.
        return TableColumnStats(column.column_id, True, None, None, None)
    texts = [stats.extra_stats for stats in files] + ([before.extra_stats] if before else [])
    box = _enclosing_box(texts)
    if box is None:
        return None
    return TableColumnStats(column.column_id, has_null, None, None, None, extra_stats=box)


def _exactness(
    low: str | None, high: str | None, stats: Sequence[FileColumnStats | TableColumnStats]
) -> tuple[bool | None, bool | None]:
    """Whether the lower and the upper bound are values of the column.

    DuckLake calls fewer bounds exact.
    """
    # If one of several statistics with the same bound is exact, the bound is a value.
    of_low = {row.min_is_exact for row in stats if low is not None and row.min_value == low}
    of_high = {row.max_is_exact for row in stats if high is not None and row.max_value == high}
    return _any(of_low), _any(of_high)


def _any(flags: Collection[bool | None]) -> bool | None:
    """True if any flag is; False only if all are; None: not known."""
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
        value = order(column_type)
        return min(lows, key=value), max(highs, key=value)
    except ValueError:
        return None, None


TABLE_STATS = """
SELECT record_count, next_row_id, file_size_bytes FROM ducklake_table_stats
WHERE table_id = :table_id FOR UPDATE"""

TableStats: TypeAlias = tuple[int | None, int, int | None]
"""record_count, next_row_id, file_size_bytes."""


def table_stats(table_id: int) -> Statement[TableStats | None]:
    """The statistics of a table; None: nothing was ever written to it."""
    return Statement(TABLE_STATS, {"table_id": table_id}, _table_stats)


def _table_stats(rows: Rows) -> TableStats | None:
    for record_count, next_row_id, file_size_bytes in rows:
        return record_count, next_row_id, file_size_bytes
    return None


UPDATE_TABLE_STATS = """
UPDATE ducklake_table_stats SET record_count = :record_count, next_row_id = :next_row_id,
  file_size_bytes = :file_size_bytes
WHERE table_id = :table_id"""


def wider(before: TableStats | None, records: int, row_ids: int, size: int) -> TableStats:
    """The statistics of a table with new files; unknown numbers stay unknown."""
    record_count, next_row_id, file_size_bytes = before or (0, 0, 0)
    # record_count is never made smaller, as in DuckLake 1.0: DuckLake takes the bounds of a table
    # for values while it is the number of live rows, and an ended file leaves the bounds wider.
    # DuckLake 1.1 subtracts a file that it drops, and removes the bounds; it fails where a file has
    # more rows than record_count, so a greater record_count is safe.
    return (
        None if record_count is None else record_count + records,
        next_row_id + row_ids,
        None if file_size_bytes is None else file_size_bytes + size,
    )


def set_table_stats(con: Connection, table_id: int, stats: TableStats, *, is_new: bool) -> None:
    """Write the statistics of a table.

    Args:
        is_new: the table has no row in ducklake_table_stats yet.
    """
    names = ("table_id", "record_count", "next_row_id", "file_size_bytes")
    values = dict(zip(names, (table_id, *stats), strict=True))
    if is_new:
        insert(con, "ducklake_table_stats", **values)
    else:
        con.run(UPDATE_TABLE_STATS, **values)


DELETE_COLUMN_STATS = """
DELETE FROM ducklake_table_column_stats WHERE table_id = :table_id AND column_id = ANY(:ids)"""

# Boxes of geometries and shapes of variants stay.
SET_CONTAINS_NULL = """
UPDATE ducklake_table_column_stats SET contains_null = true
WHERE table_id = :table_id AND column_id = ANY(:ids)"""


def set_column_stats(con: Connection, table_id: int, stats: WiderStats, layout: Layout) -> None:
    """Replace the statistics of a table's columns, in a catalog that has `layout`."""
    rows = [
        (
            *(table_id, s.column_id, s.contains_null, s.contains_nan, s.min_value, s.max_value),
            *(s.min_is_exact, s.max_is_exact, s.extra_stats),
        )
        for s in stats.certain
    ]
    replaced = [*(row[1] for row in rows), *stats.unknown]
    con.run(DELETE_COLUMN_STATS, table_id=table_id, ids=replaced)
    if stats.with_null:
        con.run(SET_CONTAINS_NULL, table_id=table_id, ids=stats.with_null)
    copy(
        con,
        "ducklake_table_column_stats",
        (
            *("table_id", "column_id", "contains_null", "contains_nan"),
            *("min_value", "max_value", "min_is_exact", "max_is_exact", "extra_stats"),
        ),
        rows,
        layout,
    )


# Only texts that both PostgreSQL and DuckDB read as a number: not inf, -inf or nan, and no number
# out of the range of float32, which PostgreSQL refuses.
NUMBER = r"^-?[0-9]{0,60}\.?[0-9]{1,60}(e[-+]?[0-9]{1,2})?$"
WIDENED = """CASE WHEN {0} ~ :number THEN CASE
  WHEN abs(CAST({0} AS double precision)) BETWEEN 1e-45 AND 3.4028235e38
  THEN (CAST(CAST({0} AS real) AS double precision))::text ELSE {0} END ELSE {0} END"""
WIDEN_FLOATS = f"""
UPDATE {{table}} SET min_value = {WIDENED.format("min_value")},
  max_value = {WIDENED.format("max_value")}
WHERE table_id = :table_id AND column_id = ANY(:ids)"""


def widen_floats(con: Connection, table_id: int, column_ids: Iterable[int]) -> None:
    """Write the bounds of columns that were float32 in all digits of a float64.

    As float32 the long text is the same number.
    """
    # DuckDB compares them as text of the new type: 0.1 as float64 is less than the float32 0.1,
    # which is in the files, so that a filter would lose rows.
    for table in ("ducklake_file_column_stats", "ducklake_table_column_stats"):
        sql = WIDEN_FLOATS.format(table=table)
        con.run(sql, table_id=table_id, ids=list(column_ids), number=NUMBER)


GEOMETRY, VARIANT = "geometry", "variant"

EDGES = [(f"{axis}min", f"{axis}max") for axis in "xyzm"]
"""The names of a box's edges, in DuckLake's order."""

Box = Mapping[str, float | None]


def box_text(boxes: Iterable[tuple[Box, Collection[str]]]) -> str:
    """DuckLake's JSON of the box around geometries, and of their types.

    It has six decimals, as DuckLake's own.

    Args:
        boxes: of groups of geometries, with the types of each group.

    Raises:
        ValueError: an edge is no finite number.
    """
    boxes = list(boxes)
    edges: dict[str, str] = {}
    for names in EDGES:
        for name, outermost, step in zip(names, (min, max), (-EDGE_STEP, EDGE_STEP), strict=True):
            values = [edge for box, _ in boxes if (edge := box[name]) is not None]
            edges[name] = _edge(outermost(values), outermost, step) if values else "null"
    bbox = ", ".join(f'"{name}": {edge}' for name, edge in edges.items())
    distinct = sorted(set(chain.from_iterable(types for _, types in boxes)))
    types = ", ".join(f'"{name}"' for name in distinct)
    return f'{{"bbox": {{{bbox}}}, "types": [{types}]}}'


EDGE_STEP = Decimal("0.000001")


def _edge(value: float, outermost: Callable[..., Any], step: Decimal) -> str:
    if not math.isfinite(value):
        raise ValueError(value)
    text = f"{value:.6f}"
    # An edge that six decimals would move inwards is moved outwards: DuckLake loses rows there.
    return text if outermost(float(text), value) == float(text) else f"{Decimal(text) + step:f}"


def _enclosing_box(texts: Iterable[str | None]) -> str | None:
    """The box around boxes that `box_text` or DuckLake wrote; None: one is not known."""
    try:
        shapes = [json.loads(text or "") for text in texts]
        return box_text((shape["bbox"], shape["types"]) for shape in shapes)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


# DuckLake truncates bounds to so many bytes.
TEXT_BYTES = 256


def truncated(column_type: str, low: str, high: str) -> tuple[str | None, str | None]:
    """The texts of the smallest and the largest value of a column, as the catalog can hold them.

    Returns:
        None for a bound that cannot be written.
    """
    if column_type == "blob":
        upper = _upper_digits(high)
        return (low[: 2 * TEXT_BYTES], upper) if upper is not None else (None, None)
    if column_type in TEXTS:
        upper = _upper_text(high)
        if upper is None:
            return None, None
        lower = low.encode()[:TEXT_BYTES].decode(errors="ignore")
        # PostgreSQL's texts cannot contain a NUL.
        return (None if "\0" in lower else lower), (None if "\0" in upper else upper)
    return low, high


def _upper_text(text: str) -> str | None:
    data = text.encode()
    if len(data) <= TEXT_BYTES:
        return text
    head = data[:TEXT_BYTES]
    # The last byte is incremented, as DuckLake does; without a bound if it would leave ASCII.
    if head[-1] >= 0x7E:
        return None
    return (head[:-1] + bytes([head[-1] + 1])).decode()


def _upper_digits(digits: str) -> str | None:
    """The bound of a blob, which is written in hexadecimal digits."""
    if len(digits) <= 2 * TEXT_BYTES:
        return digits
    head, last = digits[: 2 * TEXT_BYTES - 2], digits[2 * TEXT_BYTES - 2 : 2 * TEXT_BYTES]
    return None if last == "FF" else f"{head}{int(last, 16) + 1:02X}"
