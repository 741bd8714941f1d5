"""The statistics, the partition values and the paths of added Parquet files, for DuckLake's rows.

Statistics come from the footers: a bound that is too wide makes DuckDB's max() wrong, and clients
may cut the bounds of their manifests. So do partition values, but for buckets.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import category

from ...ducklake.column_tree import ColumnNode, leaves
from ...ducklake.rows.objects import PartitionColumn
from ...ducklake.writes.files import FileColumnStats
from ...ducklake.writes.stats import GEOMETRY, TEXT_BYTES, box_text, truncated
from ...iceberg.manifest import PartitionField
from ...iceberg.parquet.footer import bounds_exclude_nan
from ...iceberg.parquet.metadata import Leaf, ParquetMetadata, RowGroup
from ...iceberg.types import BUCKET, TRUNCATE, VOID, transformed
from ...mapping.partitions import EPOCHS, FINEST
from ...runtime.errors import BadRequest
from ...types.names import FLOATS, comparable, ducklake_type, equivalent, value
from .file_columns import (
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
    with_default: frozenset[int]
    """Ids of columns with an initial default, which are not NULL in files without them."""
    _columns_by_leaves: dict[tuple[Leaf, ...], FileColumns] = field(default_factory=dict)
    """Most files of a commit have the same columns."""

    def of(self, location: str, file: ParquetMetadata, without_nan: frozenset[int]) -> Stats:
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
                location, file.leaves, self.columns, self.last_column_id, self.with_default
            )
        check_variants(location, file)
        excludes_nan = bounds_exclude_nan(file.writer)
        stats = tuple(
            _stats(location, target, groups, without_nan, excludes_nan=excludes_nan)
            for target, groups in zip(columns.targets, file.row_groups, strict=True)
            if target is not None
        )
        check_not_null(location, columns.not_null, stats)
        return stats + tuple(_of_nulls(column, file.num_rows) for column in columns.missing)


def _of_nulls(column: ColumnNode, rows: int) -> FileColumnStats:
    """The statistics of a column that a file lacks."""
    # Without them DuckLake reads it as NULL too, but after a rewrite of other files it would
    # believe that the column has no NULL in the whole table.
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
    """The box of geometries as DuckLake writes it; None if the file does not say all of it."""
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
    """Whether a bound of texts or bytes is a value: not if it was truncated here.

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
    """Refuse numbers that the column cannot hold; clients know the wider type that we publish."""
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


PARTS = re.compile(
    r"(?P<year>\d{4,})-(?P<month>\d\d)-(?P<day>\d\d)(?: (?P<hour>\d\d):\d\d:\d\d.*)?"
)


class NotCertain(ValueError):
    """The statistics do not say that all rows of the file have one partition value."""


def partition_values(
    keys: Sequence[PartitionColumn],
    columns: Sequence[ColumnNode],
    stats: Sequence[FileColumnStats],
    buckets: Mapping[tuple[int, str], Any],
) -> tuple[str | None, ...]:
    """One text for each partition key; empty if not all are certain.

    Args:
        buckets: the client's values, by column_id and DuckLake's transform. Only the rows
            themselves could prove them; the smallest and the largest value are checked.
    """
    types = {column.column_id: column.column_type for column in columns}
    by_column = {s.column_id: s for s in stats}
    try:
        return tuple(
            _value(key, types[key.column_id], by_column.get(key.column_id), buckets) for key in keys
        )
    except (NotCertain, KeyError):
        # DuckLake knows files without values from before SET PARTITIONED BY, and Iceberg clients
        # see them in the unpartitioned spec.
        return ()


def client_values(
    fields: Sequence[PartitionField],
    columns: Sequence[ColumnNode],
    stats: Sequence[FileColumnStats],
    partition: Iterable[tuple[int, str, Any]],
) -> tuple[str | None, ...]:
    """As `partition_values`, for the fields of a spec that DuckLake does not have.

    Every transform but a bucket keeps the order of values: what both bounds become, all values in
    between become. So the client's values are needed for buckets alone.

    Args:
        partition: the client's values, by source and transform.
    """
    types = {leaf.column_id: leaf.column_type for leaf in leaves(columns)}
    by_column = {s.column_id: s for s in stats}
    of_client = {(source_id, transform): value for source_id, transform, value in partition}
    try:
        return tuple(
            _client_value(
                field,
                types[field.source_id],
                by_column.get(field.source_id),
                of_client.get((field.source_id, field.transform)),
            )
            for field in fields
        )
    except (NotCertain, KeyError):
        return ()  # the file is unpartitioned, which is always right


def _client_value(
    field: PartitionField, column_type: str, stats: FileColumnStats | None, bucket: Any
) -> str | None:
    # As in `_value`: every row has NULL; and below, NULL is a partition of its own.
    if field.transform == VOID or stats is None or stats.value_count == 0:
        return None
    low, high = stats.min_value, stats.max_value
    if stats.null_count != 0 or stats.contains_nan:
        raise NotCertain
    if match := BUCKET.fullmatch(field.transform):
        if not isinstance(bucket, int) or isinstance(bucket, bool):
            raise NotCertain
        _check_bucket(int(match[1]), column_type, bucket, (low, high))
        return str(bucket)
    if low is None or high is None:
        raise NotCertain
    type_name = equivalent(column_type) or ""
    try:
        first, last = (
            transformed(field.transform, type_name, value(type_name, bound))
            for bound in (low, high)
        )
    except ValueError:
        raise NotCertain from None
    if first != last:
        raise NotCertain
    if field.transform == "identity":
        if low != high or len(low) >= TEXT_BYTES:
            raise NotCertain
        return low
    is_truncated = TRUNCATE.fullmatch(field.transform) is not None
    return ducklake_type(column_type).text(first) if is_truncated else str(first)


