"""Iceberg's partition specs and sort orders as DuckLake's PARTITIONED BY and SORTED BY.

What DuckLake cannot express becomes a tag: a sort order, or a spec whose partitioning has no keys.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from ...ducklake.column_tree import MAX_FIELD_ID, ColumnNode, leaves
from ...ducklake.rows.objects import PartitionColumn, SortKey
from ...iceberg.manifest import PartitionField
from ...iceberg.table_metadata import SortField
from ...iceberg.types import BUCKET, result_type
from ...mapping.partitions import (
    BUCKET_TYPES,
    CALENDAR_TYPES,
    EPOCHS,
    FINEST,
    FIRST_FIELD_ID,
    next_field_id,
    order_text,
)
from ...rest.updates import PartitionField as RequestedField
from ...rest.updates import PartitionSpec, SortOrder
from ...runtime.errors import BadRequest
from ...types.names import ducklake_type, equivalent, iceberg_type
from ...types.nested import STRUCT
from .table_plan import Keys

NO_TYPES: Mapping[int, frozenset[str]] = {}
NO_KEYS: Sequence[PartitionColumn] = ()
NO_FIELD_IDS: Mapping[tuple[int, str], int] = {}


def partition_keys(
    spec: PartitionSpec | None,
    columns: Sequence[ColumnNode],
    former_types: Mapping[int, frozenset[str]] = NO_TYPES,
    before: Sequence[PartitionColumn] = NO_KEYS,
    *,
    has_epochs: bool = False,
) -> tuple[PartitionColumn, ...] | None:
    """The partition keys of a table with these columns; None: DuckLake has no such partitioning.

    Iceberg counts months from 1970, as DuckLake's epoch_month does; where DuckLake has none, a
    month is two keys, a year and a month.

    Args:
        former_types: every type that a column ever had, by column_id: files of older types may not
            have partition values that Iceberg can read.
        before: the keys of the table so far; a field that they have keeps its key.
        has_epochs: DuckLake has epoch_year and its like.
    """
    by_id = {column.column_id: column for column in columns}
    keys: list[tuple[int, str]] = []
    for field in spec.fields if spec else ():
        if field.source_id not in by_id:
            return None
        column = by_id[field.source_id]
        types = former_types.get(column.column_id, frozenset()) | {column.column_type}
        transforms = _transforms(field.transform, column, types)
        if field.transform in FINEST:
            current = {key.transform for key in before if key.column_id == column.column_id}
            epochs = _epochs(field.transform, types)
            stays = transforms and current.issuperset(transforms)
            if epochs and (current.issuperset(epochs) or (has_epochs and not stays)):
                transforms = epochs
        if not transforms:
            return None
        keys += [(column.column_id, transform) for transform in transforms]
    distinct = dict.fromkeys(keys)  # month and day of one column share the year
    of_epochs = {column_id for column_id, transform in keys if transform in EPOCHS}
    if any(column_id in of_epochs and transform in FINEST for column_id, transform in keys):
        return None  # a column's fields of time are read from keys of one kind
    return tuple(PartitionColumn(index, *key) for index, key in enumerate(distinct))


def partition_fields(
    spec: PartitionSpec | None,
    columns: Sequence[ColumnNode],
    field_ids: Mapping[tuple[int, str], int] = NO_FIELD_IDS,
) -> tuple[PartitionField, ...]:
    """The fields of a client's spec as the table keeps them.

    Args:
        field_ids: those that the table has, by source and transform.

    Raises:
        BadRequest: Iceberg has no such spec of these columns.
    """
    types = _leaf_types(columns)
    ids = dict(field_ids)
    fields: list[PartitionField] = []
    for field in spec.fields if spec else ():
        key = (field.source_id, field.transform)
        _check_field(field, types, fields)
        if key not in ids:
            field_id = field.field_id or 0
            is_usable = FIRST_FIELD_ID <= field_id <= MAX_FIELD_ID
            is_free = is_usable and field_id not in ids.values()
            ids[key] = field_id if is_free else next_field_id(ids.values())
        fields.append(PartitionField(field.source_id, ids[key], field.name, field.transform, ""))
    return tuple(fields)


def _leaf_types(columns: Iterable[ColumnNode], path: str = "") -> dict[int, tuple[str, str]]:
    """The name and the type of each column that is no list, no map and in none, by its id."""
    types: dict[int, tuple[str, str]] = {}
    for column in columns:
        name = path + column.column_name
        if not column.children:
            types[column.column_id] = (name, column.column_type)
        elif column.column_type == STRUCT:
            types |= _leaf_types(column.children, f"{name}.")
    return types


def _check_field(
    field: RequestedField, types: Mapping[int, tuple[str, str]], before: Iterable[PartitionField]
) -> None:
    if field.source_id not in types:
        raise BadRequest(
            f"the partition field {field.name} is of no column that holds single values"
        )
    name, column_type = types[field.source_id]
    if result_type(field.transform, equivalent(column_type) or "") is None:
        raise BadRequest(
            f"a table cannot be partitioned by {field.transform[:50]} of {name} ({column_type}): "
            "Iceberg has no such transform of the type, or clients disagree on its values"
        )
    key = (field.source_id, field.transform)
    if any((other.source_id, other.transform) == key for other in before):
        raise BadRequest(f"two partition fields are {field.transform} of {name}")


def keep_former_order(
    keys: Sequence[PartitionColumn], before: Sequence[PartitionColumn]
) -> tuple[PartitionColumn, ...]:
    """The keys in DuckLake's order: first those that the table has already."""
    # Clients may have seen them in another order, and DuckDB compares buckets with the values of
    # files by the number of the key.
    new = [(key.column_id, key.transform) for key in keys]
    former = [(key.column_id, key.transform) for key in before]
    distinct = dict.fromkeys([*(key for key in former if key in new), *new])
    return tuple(PartitionColumn(index, *key) for index, key in enumerate(distinct))


