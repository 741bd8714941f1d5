"""Partition values of added files, from their footers: a client's own word is not needed.

A file whose values are not certain gets none: DuckLake knows such files from before SET PARTITIONED
BY, and Iceberg clients see them in the unpartitioned spec.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...ducklake.column_tree import ColumnNode
from ...ducklake.rows.partitions import PartitionColumn
from ...ducklake.writes.files import FileColumnStats
from ...ducklake.writes.text_bounds import TEXT_BYTES
from ...iceberg.transforms import transformed
from ..columns.types import iceberg_type
from ..partitions import EPOCHS, FINEST
from ..values import value

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
    by_column = {one.column_id: one for one in stats}
    try:
        return tuple(
            _value(key, types[key.column_id], by_column.get(key.column_id), buckets) for key in keys
        )
    except (NotCertain, KeyError):
        return ()


def _value(
    key: PartitionColumn,
    column_type: str,
    stats: FileColumnStats | None,
    buckets: Mapping[tuple[int, str], Any],
) -> str | None:
    if stats is None or stats.value_count == 0:
        return None  # every row has NULL
    if stats.null_count != 0:
        raise NotCertain
    low, high = stats.min_value, stats.max_value
    if key.transform.startswith("bucket"):
        bucket = buckets[key.column_id, key.transform]
        _check_bucket(key, column_type, bucket, (low, high))
        return str(bucket)
    if low is None or high is None:
        raise NotCertain
    if key.transform == "identity":
        if low != high or len(low) >= TEXT_BYTES or stats.contains_nan:
            raise NotCertain
        return {"0": "false", "1": "true"}[low] if column_type == "boolean" else low
    if key.transform in EPOCHS:
        return _since_1970(EPOCHS[key.transform], iceberg_type(column_type) or "", low, high)
    place = FINEST.index(key.transform)
    first, last = _parts(low), _parts(high)
    if first[: place + 1] != last[: place + 1]:
        raise NotCertain
    return first[place]


def _since_1970(part: str, type_name: str, low: str, high: str) -> str:
    """The number of years, months, days or hours since 1970, which both bounds must have.

    All values between them have it too, also if the bounds are none of the values.
    """
    try:
        first, last = (transformed(part, type_name, value(type_name, one)) for one in (low, high))
    except ValueError:
        raise NotCertain from None
    if first != last:
        raise NotCertain
    return str(first)


def _check_bucket(
    key: PartitionColumn, column_type: str, bucket: int, bounds: Iterable[str | None]
) -> None:
    """Check a client's bucket with the values that are known: the smallest and the largest."""
    count = int(key.transform.removeprefix("bucket(").removesuffix(")"))
    if not 0 <= bucket < count:
        raise NotCertain
    type_name = iceberg_type(column_type) or ""
    for text in bounds:
        if text is None or len(text.encode()) >= TEXT_BYTES:
            continue  # of a long text the bound is no value
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