def _value(
    key: PartitionColumn,
    column_type: str,
    stats: FileColumnStats | None,
    buckets: Mapping[tuple[int, str], Any],
) -> str | None:
    if stats is None or stats.value_count == 0:
        return None  # every row has NULL
    # NULL is a partition of its own, and an unknown count may be some.
    if stats.null_count != 0:
        raise NotCertain
    low, high = stats.min_value, stats.max_value
    if key.transform.startswith("bucket"):
        bucket = buckets[key.column_id, key.transform]
        count = int(key.transform.removeprefix("bucket(").removesuffix(")"))
        _check_bucket(count, column_type, bucket, (low, high))
        return str(bucket)
    if low is None or high is None:
        raise NotCertain
    if key.transform == "identity":
        # A bound of that length may be truncated, and NaN is in no bound.
        if low != high or len(low) >= TEXT_BYTES or stats.contains_nan:
            raise NotCertain
        # DuckLake writes 0 and 1 in statistics, and words in partition values.
        return {"0": "false", "1": "true"}[low] if column_type == "boolean" else low
    if key.transform in EPOCHS:
        return _since_1970(EPOCHS[key.transform], equivalent(column_type) or "", low, high)
    place = FINEST.index(key.transform)
    first, last = _parts(low), _parts(high)
    if first[: place + 1] != last[: place + 1]:
        raise NotCertain
    return first[place]


def _since_1970(part: str, type_name: str, low: str, high: str) -> str:
    """The number of years, months, days or hours since 1970, which both bounds must have."""
    try:
        first, last = (
            transformed(part, type_name, value(type_name, bound)) for bound in (low, high)
        )
    except ValueError:
        raise NotCertain from None
    # All values between the bounds have the same number too, even if no row has that of a bound.
    if first != last:
        raise NotCertain
    return str(first)


def _check_bucket(count: int, column_type: str, bucket: int, bounds: Iterable[str | None]) -> None:
    """Check a client's bucket with the values that are known: the smallest and the largest."""
    if not 0 <= bucket < count:
        raise NotCertain
    type_name = equivalent(column_type) or ""
    for text in bounds:
        if text is None or len(text.encode()) >= TEXT_BYTES:
            continue  # the bound of a long text is truncated
        try:
            is_right = transformed(f"bucket[{count}]", type_name, value(type_name, text)) == bucket
        except ValueError:
            raise NotCertain from None
        if not is_right:
            raise NotCertain


def _parts(text: str) -> list[str]:
    """Year, month, day and hour as DuckLake writes them, without leading zeros."""
    match = PARTS.fullmatch(text)
    if match is None:
        raise NotCertain
    return [str(int(match[part] or 0)) for part in FINEST]


SCHEME = "s3://"
SCHEMES = ("s3a://", "s3n://")
"""Hadoop's names for s3://."""

BREAKING = frozenset("?#&<\\")
BREAKING_CATEGORIES = frozenset({"Cc", "Cn", "Cs"})
"""Characters with which a client cannot read a file, or DuckDB cannot remove it. DuckDB writes
names as they are into the XML that it sends to S3, which is no XML then, so that
ducklake_cleanup_old_files fails for the whole lake; Arrow drops tabs and ends of lines."""


def normalised(location: str) -> str:
    """The location with the scheme `s3`."""
    for scheme in SCHEMES:
        if location.startswith(scheme):
            return SCHEME + location.removeprefix(scheme)
    return location


def spellings(location: str) -> list[str]:
    """Every path by which DuckLake may know the file: absolute, or relative to some directory."""
    key = normalised(location).removeprefix(SCHEME)
    parts = key.split("/")
    relative_paths = ("/".join(parts[start:]) for start in range(1, len(parts)))
    return [*(scheme + key for scheme in (SCHEME, *SCHEMES)), *relative_paths]


def relative(location: str, directory: str, what: str, hint: str = "") -> str:
    """The part of a location after a directory.

    Args:
        directory: with a slash at its end.
        what: the kind of file, for the message.
        hint: the end of the message.

    Raises:
        BadRequest: the location is not below the directory.
    """
    directory = normalised(directory)
    path = normalised(location)
    relative_path = path.removeprefix(directory)
    # S3 has no `..`, but clients that write to other places normalise it.
    is_below = path.startswith(directory) and relative_path and "\0" not in relative_path
    # Characters that can be printed are of none of the categories; most paths have no other.
    is_plain = relative_path.isprintable() and BREAKING.isdisjoint(relative_path)
    breaking = None if is_plain else next(filter(_is_breaking, relative_path), None)
    if is_below and breaking is not None:
        raise BadRequest(
            f"the name of {what} has {breaking!r} in it, with which clients cannot read it or "
            "DuckDB cannot remove it"
        )
    if not is_below or any(part in {"", ".", ".."} for part in relative_path.split("/")):
        raise BadRequest(
            f"{what} is not below {directory}, where the table's properties write.data.path and "
            f"write.metadata.path say that clients write{hint}"
        )
    return relative_path


def _is_breaking(character: str) -> bool:
    return character in BREAKING or category(character) in BREAKING_CATEGORIES
