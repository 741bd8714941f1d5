"""The parts of a new table's plan that follow from a request: columns, layout, tags."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar
from uuid import uuid4

from ..ducklake.column_tree import ColumnNode
from ..ducklake.paths import directory
from ..ducklake.rows.objects import Schema
from ..iceberg.types import Field
from ..mapping.properties import FORMAT_VERSION, SORT_ORDER
from ..rest.schemas import Schema as TableSchema
from ..rest.schemas import docs, field_of
from ..rest.updates import PartitionSpec, SortOrder
from ..runtime.errors import BadRequest
from .plan import NewTable
from .schema_columns import (
    check_ids,
    check_not_reserved,
    check_schema,
    check_version,
    column_nodes,
    numbered,
)
from .table_layout import order_tag, partition_fields, partition_keys, sort_keys
from .table_updates import NO_PROPERTIES, tags, values

Fields = TypeVar("Fields", PartitionSpec, SortOrder)


def columns_of_request(
    schema: TableSchema, format_version: int = 2, *, keep_ids: bool, is_1_1: bool = False
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
    for column in schema.fields:
        check_not_reserved(column.name, is_1_1=is_1_1)
    columns = column_nodes([field_of(field) for field in schema.fields], docs(schema.fields))
    check_version(columns, format_version, is_1_1=is_1_1)
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
    format_version: int = 2,
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
    changed_tags = tags(properties, (), own)
    spec, order = _renumbered(spec, source_ids), _renumbered(order, source_ids)
    keys = sort_keys(order, columns)
    if order is not None and keys is None:
        changed_tags[SORT_ORDER] = order_tag(order)
    if format_version > 2:
        changed_tags[FORMAT_VERSION] = str(format_version)
    return NewTable(
        schema_id=schema.schema_id,
        namespace=schema.namespace,
        table_uuid=table_uuid,
        table_name=name,
        path=directory(name, table_uuid),
        columns=columns,
        partition_keys=partition_keys(spec, columns, has_epochs=has_epochs) or (),
        partition_fields=partition_fields(spec, columns),
        sort_keys=keys or (),
        tags=values(changed_tags),
    )


def new_ids(schema: TableSchema, columns: tuple[ColumnNode, ...]) -> dict[int, int]:
    """The ids of columns at all levels, by those that the client's schema has."""
    return dict(_new_ids(map(field_of, schema.fields), columns))


def _new_ids(fields: Iterable[Field], columns: Iterable[ColumnNode]) -> Iterator[tuple[int, int]]:
    for field, column in zip(fields, columns, strict=True):
        yield field.field_id, column.column_id
        yield from _new_ids(field.type.members, column.children)


def _renumbered(fields: Fields | None, source_ids: Mapping[int, int]) -> Fields | None:
    if fields is None:
        return None
    renumbered = [
        field.model_copy(update={"source_id": source_ids.get(field.source_id, -1)})
        for field in fields.fields
    ]
    return fields.model_copy(update={"fields": renumbered})
