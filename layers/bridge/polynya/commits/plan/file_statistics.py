"""The statistics of added Parquet files, for DuckLake's rows.

They come from the footers: a bound that is too wide makes DuckDB's max() wrong, and clients may cut
the bounds of their manifests.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ducklake.column_tree import ColumnNode
from ...ducklake.writes.new_files import FileColumnStats
from ...ducklake.writes.stats import GEOMETRY, box_text, truncated
from ...iceberg.parquet.footer import bounds_exclude_nan
from ...iceberg.parquet.metadata import Leaf, ParquetMetadata, RowGroup
from ...types.names import FLOATS, comparable, ducklake_type
from .parquet_columns import (
    ColumnMatch,
    FileColumns,
    check_json,
    check_not_null,
    check_variants,
    file_columns,
    refused,
)

Stats = tuple[FileColumnStats, ...]


@dataclass(frozen=True, slots=True)
class FileStatistics:
    """Makes the statistics of files of one table."""

    columns: Sequence[ColumnNode]
    """All of the table."""
    last_column_id: int
    """The greatest id that a column of the table ever had."""
    default_column_ids: frozenset[int]
    """Ids of columns with an initial default, which are not NULL in files without them."""
    may_lack: bool = False
    """Whether files may lack these columns."""
    _columns_by_leaves: dict[tuple[Leaf, ...], FileColumns] = field(default_factory=dict)
    """Most files of a commit have the same columns."""

    def file_stats(
        self, location: str, file: ParquetMetadata, without_nan: frozenset[int]
    ) -> Stats:
        """The statistics of the columns of a file, and of those that it lacks.

        Args:
            location: of the file, for messages.
            without_nan: the columns of floats in which the client has counted no NaN.

        Raises:
            BadRequest: DuckLake would not read the file as the client means it.
        """
        columns = self._columns_by_leaves.get(file.leaves)
        if columns is None:
            columns = self._columns_by_leaves[file.leaves] = file_columns(
                location,
                file.leaves,
                self.columns,
                self.last_column_id,
                self.default_column_ids,
                may_lack=self.may_lack,
            )
        check_variants(location, file)
        excludes_nan = bounds_exclude_nan(file.writer)
        stats = tuple(
            _stats(location, target, groups, without_nan, excludes_nan=excludes_nan)
            for target, groups in zip(columns.targets, file.row_groups, strict=True)
            if target is not None
        )
        check_not_null(location, columns.not_null, stats)
        return stats + tuple(_null_stats(column, file.num_rows) for column in columns.missing)


def _null_stats(column: ColumnNode, rows: int) -> FileColumnStats:
    """The statistics of a column that a file lacks."""
    # Without these statistics DuckLake reads the column as NULL too, but after a rewrite of other
    # files it would take it to have no NULL in the whole table.
    is_float = column.column_type in FLOATS
    return FileColumnStats(column.column_id, 0, 0, rows, None, None, False if is_float else None)


def _stats(
    location: str,
    target: ColumnMatch,
    groups: Sequence[RowGroup],
    without_nan: frozenset[int],
    *,
    excludes_nan: bool,
) -> FileColumnStats:
    """Make the statistics of a column in a file.

    Args:
        excludes_nan: the program that wrote the file writes bounds only where there is no NaN.
    """
    column = target.column
    size = sum([group.compressed_size for group in groups])
    group = groups[0] if len(groups) == 1 else _merged(column, target, groups)
    nulls = group.null_count if group.num_values else 0
    if target.has_no_bounds:
        values = None if nulls is None else group.num_values - nulls
        extra = _box(groups) if column.column_type == GEOMETRY else None
        row = FileColumnStats(column.column_id, size, values, nulls, None, None, None)
        return row._replace(extra_stats=extra)
    low, high = _bounds(target, group)
    has_nan = column.column_id not in without_nan and not (excludes_nan and low is not None)
    exact = _exactness(target, group, low, high, has_nan=has_nan)
    if target.is_narrow:
        _check_range(location, column, group, low, high)
    if target.is_json:
        check_json(location, column, (low, high))
    return FileColumnStats(
        column.column_id,
        size,
        None if nulls is None else group.num_values - nulls,
        nulls,
        low,
        high,
        has_nan if target.is_float else None,
        *exact,
    )


def _box(groups: Sequence[RowGroup]) -> str | None:
    """The box of geometries as DuckLake writes it; None if the file has only parts of it."""
    with_values = [group for group in groups if group.num_values != group.null_count]
    if any(group.bbox is None or not group.geometry_types for group in with_values):
        return None
    boxes = [(group.bbox or {}, group.geometry_types or ()) for group in with_values]
    try:
        return box_text(boxes)
    except (ValueError, LookupError):
        return None


def _exactness(
    target: ColumnMatch, group: RowGroup, low: str | None, high: str | None, *, has_nan: bool
) -> tuple[bool | None, bool | None]:
    """Whether the bounds are values of the column; None: not known, or there is no bound."""
    if target.is_truncated:
        return (
            _is_value(target, low, group.min_value, is_exact=group.min_is_exact),
            _is_value(target, high, group.max_value, is_exact=group.max_is_exact),
        )
    # NaN is above every number, and in no bound.
    has_greatest = high is not None and not (target.is_float and has_nan)
    return True if low is not None else None, True if has_greatest else None


def _is_value(
    target: ColumnMatch, bound: str | None, text: str | None, *, is_exact: bool | None
) -> bool | None:
    """Whether a bound of texts or bytes is a value of the column: not if it was truncated here.

    Args:
        text: of the file.
        is_exact: what the file says of it.
    """
    if bound is None or text is None:
        return None
    return is_exact if (target.text(text) if target.text else text) == bound else False


def _bounds(target: ColumnMatch, group: RowGroup) -> tuple[str | None, str | None]:
    """The smallest and the largest value as DuckLake writes them; None if they are not certain."""
    low, high = group.min_value, group.max_value
    if low is None or high is None or group.num_values == group.null_count:
        return None, None
    if target.text is not None:
        low, high = target.text(low), target.text(high)
        if low is None or high is None:
            return None, None
    return truncated(target.column.column_type, low, high) if target.is_truncated else (low, high)


def _merged(column: ColumnNode, target: ColumnMatch, groups: Iterable[RowGroup]) -> RowGroup:
    """Several row groups as one, with DuckDB's texts of its bounds."""
    groups = [group for group in groups if group.num_values]
    nulls = [group.null_count for group in groups]
    with_values = [group for group in groups if group.num_values != group.null_count]
    low = _extreme(min, column, target, [group.min_value for group in with_values])
    high = _extreme(max, column, target, [group.max_value for group in with_values])
    return RowGroup(
        0,
        sum(group.num_values for group in groups),
        None if None in nulls else sum(count or 0 for count in nulls),
        low,
        high,
        any(group.min_is_exact for group in with_values if group.min_value == low) or None,
        any(group.max_is_exact for group in with_values if group.max_value == high) or None,
    )


def _extreme(
    choose: Callable[..., str], column: ColumnNode, target: ColumnMatch, texts: Sequence[str | None]
) -> str | None:
    """The smallest or the largest of DuckDB's texts; None if it is not certain."""

    def order(text: str) -> Any:
        return comparable(column.column_type, (target.text(text) if target.text else text) or "")

    bounds = [text for text in texts if text is not None]
    if not bounds or len(bounds) < len(texts):
        return None
    try:
        return choose(bounds, key=order)
    except ValueError:
        return None


def _check_range(
    location: str, column: ColumnNode, group: RowGroup, low: str | None, high: str | None
) -> None:
    """Refuse numbers that the column cannot hold: clients see a wider type."""
    type_ = ducklake_type(column.column_type)
    least = 0 if type_.is_unsigned else -type_.limit
    bounds = [text for text in (low, high) if text is not None]
    if not bounds and group.num_values != group.null_count:
        bounds = ["a value without known bounds"]
    for text in bounds:
        if not text.lstrip("-").isdecimal() or not least <= int(text) < type_.limit:
            raise refused(
                location,
                f"{column.column_name} is {column.column_type} in DuckLake, and {text} is outside "
                "of its range",
            )
