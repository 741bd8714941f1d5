"""Plans of tables that do not exist yet: their columns, layout and tags follow from a request."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from uuid import uuid4

from ...access.authorized_lake import AuthorizedLake
from ...ducklake import paths
from ...ducklake.column_tree import ColumnNode, greatest_id
from ...ducklake.paths import directory
from ...ducklake.rows.objects import IDENTIFIER_FIELDS, Schema
from ...ducklake.writes.new_files import NewDataFile
from ...ducklake.writes.new_snapshot import uuid_was_used
from ...iceberg.types import Field
from ...mapping.properties import (
    DEFAULTS_OF_WRITERS,
    FORMAT_VERSION,
    NOTE_OF_VERSION_1,
    SORT_ORDER,
    VERSION_NOTE,
    data_path,
    staging_path,
    write_properties,
)
from ...rest.requests import CreateTableRequest
from ...rest.schemas import Schema as TableSchema
from ...rest.schemas import docs, field_of
from ...rest.updates import PartitionSpec, SortOrder
from ...runtime.errors import BadRequest
from ...runtime.settings import EqualityDeleteLimits
from ...storage.object_store import ObjectStore
from ..client_locations import RequestedLocation
from ..request.client_files import ClientDeletes, ClientFiles
from ..request.table_commit import TableCommit
from ..request.tags import (
    NO_PROPERTIES,
    changed_references,
    changed_statistics,
    requested_version,
    tags,
    values,
)
from .added_files import AppendedFiles
from .changed_files import net_change
from .columns import (
    check_ids,
    check_not_reserved,
    check_schema,
    check_version,
    column_nodes,
    identifiers_text,
    numbered,
)
from .existing_table import check_parents, commit_rows
from .partition_and_sort_keys import order_tag, partition_fields, partition_keys, sort_keys
from .row_deletes import first_deletes
from .table_plan import NOTHING, NewTable, RowDeletes, TablePlan

Item = TypeVar("Item")
Fields = TypeVar("Fields", PartitionSpec, SortOrder)


@dataclass(frozen=True, slots=True)
class Creator:
    """Plans the creation of tables in one schema."""

    lake: AuthorizedLake
    schema: Schema
    objects: ObjectStore
    staging_location: str
    """The setting; empty: below the lake's data path."""
    virtual_location: str
    """Where all virtual files are."""
    equality_deletes: EqualityDeleteLimits
    client: str = ""
    """The client as it names itself."""

    def plan_request(self, request: CreateTableRequest) -> TablePlan:
        """The plan of an empty table.

        Raises:
            BadRequest: DuckLake cannot have such a table.
        """
        requested = requested_version(request.properties or {})
        is_1_1 = self.lake.lake.is_1_1
        # The client's ids are its own (Spark counts from 0): the catalog assigns those of a created
        # table.
        columns = columns_of_request(request.schema_, requested, keep_ids=False, is_1_1=is_1_1)
        new = self.new_table(
            request.name,
            request.schema_,
            columns,
            request.partition_spec,
            request.write_order,
            request.properties or {},
            format_version=requested,
        )
        return self.plan(self._where_requested(new, request), TableCommit())

    def plan_commit(self, name: str, commit: TableCommit) -> TablePlan:
        """The plan of a table that a commit creates, with its first rows.

        Raises:
            BadRequest: DuckLake cannot have such a table.
            CommitFailed: its first snapshot has a parent.
        """
        if commit.uuid is None:
            raise BadRequest("a commit that creates a table must assign its uuid")
        # A commit that creates a table is recognised by the uuid, also among tables that were
        # dropped.
        if uuid_was_used(commit.uuid).run(self.lake.con):
            raise BadRequest("another table has or has had this uuid; stage the creation again")
        location = f"{self.virtual_location}/{commit.uuid}"
        if commit.location is not None and commit.location.rstrip("/") != location:
            raise BadRequest("DuckLake chooses the location of a table: do not set it")
        requested = requested_version(commit.properties, commit.format_version)
        if requested in {None, 2} and VERSION_NOTE in commit.properties:
            requested = 1  # a client sends what the answer to the staged creation had
        schema = _chosen(commit.schemas, commit.current_schema, "schema")
        is_1_1 = self.lake.lake.is_1_1
        columns = columns_of_request(schema, requested, keep_ids=True, is_1_1=is_1_1)
        new = self.new_table(
            name,
            schema,
            columns,
            _chosen(commit.specs, commit.default_spec, "partition spec") if commit.specs else None,
            _chosen(commit.sort_orders, commit.default_sort_order, "sort order")
            if commit.sort_orders
            else None,
            commit.properties,
            commit.uuid,
            own=self._own_properties(name, commit.uuid),
            format_version=requested,
        )
        if commit.snapshots and commit.main != commit.snapshots[-1].snapshot_id:
            raise BadRequest(
                "the commit that creates a table must set main to the snapshot that it adds: "
                "commit to branches afterwards"
            )
        check_parents(commit.snapshots, None, commit)
        staging = staging_path(self.staging_location, self.lake.lake.data_path, commit.uuid)
        statistics = changed_statistics(commit, (), f"{staging}/")
        # Of several snapshots of a commit the last is listed, with the changes of all.
        listed = {snapshot.snapshot_id for snapshot in commit.snapshots[-1:]}
        named = changed_references(commit, (), listed)
        new = replace(new, tags={**new.tags, **values(statistics | named)})
        return self.plan(new, commit, *self._rows(new, commit, requested or 2))

    def new_table(
        self,
        name: str,
        schema: TableSchema,
        columns: tuple[ColumnNode, ...],
        spec: PartitionSpec | None,
        order: SortOrder | None,
        properties: Mapping[str, str],
        table_uuid: str | None = None,
        *,
        own: Mapping[str, str] = NO_PROPERTIES,
        format_version: int | None,
    ) -> NewTable:
        """The plan of a new table.

        Args:
            schema: as the client has it; the spec and the order use its ids.
            columns: those of the schema, with their own ids.
            own: Polynya's properties, which a client may send back.
            format_version: as `requested_version` gives it.

        Raises:
            BadRequest: DuckLake cannot have such a table.
        """
        table_uuid, source_ids = table_uuid or str(uuid4()), new_ids(schema, columns)
        changed_tags = tags(properties, (), own)
        spec, order = _renumbered(spec, source_ids), _renumbered(order, source_ids)
        keys = sort_keys(order, columns)
        if order is not None and keys is None:
            changed_tags[SORT_ORDER] = order_tag(order)
        changed_tags[IDENTIFIER_FIELDS] = identifiers_text(
            source_ids[id_] for id_ in schema.identifier_field_ids
        )
        if format_version in {1, 3}:
            changed_tags[FORMAT_VERSION] = str(format_version)
        has_epochs = self.lake.lake.is_1_1
        return NewTable(
            schema_id=self.schema.schema_id,
            namespace=self.schema.namespace,
            table_uuid=table_uuid,
            table_name=name,
            path=directory(name, table_uuid),
            columns=columns,
            partition_keys=partition_keys(spec, columns, has_epochs=has_epochs) or (),
            partition_fields=partition_fields(spec, columns),
            sort_keys=keys or (),
            tags=values(changed_tags),
        )

    def _where_requested(self, new: NewTable, request: CreateTableRequest) -> NewTable:
        """The table in the directory that the client asks for, if nothing else can be there.

        Otherwise where DuckLake puts it: clients follow the answer. A staged creation is forgotten,
        and its commit need not repeat the location.
        """
        if request.location is None or request.stage_create:
            return new
        places = (self.staging_location, self.virtual_location)
        requested = RequestedLocation(self.lake, request.location, *places)
        if requested.path is None or not requested.is_free(self.schema):
            return new
        path, is_relative = paths.path_in_schema(requested.directory, self.lake.lake, self.schema)
        return replace(new, path=path, path_is_relative=is_relative)

    def _own_properties(self, name: str, uuid: str) -> dict[str, str]:
        """The properties that the answer to the staged creation had."""
        location = self.location(paths.directory(name, uuid))
        of_writers = write_properties(
            location, uuid, self.staging_location, self.lake.lake.data_path
        )
        return {**of_writers, **DEFAULTS_OF_WRITERS, **NOTE_OF_VERSION_1}

    def location(self, path: str, *, is_relative: bool = True) -> str:
        """The directory of a new table."""
        return paths.location(
            (self.lake.lake.data_path, False),
            (self.schema.path, self.schema.path_is_relative),
            (path, is_relative),
        )

    def _rows(
        self, new: NewTable, commit: TableCommit, format_version: int
    ) -> tuple[Sequence[NewDataFile], RowDeletes]:
        """The files that a commit adds, and rows of them that it deletes."""
        if not commit.snapshots:
            return [], NOTHING
        uuid = new.table_uuid
        staging = staging_path(self.staging_location, self.lake.lake.data_path, uuid)
        client = ClientFiles(self.objects, f"{staging}/", None)
        manifests = client.manifests(commit.snapshots[-1].manifest_list)
        net = net_change(client.entries(manifests), [])
        location = self.location(new.path)
        uploads = f"{data_path(location, uuid)}/"
        deletes = ClientDeletes(self.objects, uploads, (location,), format_version)
        added = AppendedFiles(
            objects=self.objects,
            data_location=uploads,
            directory=f"{uuid}/",
            columns=new.columns,
            last_column_id=greatest_id(new.columns),
            default_column_ids=frozenset(
                column.column_id for column in new.columns if column.initial_default is not None
            ),
            partition_keys=new.partition_keys,
            partition_fields=new.partition_fields,
        ).read(net.added)
        return added, first_deletes(net, deletes)

    def plan(
        self,
        new: NewTable,
        commit: TableCommit,
        added: Sequence[NewDataFile] = (),
        deletes: RowDeletes = NOTHING,
    ) -> TablePlan:
        """The plan of a table that a commit creates."""
        return TablePlan(
            table_uuid=new.table_uuid,
            table=new,
            columns=new.columns,
            commits=commit_rows(new.table_uuid, commit.snapshots, self.client),
            location=self.location(new.path, is_relative=new.path_is_relative),
            added=added,
            deletes=deletes,
        )


def _chosen(added: Mapping[int, Item], id_: int | None, what: str) -> Item:
    """The schema, spec or order that a commit makes current."""
    if id_ is None and len(added) == 1:
        return next(iter(added.values()))
    if id_ is None or id_ not in added:
        raise BadRequest(f"the commit does not say which {what} the new table has")
    return added[id_]


def columns_of_request(
    schema: TableSchema,
    format_version: int | None = None,
    *,
    keep_ids: bool,
    is_1_1: bool = False,
) -> tuple[ColumnNode, ...]:
    """The columns of a new table.

    Args:
        format_version: as `requested_version` gives it.
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
    check_version(columns, format_version or 2, is_1_1=is_1_1)
    if keep_ids:
        check_ids(columns)
        return columns
    return numbered(columns)


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
        # -1 is no column: the field is refused later.
        field.model_copy(update={"source_id": source_ids.get(field.source_id, -1)})
        for field in fields.fields
    ]
    return fields.model_copy(update={"fields": renumbered})
