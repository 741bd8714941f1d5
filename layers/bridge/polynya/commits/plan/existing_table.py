"""From a commit to a plan: everything that can be determined before the transaction that writes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial

from ...access.authorized_lake import AuthorizedLake
from ...access.table_scope import parent_directory
from ...ducklake.column_tree import ColumnNode, greatest_id
from ...ducklake.paths import table_location
from ...ducklake.rows.objects import Schema, Table
from ...ducklake.writes.new_snapshot import CommitRow
from ...iceberg.avro.client_manifests import ListedManifest, WrittenFile
from ...iceberg.manifest import ManifestContent
from ...iceberg.parquet.kept_rows import Uncertain
from ...mapping.name_mappings import NAME_MAPPING, NameMatcher, name_matcher
from ...mapping.properties import (
    HIDDEN_NOTE,
    PROPERTY_PREFIX,
    data_path,
    staging_path,
    staging_root,
    upload_location,
)
from ...rest.updates import Snapshot, failures
from ...runtime.errors import BadRequest, CommitFailed
from ...runtime.settings import EqualityDeleteLimits
from ...storage.file_cache import Store
from ...storage.object_store import ObjectStore
from ..client_locations import FilePlaces, relative, taken_locations
from ..request.client_files import ClientFiles, Positions, merge_positions
from ..request.table_commit import TableCommit
from ..request.tags import changed_statistics
from .added_files import AppendedFiles
from .alter_table import alteration
from .branches import Branches
from .changed_files import (
    NetChange,
    check_moved_rows,
    check_replaced_partitions,
    difference,
    net_change,
    rewrites,
)
from .current_table import TableState
from .early_reads import prefetch_client_files
from .equality_deletes import EqualityDeletes, TableFiles
from .files_without_ids import AddedFiles
from .found_rows import FoundRows
from .row_deletes import RemovalFinder
from .table_plan import TablePlan


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans commits to tables that exist."""

    objects: ObjectStore
    staging_location: str
    """The setting; empty: below the lake's data path."""
    equality_deletes: EqualityDeleteLimits
    searches: Store | None = None
    """Where what a long search for rows by key has found is kept; None: nowhere."""
    is_materialized: bool = True
    """Whether virtual files are real objects."""
    client: str = ""
    """The client as it names itself."""

    @contextmanager
    def reading_early(
        self, lake: AuthorizedLake, schema: Schema, table: Table, commit: TableCommit
    ) -> Iterator["Planner"]:
        """Read the files of a commit for the duration of the block; yields the planner for it."""
        if not commit.snapshots:
            yield self
            return
        location = data_path(table_location(lake.lake, schema, table), table.table_uuid)
        staging = self._staging(lake, table)
        manifest_list = commit.snapshots[-1].manifest_list
        with prefetch_client_files(self.objects, staging, f"{location}/", manifest_list) as objects:
            yield replace(self, objects=objects)

    def plan(self, state: TableState, commit: TableCommit) -> TablePlan:
        """The plan of a commit to a table.

        Raises:
            CommitFailed: a requirement does not hold.
            BadRequest: DuckLake cannot represent the commit.
        """
        if failed := failures(commit.requirements, state.json):
            if state.head:
                staging = self._staging(state.lake, state.table)
                client = ClientFiles(self.objects, staging, state.files)
                check_moved_rows(client, state, commit.snapshots, state.head.sequence_number)
            # Java's own tests expect the reason first.
            raise CommitFailed(f"{'; '.join(failed)} ({state.files.history.full_name})")
        _check_identity(state, commit)
        branches, staging = Branches(state, commit), self._staging(state.lake, state.table)
        line = branches.main_snapshots()
        check_parents(line, state.head.snapshot_id if state.head else None, commit)
        client = ClientFiles(self.objects, staging, state.files)
        tags_of_branches, staged_files = branches.change(line, client)
        stages, commit = bool(commit.snapshots and not line), replace(commit, snapshots=line)
        finder = RemovalFinder(state, self.objects, self.is_materialized)
        net = self._net_change(state, commit, finder)
        if net.equality_deletes:
            net = replace(net, lost=self._lost(state, net, finder))
        deletes = finder.find(net, ends_all=commit.removes_main)
        altered, tags = alteration(state, commit)
        if stages and not altered.is_empty:
            raise BadRequest(
                "a commit to a branch cannot change the table's columns, partitioning or sort "
                "order, which are those of all branches: change them in a commit before it"
            )
        tags |= changed_statistics(commit, state.files.history.tags, staging) | tags_of_branches
        columns = altered.schema.columns if altered.schema else state.columns
        keys, fields = altered.partition_keys, altered.partition_fields
        added = AppendedFiles(
            objects=self.objects,
            data_location=f"{data_path(state.location, state.table.table_uuid)}/",
            directory=f"{state.table.table_uuid}/",
            columns=columns,
            last_column_id=max(state.document.last_column_id, greatest_id(columns)),
            default_column_ids=state.default_column_ids
            | {column.column_id for column in columns if column.initial_default is not None},
            partition_keys=state.partition_keys if keys is None else keys,
            partition_fields=state.partition_fields if fields is None else fields,
            shows_partitions=not state.files.table.partitions.are_left_out,
            # Rows that a commit appends have no ids yet.
            next_row_id=state.next_row_id if net.ends_rows or commit.removes_main else 0,
            as_they_are=added_files(
                state,
                columns,
                commit.properties,
                self.staging_location,
                is_materialized=self.is_materialized,
            ),
        ).read(net.added)
        if added and branches.has_staged and staged_files.removed is not None:
            own = [file.path for file in added if file.path_is_relative]
            staged_files = replace(staged_files, removed=own)
        return TablePlan(
            table_uuid=state.table.table_uuid,
            table=state.table.table_id,
            columns=columns,
            commits=commit_rows(state.table.table_uuid, commit.snapshots, self.client),
            location=state.location,
            added=added,
            partition_id=state.partition_id,
            deletes=deletes,
            ends_all=commit.removes_main,
            tags=tags,
            alteration=altered,
            staged_files=staged_files,
        )

    def _net_change(
        self, state: TableState, commit: TableCommit, finder: RemovalFinder
    ) -> NetChange:
        if not commit.snapshots:
            return NetChange()
        client = ClientFiles(self.objects, self._staging(state.lake, state.table), state.files)
        # CREATE OR REPLACE TABLE ends everything: nothing is compared.
        head = None if commit.removes_main else state.head
        base = client.base(head.sequence_number) if head else []
        check_replaced_partitions(state, client, base, commit.snapshots)
        # Only the last snapshot counts: what the others added and the last one does not have never
        # becomes rows.
        net = _change_since(client, base, commit.snapshots[-1])
        hidden = state.document.properties.get(HIDDEN_NOTE)
        # Without hidden columns a new file has all values of the rows that it keeps.
        if not (hidden and net.removed and net.added):
            return net
        try:
            before = [_change_since(client, base, s) for s in commit.snapshots[:-1]]
            lists = [snapshot.manifest_list for snapshot in commit.snapshots]
            steps = zip(lists, [*before, net], strict=True)
            return finder.as_deletes(net, rewrites(steps, self.client))
        except Uncertain as error:
            raise BadRequest(
                f"the commit rewrites files of a table with columns that Iceberg does not see "
                f"({hidden}), and their values would be lost: {error}. Delete and update with "
                "merge-on-read (write.delete.mode, write.update.mode and write.merge.mode), or in "
                "DuckDB"
            ) from None

    def _lost(self, state: TableState, net: NetChange, finder: RemovalFinder) -> Positions:
        """The positions of all rows that a change deletes, those by key included."""

        def live() -> Iterator[WrittenFile]:
            client = ClientFiles(self.objects, self._staging(state.lake, state.table), state.files)
            for manifest in client.base(state.head.sequence_number) if state.head else ():
                if manifest.content == ManifestContent.DATA:
                    yield from client.own_entries([manifest])

        resolver = EqualityDeletes(
            TableFiles(state).keyed_table(),
            self.objects,
            state.files.table.context.object_reader,
            finder.client_deletes,
            lambda location: relative(location, finder.uploads, "a data file"),
            self.equality_deletes,
            partial(FoundRows, self.searches, state.table.table_uuid) if self.searches else None,
        )
        return merge_positions([net.lost, resolver.positions(net, live())])

    def _staging(self, lake: AuthorizedLake, table: Table) -> str:
        """The directory of the client's manifests, with a slash at its end."""
        path = staging_path(self.staging_location, lake.lake.data_path, table.table_uuid)
        return f"{path}/"