def is_bucket(key: PartitionColumn) -> bool:
    """Whether the values of a partition key are buckets."""
    return key.transform.startswith("bucket")


def _epochs(transform: str, types: frozenset[str]) -> list[str]:
    """DuckLake's transform that counts from 1970; an empty list if Iceberg has none like it."""
    names = {equivalent(column_type) or "" for column_type in types}
    is_same = len(names) == 1 and transform in iceberg_type(*names).parts
    return [f"epoch_{transform}"] if is_same else []


def _transforms(transform: str, column: ColumnNode, types: frozenset[str]) -> list[str]:
    """DuckLake's transforms of the column, in catalogs of every version; an empty list if there
    are none."""
    if transform == "identity":
        names = {equivalent(column_type) or "" for column_type in types}
        is_certain = len(names) == 1 and iceberg_type(*names).has_identity
        return ["identity"] if is_certain and not column.children else []
    if match := BUCKET.fullmatch(transform):
        return [f"bucket({match[1]})"] if types <= BUCKET_TYPES else []
    if transform in FINEST and types <= CALENDAR_TYPES:
        # Iceberg has no hour of a date (specification, "Partition Transforms").
        if transform == "hour" and column.column_type == "date":
            return []
        return list(FINEST[: FINEST.index(transform) + 1])
    return []


DIRECTIONS = {"asc": "ASC", "desc": "DESC"}
NULL_ORDERS = {"nulls-first": "NULLS_FIRST", "nulls-last": "NULLS_LAST"}

TRANSFORMS = re.compile(r"identity|year|month|day|hour|void|(bucket|truncate)\[[1-9][0-9]{0,8}\]")


def sort_keys(order: SortOrder | None, columns: Sequence[ColumnNode]) -> Keys | None:
    """The sort keys of a table; None: DuckLake has no expression for the order.

    Raises:
        BadRequest: a field is of no column, or has a transform that Iceberg does not know.
    """
    _check(order, columns)
    names = {column.column_id: column.column_name for column in columns if not column.children}
    keys = []
    for field in order.fields if order else ():
        if field.transform != "identity" or field.source_id not in names:
            return None
        expression = quoted_name(names[field.source_id])
        keys.append((expression, DIRECTIONS[field.direction], NULL_ORDERS[field.null_order]))
    return tuple(keys)


def order_tag(order: SortOrder) -> str:
    """The tag that keeps an order for which there are no keys."""
    return order_text(
        SortField(field.source_id, field.direction, field.null_order, field.transform)
        for field in order.fields
    )


def _check(order: SortOrder | None, columns: Sequence[ColumnNode]) -> None:
    types = {leaf.column_id: leaf.column_type for leaf in leaves(columns)}
    for field in order.fields if order else ():
        column_type = ducklake_type(types.get(field.source_id, ""))
        is_known = field.source_id in types and not column_type.needs_version_3
        if not is_known or not TRANSFORMS.fullmatch(field.transform):
            raise BadRequest(
                f"the table cannot be sorted by {field.transform[:50]} of field {field.source_id}"
            )


def quoted_name(name: str) -> str:
    """The SQL expression of a column."""
    return '"' + name.replace('"', '""') + '"'


def renamed_keys(
    keys: Sequence[SortKey], before: Iterable[ColumnNode], after: Iterable[ColumnNode]
) -> Keys | None:
    """The sort keys of a table with renamed columns; None if they stay the same.

    Raises:
        BadRequest: a column of the order is dropped, or the order is an expression, which may
            contain the name.
    """
    old = {column.column_name: column.column_id for column in before}
    new = {column.column_id: column.column_name for column in after}
    if all(new.get(column_id) == name for name, column_id in old.items()):
        return None
    by_expression = {name.casefold(): column_id for name, column_id in old.items()}
    by_expression |= {quoted_name(name).casefold(): id_ for name, id_ in old.items()}
    renamed, is_changed = [], False
    for key in keys:
        column_id = by_expression.get(key.expression.casefold())
        if column_id is None or column_id not in new:
            raise BadRequest(
                f"the table is SORTED BY {key.expression}: change that first, in DuckDB with ALTER "
                "TABLE … RESET SORTED BY"
            )
        name = new[column_id]
        is_changed |= old.get(name) != column_id
        expression = quoted_name(name) if old.get(name) != column_id else key.expression
        renamed.append((expression, key.sort_direction, key.null_order))
    return tuple(renamed) if is_changed else None
