"""The partition values of added Parquet files, proven by their statistics.

Clients may truncate the bounds in their manifests, so only buckets are taken from the client.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...ducklake.column_tree import ColumnNode, leaves
from ...ducklake.rows.objects import PartitionColumn
from ...ducklake.writes.new_files import FileColumnStats
from ...ducklake.writes.stats import TEXT_BYTES
from ...iceberg.manifest import PartitionField
from ...iceberg.types import BUCKET, TRUNCATE, VOID, transformed
from ...mapping.partitions import EPOCHS, FINEST
from ...types.names import ducklake_type, equivalent, value

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

    Every transform but a bucket keeps the order of values: if it gives both bounds one value, it
    gives that to all values in between. So the client's values are needed for buckets alone.

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
        return ()  # the file is unpartitioned, which is always correct


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
    # NULL is a partition of its own, and where the count is unknown there may be NULL.
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
        return _units_since_1970(EPOCHS[key.transform], equivalent(column_type) or "", low, high)
    place = FINEST.index(key.transform)
    first, last = _parts(low), _parts(high)
    if first[: place + 1] != last[: place + 1]:
        raise NotCertain
    return first[place]


def _units_since_1970(part: str, type_name: str, low: str, high: str) -> str:
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