def _change_since(
    client: ClientFiles, base: Sequence[ListedManifest], snapshot: Snapshot
) -> NetChange:
    changed = difference(base, client.manifests(snapshot.manifest_list))
    return net_change(client.entries(changed.new), client.own_entries(changed.gone))


def _check_identity(state: TableState, commit: TableCommit) -> None:
    """Refuse another uuid or another location."""
    document = state.document
    if commit.uuid not in {None, document.table_uuid}:
        raise BadRequest("the uuid of a table cannot be changed")
    if commit.location is not None and commit.location.rstrip("/") != document.location:
        raise BadRequest(f"the table stays at {document.location}: DuckLake moves no tables")


def check_parents(snapshots: Sequence[Snapshot], head: int | None, commit: TableCommit) -> None:
    """Check that the snapshots of a commit follow the table's own.

    Raises:
        CommitFailed: the table has a newer snapshot than the client has loaded.
    """
    parent = None if commit.removes_main else head
    for snapshot in snapshots:
        if snapshot.parent_snapshot_id != parent:
            raise CommitFailed(
                f"the snapshot {snapshot.snapshot_id} follows {snapshot.parent_snapshot_id}, and "
                f"the table is at {parent} now"
            )
        parent = snapshot.snapshot_id


# `PyIceberg 0.12.0`, `duckdb/v1.5.5(linux_amd64) python/3.11`
PRODUCT = re.compile(r"(?P<name>[A-Za-z][\w .-]{0,60}?)[ /]v?(?P<version>\d[\w.]{0,30})", re.ASCII)


