"""From a commit to a plan: everything that can be determined before the transaction that writes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from ..access.authorized_lake import AuthorizedLake
from ..ducklake import paths
from ..ducklake.rows.objects import Schema, Table
from ..ducklake.writes.commits import CommitRow, uuid_was_used
from ..ducklake.writes.files import NewDataFile
from ..mapping.properties import data_path, staging_path, write_properties
from ..rest.requests import CreateTableRequest
from ..rest.updates import Snapshot, failures
from ..runtime.errors import BadRequest, CommitFailed
from ..storage.objects import ObjectReader
from .alteration import (
    alteration,
    check_hidden_columns,
    check_moved_rows,
    check_replaced_partitions,
)
from .client_files import ClientFiles
from .deletes import RemovalFinder
from .file_statistics import normalised
from .net_change import NetChange, difference, net_change
from .parquet_files import AppendedFiles
from .plan import NewTable, TablePlan, columns_of_request, greatest_id, new_ids, new_table
from .table_state import TableState, prefetch_client_files
from .table_updates import FORMAT_VERSION, TableCommit, changed_statistics, values

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans commits to tables that exist."""

    reader: ObjectReader
    staging_location: str
    """The setting; empty: below the lake's data path."""
    is_materialized: bool = True
    """Whether virtual files are real objects."""

    @contextmanager
    def reading_early(
        self, lake: AuthorizedLake, schema: Schema, table: Table, commit: TableCommit
    ) -> Iterator["Planner"]:
        """Read the files of a commit for the duration of the block; gives the planner for it."""
        if not commit.snapshots:
            yield self
            return
        location = data_path(paths.table_location(lake.lake, schema, table), table.table_uuid)
        staging = self._staging(lake, table)
        manifest_list = commit.snapshots[-1].manifest_list
        with prefetch_client_files(self.reader, staging, f"{location}/", manifest_list) as reader:
            yield replace(self, reader=reader)

    def plan(self, state: TableState, commit: TableCommit) -> TablePlan:
        """The plan of a commit to a table.

        Raises:
            CommitFailed: a requirement does not hold.
            BadRequest: DuckLake cannot represent the commit.
        """
        if failed := failures(commit.requirements, state.json):
            if state.head:
                staging = self._staging(state.lake, state.table)
                client = ClientFiles(self.reader, staging, state.files)
                check_moved_rows(client, state, commit.snapshots, state.head.sequence_number)
            raise CommitFailed(f"{state.files.history.full_name}: {'; '.join(failed)}")
        _check_identity(state, commit)
        check_parents(commit.snapshots, state.head.snapshot_id if state.head else None, commit)
        net = self._net_change(state, commit)
        finder = RemovalFinder(state, self.reader, self.is_materialized)
        deletes = finder.find(net, ends_all=commit.removes_main)
        altered, tags = alteration(state, commit)
        staging = self._staging(state.lake, state.table)
        tags |= changed_statistics(commit, state.files.history.tags, staging)
        columns = altered.schema.columns if altered.schema else state.columns
        keys = altered.partition_keys
        added = AppendedFiles(
            reader=self.reader,
            data_location=f"{data_path(state.location, state.table.table_uuid)}/",
            directory=f"{state.table.table_uuid}/",
            columns=columns,
            last_column_id=max(state.document.last_column_id, greatest_id(columns)),
            with_default=state.with_default,
            partition_keys=state.partition_keys if keys is None else keys,
            # Rows that a commit appends have no ids yet.
            next_row_id=state.next_row_id if net.ends_rows or commit.removes_main else 0,
        ).read(net.added)
        return TablePlan(
            table_uuid=state.table.table_uuid,
            table=state.table.table_id,
            columns=columns,
            commits=commit_rows(state.table.table_uuid, commit.snapshots),
            location=state.location,
            added=added,
            partition_id=state.partition_id,
            deletes=deletes,
            ends_all=commit.removes_main,
            tags=tags,
            alteration=altered,
        )

    def _net_change(self, state: TableState, commit: TableCommit) -> NetChange:
        if not commit.snapshots:
            return NetChange()
        client = ClientFiles(self.reader, self._staging(state.lake, state.table), state.files)
        # CREATE OR REPLACE TABLE ends everything: nothing is compared.
        head = None if commit.removes_main else state.head
        base = client.base(head.sequence_number) if head else []
        check_replaced_partitions(state, client, base, commit.snapshots)
        changed = difference(base, client.manifests(commit.snapshots[-1].manifest_list))
        net = net_change(client.entries(changed.new), client.own_entries(changed.gone))
        check_hidden_columns(state, net)
        return net

    def _staging(self, lake: AuthorizedLake, table: Table) -> str:
        """The directory of the client's manifests, with a slash at its end."""
        path = staging_path(self.staging_location, lake.lake.data_path, table.table_uuid)
        return f"{path}/"


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
        columns = columns_of_request(request.schema_, keep_ids=False, is_1_1=self.lake.lake.is_1_1)
        new = new_table(
            self.schema,
            request.name,
            columns,
            new_ids(request.schema_, columns),
            request.partition_spec,
            request.write_order,
            request.properties or {},
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
        if commit.format_version not in {None, 2}:
            raise BadRequest(FORMAT_VERSION)
        location = f"{self.virtual_location}/{commit.uuid}"
        if commit.location is not None and commit.location.rstrip("/") != location:
            raise BadRequest("DuckLake chooses the location of a table: do not set it")
        columns = columns_of_request(
            _chosen(commit.schemas, commit.current_schema, "schema"),
            keep_ids=True,
            is_1_1=self.lake.lake.is_1_1,
        )
        new = new_table(
            self.schema,
            name,
            columns,
            {column.column_id: column.column_id for column in columns},
            _chosen(commit.specs, commit.default_spec, "partition spec") if commit.specs else None,
            _chosen(commit.sort_orders, commit.default_sort_order, "sort order")
            if commit.sort_orders
            else None,
            commit.properties,
            commit.uuid,
            own=self._own_properties(name, commit.uuid),
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


def _chosen(added: Mapping[int, Item], id_: int | None, what: str) -> Item:
    """The schema, spec or order that a commit makes current."""
    if id_ is None and len(added) == 1:
        return next(iter(added.values()))
    if id_ is None or id_ not in added:
        raise BadRequest(f"the commit does not say which {what} the new table has")
    return added[id_]


def _check_identity(state: TableState, commit: TableCommit) -> None:
    """Refuse what would make another table of it."""
    document = state.document
    if commit.uuid not in {None, document.table_uuid}:
        raise BadRequest("the uuid of a table cannot be changed")
    if commit.location is not None and commit.location.rstrip("/") != document.location:
        raise BadRequest(f"the table stays at {document.location}: DuckLake moves no tables")
    if commit.format_version not in {None, document.format_version}:
        raise BadRequest(
            f"the table has the format version {document.format_version}, which follows from its "
            "columns"
        )


def check_parents(snapshots: Sequence[Snapshot], head: int | None, commit: TableCommit) -> None:
    """Check that the snapshots of a commit follow the table's own.

    Raises:
        CommitFailed: the table has another snapshot than the client believes.
    """
    parent = None if commit.removes_main else head
    for snapshot in snapshots:
        if snapshot.parent_snapshot_id != parent:
            raise CommitFailed(
                f"the snapshot {snapshot.snapshot_id} follows {snapshot.parent_snapshot_id}, and "
                f"the table is at {parent} now"
            )
        parent = snapshot.snapshot_id


def commit_rows(table_uuid: str, snapshots: Sequence[Snapshot]) -> list[CommitRow]:
    """The rows of polynya_commits; one without an Iceberg snapshot for a commit that adds none."""
    rows = []
    for position, snapshot in enumerate(snapshots):
        summary = dict(snapshot.summary)
        operation = summary.pop("operation", None)
        text = json.dumps(summary, ensure_ascii=True, sort_keys=True)
        rows.append(CommitRow(table_uuid, snapshot.snapshot_id, position, operation, text))
    return rows or [CommitRow(table_uuid, None, 0, None, None)]
