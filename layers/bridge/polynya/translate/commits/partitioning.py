"""Iceberg's partition specs and sort orders as DuckLake's, as far as both mean the same."""

import re
from collections.abc import Iterable, Mapping, Sequence

from ...ducklake.column_tree import ColumnNode
from ...ducklake.rows.partitions import PartitionColumn
from ...errors import BadRequest
from ...iceberg.commits.updates import PartitionSpec, SortOrder
from ..columns.types import iceberg_type
from ..partitions import BUCKET_TYPES, CALENDAR_TYPES, FINEST, IDENTITY

BUCKET = re.compile(r"bucket\[([1-9][0-9]{0,8})\]")


def partition_keys(
    spec: PartitionSpec | None, columns: Sequence[ColumnNode]
) -> tuple[PartitionColumn, ...]:
    """The partition keys of a table with these columns.

    Iceberg counts months from 1970, DuckLake has a year and a month: a month is both keys.

    Raises:
        BadRequest: DuckLake has no such partitioning, or not for such a column.
    """
    by_id = {column.column_id: column for column in columns}
    found: list[tuple[int, str]] = []
    for field in spec.fields if spec else ():
        if field.source_id not in by_id:
            raise BadRequest(f"the partition field {field.name} is of no top-level column")
        column = by_id[field.source_id]
        transforms = _transforms(field.transform, column)
        if not transforms:
            raise BadRequest(
                f"DuckLake has no partitioning by {field.transform} of {column.column_name} "
                f"({column.column_type}) that Iceberg clients could use; these are supported: "
                "identity, bucket, year, month, day and hour"
            )
        found += [(column.column_id, transform) for transform in transforms]
    distinct = dict.fromkeys(found)  # month and day of one column share the year
    return tuple(PartitionColumn(index, *key) for index, key in enumerate(distinct))


def _transforms(transform: str, column: ColumnNode) -> list[str]:
    """DuckLake's transforms; an empty list if there are none."""
    if transform == "identity":
        is_certain = IDENTITY.fullmatch(iceberg_type(column.column_type) or "")
        return ["identity"] if is_certain and not column.children else []
    if match := BUCKET.fullmatch(transform):
        return [f"bucket({match[1]})"] if column.column_type in BUCKET_TYPES else []
    if transform in FINEST and column.column_type in CALENDAR_TYPES:
        if transform == "hour" and column.column_type == "date":
            return []
        return list(FINEST[: FINEST.index(transform) + 1])
    return []


DIRECTIONS = {"asc": "ASC", "desc": "DESC"}
NULL_ORDERS = {"nulls-first": "NULLS_FIRST", "nulls-last": "NULLS_LAST"}


def sort_keys(
    order: SortOrder | None, columns: Iterable[ColumnNode]
) -> tuple[tuple[str, str, str], ...]:
    """The sort keys of a table: expression, direction, order of NULLs.

    Raises:
        BadRequest: a field is of no top-level column, or has a transform.
    """
    names: Mapping[int, str] = {column.column_id: column.column_name for column in columns}
    keys = []
    for field in order.fields if order else ():
        if field.transform != "identity" or field.source_id not in names:
            raise BadRequest(
                f"DuckLake sorts by columns, not by {field.transform} of field {field.source_id}"
            )
        name = names[field.source_id].replace('"', '""')
        keys.append((f'"{name}"', DIRECTIONS[field.direction], NULL_ORDERS[field.null_order]))
    return tuple(keys)
