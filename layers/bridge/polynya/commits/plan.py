"""What a commit will change in one table, which may be a new one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

from ..ducklake.column_tree import ColumnNode
from ..ducklake.paths import directory
from ..ducklake.rows.objects import PartitionColumn, Schema
from ..ducklake.writes.commits import CommitRow
from ..ducklake.writes.files import NewDataFile, NewDeleteFile
from ..mapping.properties import SORT_ORDER
from ..rest.schemas import Schema as TableSchema
from ..rest.schemas import docs, field_of
from ..rest.updates import PartitionSpec, SortOrder
from ..runtime.errors import BadRequest
from ..runtime.namespaces import Namespace
from .deletes import NOTHING, RowDeletes
from .schema_change import SchemaChange
from .schema_columns import (
    check_ids,
    check_not_reserved,
    check_schema,
    column_ids,
    column_nodes,
    numbered,
)
from .table_layout import Keys, order_tag, partition_keys, sort_keys
from .table_updates import NO_PROPERTIES, tags, values


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that does not exist yet."""

    schema_id: int
    namespace: Namespace
    """All levels of the schema's name."""
    table_uuid: str
    table_name: str
    path: str
    """Relative to the directory of the schema."""
    columns: tuple[ColumnNode, ...]
    partition_keys: tuple[PartitionColumn, ...] = ()
    sort_keys: Keys = ()
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Alteration:
    """What changes in an existing table beside its rows and its tags."""

    schema: SchemaChange | None = None
    partition_keys: tuple[PartitionColumn, ...] | None = None
    """None: unchanged; empty: not partitioned any more."""
    sort_keys: Keys | None = None
    """None: unchanged; empty: not sorted any more."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return self.schema is None and self.partition_keys is None and self.sort_keys is None


UNALTERED = Alteration()


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The changes of one table, determined before the transaction that makes them."""

    table_uuid: str
    table: NewTable | int
    """A table that is created, or the id of one that exists."""
    columns: tuple[ColumnNode, ...]
    """The columns of the table after the commit."""
    commits: Sequence[CommitRow]
    location: str = ""
    """The directory of the table, with a slash at its end."""
    added: Sequence[NewDataFile] = ()
    partition_id: int | None = None
    """The partitioning that the values of the added files belong to; a new one has no id yet."""
    deletes: RowDeletes = NOTHING
    delete_files: Sequence[NewDeleteFile] = ()
    """Those for the large deletes of `deletes`, in order, once they are in S3."""
    ends_all: bool = False
    """All rows that the table has end first."""
    tags: Mapping[str, str | None] = field(default_factory=dict)
    """New values of tags; None: the tag ends."""
    alteration: Alteration = UNALTERED

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write: the table is as the commit wants it."""
        has_rows = self.added or self.ends_all or self.deletes != NOTHING
        is_altered = self.tags or not self.alteration.is_empty
        is_listed = any(row.client_snapshot_id is not None for row in self.commits)
        return isinstance(self.table, int) and not (has_rows or is_altered or is_listed)


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
    for column in schema.fields:
        check_not_reserved(column.name, is_1_1=is_1_1)
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
    changed_tags = tags(properties, (), own)
    order = _renumbered(order, source_ids)
    keys = sort_keys(order, columns)
    if order is not None and keys is None:
        changed_tags[SORT_ORDER] = order_tag(order)
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
        tags=values(changed_tags),
    )


def greatest_id(columns: Iterable[ColumnNode]) -> int:
    """The greatest id of columns at any level."""
    return max(column_ids(columns), default=0)


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