def commit_rows(
    table_uuid: str, snapshots: Sequence[Snapshot], client: str = ""
) -> list[CommitRow]:
    """The rows of polynya_commits; one without an Iceberg snapshot for a commit that adds none.

    Args:
        client: as it names itself, for a summary that does not say which engine it is.
    """
    product = PRODUCT.match(client)
    rows = []
    for position, snapshot in enumerate(snapshots):
        summary = dict(snapshot.summary)
        if product and "engine-name" not in summary:
            summary |= {"engine-name": product["name"], "engine-version": product["version"]}
        operation = summary.pop("operation", None)
        text = json.dumps(summary, ensure_ascii=True, sort_keys=True)
        rows.append(CommitRow(table_uuid, snapshot.snapshot_id, position, operation, text))
    # The row also has the key of the request, by which the request is recognised if it is sent
    # again.
    return rows or [CommitRow(table_uuid, None, 0, None, None)]


def added_files(
    state: TableState,
    columns: Sequence[ColumnNode],
    properties: Mapping[str, str],
    staging_location: str,
    *,
    is_materialized: bool,
) -> AddedFiles:
    """What a commit to a table may add as it is. It reads nothing until there is such a file.

    Args:
        columns: those that the table has after the commit.
        properties: those that the commit sets.
        staging_location: the setting; empty: below the lake's data path.
        is_materialized: whether virtual files are real objects.
    """
    lake, table, virtual = state.lake.lake, state.table, state.document.location
    staging = staging_root(staging_location, lake.data_path)
    behind = virtual if is_materialized else upload_location(virtual, lake.data_path)
    is_taken = taken_locations(
        state.lake, table.table_id, virtual, parent_directory(behind), staging
    )

    @cache
    def matcher() -> NameMatcher:
        tags = {tag.key: tag.value for tag in state.files.history.tags}
        text = properties.get(NAME_MAPPING, tags.get(PROPERTY_PREFIX + NAME_MAPPING))
        try:
            return name_matcher(columns, state.files.history.mapped_names, text)
        except ValueError:
            raise BadRequest(
                f"the table's property {NAME_MAPPING} is not an Iceberg name mapping, so that the "
                "columns of files without field ids cannot be found: remove it"
            ) from None

    places = FilePlaces(state.lake.rights.file_directories, is_taken, state.location)
    return AddedFiles(places, columns, matcher)
