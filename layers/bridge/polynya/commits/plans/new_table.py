"""Tables that clients create, planned from a request or from a commit that creates."""

from collections.abc import Iterable, Mapping
from typing import TypeVar
from uuid import uuid4

from ...ducklake.column_tree import ColumnNode
from ...ducklake.paths import directory
from ...ducklake.rows.named_objects import Schema
from ...errors import BadRequest
from ...iceberg.commits.schemas import Schema as TableSchema
from ...iceberg.commits.schemas import docs, field_of
from ...iceberg.commits.updates import PartitionSpec, SortOrder
from ...translate.client_properties import SORT_ORDER
from ...translate.commits.properties import NO_PROPERTIES, tags, values
from ...translate.commits.schema.checks import check_not_reserved, check_schema
from ...translate.commits.schema.columns import check_ids, column_nodes, numbered
from ...translate.commits.schema.partitioning import partition_keys
from ...translate.commits.schema.sorting import order_tag, sort_keys
from .plan import NewTable

Fields = TypeVar("Fields", PartitionSpec, SortOrder)


def columns_of_request(
    schema: TableSchema, *, keep_ids: bool, is_1_1: bool = False
) -> tuple[ColumnNode, ...]:
    """The columns of a new table.

    Args:
        keep_ids: the ids were assigned by the answer to a staged creation.
        is_1_1: the catalog has version 1.1.

    Raises:
        BadRequest: DuckLake cannot have such columns.
    """
    check_schema(schema)
    if not schema.fields:
        raise BadRequest("a table in DuckLake needs at least one column")
    for field in schema.fields:
        check_not_reserved(field.name, is_1_1=is_1_1)
    columns = column_nodes([field_of(field) for field in schema.fields], docs(schema.fields))
    if keep_ids:
        check_ids(columns)
        return columns
    return numbered(columns)


def new_table(
    schema: Schema,
    name: str,
    columns: tuple[ColumnNode, ...],
    source_ids: Mapping[int, int],
    spec: PartitionSpec | None,
    order: SortOrder | None,
    properties: Mapping[str, str],
    table_uuid: str | None = None,
    own: Mapping[str, str] = NO_PROPERTIES,
    *,
    has_epochs: bool = False,
) -> NewTable:
    """The plan of a new table.

    Args:
        source_ids: the ids of columns, by the ids that the spec and the order use.
        own: properties that are ours, which a client may send back.
        has_epochs: DuckLake has partitions that count from 1970.

    Raises:
        BadRequest: DuckLake cannot have such a table.
    """
    table_uuid = table_uuid or str(uuid4())
    found = tags(properties, (), own)
    order = _renumbered(order, source_ids)
    keys = sort_keys(order, columns)
    if order is not None and keys is None:
        found[SORT_ORDER] = order_tag(order)
    return NewTable(
        schema_id=schema.schema_id,
        namespace=schema.namespace,
        table_uuid=table_uuid,
        table_name=name,
        path=directory(name, table_uuid),
        columns=columns,
        partition_keys=partition_keys(
            _renumbered(spec, source_ids), columns, has_epochs=has_epochs
        ),
        sort_keys=keys or (),
        tags=values(found),
    )


def greatest_id(columns: Iterable[ColumnNode]) -> int:
    """The greatest id of columns at any level."""
    below = (max(column.column_id, greatest_id(column.children)) for column in columns)
    return max(below, default=0)


def new_ids(schema: TableSchema, columns: tuple[ColumnNode, ...]) -> dict[int, int]:
    """The ids of top-level columns, by those that the client's schema has."""
    pairs = zip(schema.fields, columns, strict=True)
    return {field.id: column.column_id for field, column in pairs}


def _renumbered(fields: Fields | None, source_ids: Mapping[int, int]) -> Fields | None:
    if fields is None:
        return None
    renumbered = [
        field.model_copy(update={"source_id": source_ids.get(field.source_id, -1)})
        for field in fields.fields
    ]
    return fields.model_copy(update={"fields": renumbered})
