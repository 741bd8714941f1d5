"""Plans of tables that do not exist yet."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from ..access.authorized_lake import AuthorizedLake
from ..ducklake import paths
from ..ducklake.column_tree import ColumnNode
from ..ducklake.rows.objects import Schema
from ..ducklake.writes.commits import uuid_was_used
from ..ducklake.writes.files import NewDataFile
from ..mapping.properties import data_path, staging_path, write_properties
from ..rest.requests import CreateTableRequest
from ..runtime.errors import BadRequest
from ..storage.objects import ObjectReader
from .client_files import ClientFiles
from .file_statistics import normalised
from .net_change import net_change
from .new_tables import columns_of_request, new_ids, new_table
from .parquet_files import AppendedFiles
from .plan import NewTable, TablePlan
from .planner import check_parents, commit_rows
from .schema_columns import greatest_id
from .table_updates import TableCommit, changed_statistics, requested_version, values

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Creator:
    """Plans the creation of tables in one schema."""

    lake: AuthorizedLake
    schema: Schema
    reader: ObjectReader
    staging_location: str
    """The setting; empty: below the lake's data path."""
    virtual_location: str
    """Where all virtual files are."""

    def of_request(self, request: CreateTableRequest) -> TablePlan:
        """The plan of an empty table.

        Raises:
            BadRequest: DuckLake cannot have such a table.
        """
        self._check_location(request)
        version = requested_version(request.properties or {})
        is_1_1 = self.lake.lake.is_1_1
        columns = columns_of_request(request.schema_, version, keep_ids=False, is_1_1=is_1_1)
        new = new_table(
            self.schema,
            request.name,
            columns,
            new_ids(request.schema_, columns),
            request.partition_spec,
            request.write_order,
            request.properties or {},
            format_version=version,
            has_epochs=self.lake.lake.is_1_1,
        )
        return self._plan(new, TableCommit(), [])

    def of_commit(self, name: str, commit: TableCommit) -> TablePlan:
        """The plan of a table that a commit creates, with its first rows.

        Raises:
            BadRequest: DuckLake cannot have such a table.
            CommitFailed: its first snapshot has a parent.
        """
        if commit.uuid is None:
            raise BadRequest("a commit that creates a table must assign its uuid")
        if uuid_was_used(commit.uuid).run(self.lake.con):
            raise BadRequest("another table has or has had this uuid; stage the creation again")
        location = f"{self.virtual_location}/{commit.uuid}"
        if commit.location is not None and commit.location.rstrip("/") != location:
            raise BadRequest("DuckLake chooses the location of a table: do not set it")
        version = requested_version(commit.properties, commit.format_version)
        columns = columns_of_request(
            _chosen(commit.schemas, commit.current_schema, "schema"),
            version,
            keep_ids=True,
            is_1_1=self.lake.lake.is_1_1,
        )
        new = new_table(
            self.schema,
            name,
            columns,
            {id_: id_ for id_ in _every_id(columns)},
            _chosen(commit.specs, commit.default_spec, "partition spec") if commit.specs else None,
            _chosen(commit.sort_orders, commit.default_sort_order, "sort order")
            if commit.sort_orders
            else None,
            commit.properties,
            commit.uuid,
            own=self._own_properties(name, commit.uuid),
            format_version=version,
            has_epochs=self.lake.lake.is_1_1,
        )
        check_parents(commit.snapshots, None, commit)
        staging = staging_path(self.staging_location, self.lake.lake.data_path, commit.uuid)
        statistics = changed_statistics(commit, (), f"{staging}/")
        new = replace(new, tags={**new.tags, **values(statistics)})
        return self._plan(new, commit, self._added(new, commit))

    def _check_location(self, request: CreateTableRequest) -> None:
        """Refuse a location, but for the one that Trino always sends.

        That is the directory of the namespace with the table's name, and 32 hex digits.
        """
        if request.location is None:
            return
        of_schema = paths.schema_location(self.lake.lake, self.schema)
        allowed = re.escape(normalised(of_schema) + request.name) + "(-[0-9a-f]{32})?/?"
        if not re.fullmatch(allowed, normalised(request.location)):
            raise BadRequest(
                "DuckLake chooses the location of a table: leave it out of the request"
            )

    def _own_properties(self, name: str, uuid: str) -> dict[str, str]:
        """The properties that the answer to the staged creation had."""
        return write_properties(
            self._location(name, uuid), uuid, self.staging_location, self.lake.lake.data_path
        )

    def _location(self, name: str, uuid: str) -> str:
        """The directory of a new table."""
        return paths.location(
            (self.lake.lake.data_path, False),
            (self.schema.path, self.schema.path_is_relative),
            (paths.directory(name, uuid), True),
        )

    def _added(self, new: NewTable, commit: TableCommit) -> Sequence[NewDataFile]:
        if not commit.snapshots:
            return []
        uuid = new.table_uuid
        staging = staging_path(self.staging_location, self.lake.lake.data_path, uuid)
        client = ClientFiles(self.reader, f"{staging}/", None)
        manifests = client.manifests(commit.snapshots[-1].manifest_list)
        net = net_change(client.entries(manifests), [])
        if net.added_deletes:
            raise BadRequest("the first commit of a table has delete files")
        return AppendedFiles(
            reader=self.reader,
            data_location=f"{data_path(self._location(new.table_name, uuid), uuid)}/",
            directory=f"{uuid}/",
            columns=new.columns,
            last_column_id=greatest_id(new.columns),
            with_default=frozenset(),
            partition_keys=new.partition_keys,
            partition_fields=new.partition_fields,
        ).read(net.added)

    def _plan(self, new: NewTable, commit: TableCommit, added: Sequence[NewDataFile]) -> TablePlan:
        return TablePlan(
            table_uuid=new.table_uuid,
            table=new,
            columns=new.columns,
            commits=commit_rows(new.table_uuid, commit.snapshots),
            location=self._location(new.table_name, new.table_uuid),
            added=added,
        )


def _every_id(columns: Iterable[ColumnNode]) -> Iterator[int]:
    """The ids of columns and of those in them."""
    for column in columns:
        yield column.column_id
        yield from _every_id(column.children)


def _chosen(added: Mapping[int, Item], id_: int | None, what: str) -> Item:
    """The schema, spec or order that a commit makes current."""
    if id_ is None and len(added) == 1:
        return next(iter(added.values()))
    if id_ is None or id_ not in added:
        raise BadRequest(f"the commit does not say which {what} the new table has")
    return added[id_]
