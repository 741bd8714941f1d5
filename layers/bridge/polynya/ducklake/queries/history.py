"""The history of one table, read in one transaction, and the state at each snapshot.

History is mutable in DuckLake: a second delete, a merge or a flush replace rows of past snapshots.
So every state carries a hash of its rows, and the name of a file that is made from a state contains
the hash.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from types import SimpleNamespace

from pg8000.native import Connection

from ..connection.catalog_connection import constant, run_batched, run_named
from ..paths import table_location
from ..rows import objects
from ..rows.files import Event, FileGroups
from ..rows.lifetimes import Inlined, UnservableRange, is_visible
from . import (
    catalog,
    data_files,
    delete_rows,
    file_sums,
    inlined_tables,
    named_objects,
    table_columns,
)
from .file_sums import FileSums
from .inlined_tables import tables_with_columns
from .lifetimes import KINDS, TableLifetimes
from .new_rows import Earlier


@dataclass(frozen=True, slots=True)
class TableHistory:
    """Everything about a table up to a snapshot, without its single files."""

    lake: objects.Lake
    schema: objects.Schema
    table: objects.Table
    snapshot_id: int
    columns: list[objects.Column]
    snapshots: list[objects.Snapshot]
    """The snapshots that touched the table, oldest first."""
    since: int
    """The first snapshot that was read; 0 if there is none before."""
    events: list[Event]
    unservable: list[UnservableRange]
    inlined: Inlined
    has_partial: bool
    """Some data files hold rows of snapshots later than their own."""
    partitioning: objects.Partitioning
    mapped_names: list[objects.MappedName]
    sort_keys: list[objects.SortKey]
    tags: list[objects.Tag]
    column_tags: list[objects.Tag]
    identifiers: list[objects.IdentifierFields]
    """At all snapshots, in order."""
    commits: list[objects.ClientSnapshot]
    """What Iceberg clients committed, in order: from the first snapshot on, and where the columns
    or the partitioning changed."""
    chosen_ids: objects.ChosenIds
    """At all snapshots."""
    sink_commits: list[objects.ClientSnapshot]
    """The newest commit of each sink, in order."""
    file_sums: FileSums = field(compare=False, repr=False)
    """The sums over the rows of all data files, with which the next reader may begin."""

    @property
    def full_name(self) -> str:
        """The name with its schema, for messages."""
        return self.schema.name_of(self.table.table_name)

    @property
    def unlisted(self) -> frozenset[int]:
        """Snapshots that Iceberg does not list: those that change no row and no column.

        They only change names, comments, properties or the layout, or are an Iceberg client's
        change of columns. The first snapshot that shows a change whose own snapshot has expired is
        listed nevertheless.
        """
        committed = {c.snapshot_id for c in self.commits if c.client_snapshot_id is not None}
        alone = {
            snapshot.snapshot_id
            for snapshot in self.snapshots
            if snapshot.snapshot_id not in committed
            and not self.changes(snapshot) - {"altered_table"}
        }
        return frozenset(alone and alone.difference(self._first_to_show()))

    @property
    def document_snapshots(self) -> list[objects.Snapshot]:
        """The snapshots that changed the table's metadata document: not those that only rename it.

        In other Iceberg catalogs a renamed table keeps its metadata file.
        """
        renames = {
            snapshot.snapshot_id
            for snapshot in self.snapshots[1:]
            # DuckLake also names the other changes of the table in the same transaction.
            if snapshot.begins_name and not self.changes(snapshot)
        }
        if renames:  # most tables have none
            renames &= self.unlisted
        return [snapshot for snapshot in self.snapshots if snapshot.snapshot_id not in renames]

    def changes(self, snapshot: objects.Snapshot) -> frozenset[str]:
        """The types of changes that a snapshot made to the table, in DuckLake's words."""
        return objects.changes_of(snapshot.changes_made, self.table.table_id)

    def _first_to_show(self) -> Iterator[int]:
        """The first snapshot that shows each change: its own, or the next one that is left."""
        ids = [snapshot.snapshot_id for snapshot in self.snapshots]
        changes = {event.snapshot_id for event in self.events}
        changes |= {*self._column_changes(), *self._rows_moved_at()}
        # The commit that a sink reads back may be older than the newest snapshot.
        changes.update(commit.snapshot_id for commit in self.sink_commits)
        places = {bisect_left(ids, change) for change in changes if change >= self.since}
        return (ids[place] for place in places if place < len(ids))

    def _column_changes(self) -> set[int]:
        """Snapshots of native writers that made or changed columns.

        Those of Iceberg clients are absent.
        """
        changes = {e for c in self.columns for e in (c.begin_snapshot, c.end_snapshot) if e}
        # Iceberg makes no snapshot for a change of the schema.
        return changes - {c.snapshot_id for c in self.commits if c.client_snapshot_id is None}

    @property
    def layout_changes(self) -> list[int]:
        """Snapshots of native writers that changed the columns or the partitioning, ascending.

        From then on inlined rows are in other files.
        """
        # A file of inlined rows has the columns and the partitions of the table when it is made.
        changes = self._column_changes().union(self.partitioning.begins)
        changes -= {c.snapshot_id for c in self.commits if c.client_snapshot_id is None}
        return sorted(e for e in changes if self.table.begin_snapshot < e <= self.snapshot_id)

    def _rows_moved_at(self) -> Iterator[int]:
        """The changes of the layout at which there were inlined rows."""
        inlined = [event for event in self.events if event.kind == "inlined"]
        ids = [event.snapshot_id for event in inlined]
        rows = [0, *accumulate(event.sign * event.rows for event in inlined)]
        return (change for change in self.layout_changes if rows[bisect_left(ids, change)])

    def window(self, snapshot_id: int) -> objects.Window:
        """The snapshots whose changes a snapshot of the table shows."""
        place = bisect_left(self.snapshots, snapshot_id, key=lambda snapshot: snapshot.snapshot_id)
        snapshot = self.snapshots[place] if place < len(self.snapshots) else None
        if (
            snapshot is None
            or snapshot.snapshot_id != snapshot_id
            # Before its first snapshot the table has no state that changes could follow.
            or snapshot.previous_id < self.table.begin_snapshot
        ):
            return objects.own_changes(snapshot_id)
        has_gap = snapshot.previous_id < snapshot_id - 1
        return objects.Window(
            snapshot.previous_id,
            snapshot_id,
            snapshot.first_file_id,
            snapshot.end_file_id,
            adds_rows=has_gap
            # A merge may take in a file that a rewrite of rows has made.
            or bool(self.changes(snapshot) - objects.DELETING - {"altered_table"}),
        )

    @property
    def lifetimes(self) -> TableLifetimes:
        """The lifetimes of the table's rows in the catalog."""
        return TableLifetimes(self.lake, self.table.table_id, self.inlined, self.has_partial)


@dataclass(frozen=True, slots=True)
class Totals:
    """The visible rows of one kind at a snapshot, and the effect of the last change."""

    files: int = 0
    rows: int = 0
    bytes: int = 0
    hash: int = 0
    changed_at: int = 0
    """The newest snapshot, up to the requested one, at which a row began or ended."""
    added: Event | None = None
    removed: Event | None = None
    """What began and what ended at `changed_at`."""
    past: int = 0
    """A hash of all rows that ended, and when; DuckLake changes it when it expires such rows."""


State = Mapping[str, Totals]
"""The totals by kind at one snapshot."""


def read(
    con: Connection,
    lake: objects.Lake,
    schema: objects.Schema,
    table: objects.Table,
    snapshot_id: int,
    *,
    since: int = 0,
    limit: int | None = None,
    earlier: Earlier[FileSums] | None = None,
) -> TableHistory:
    """Read the history of `table` as a reader at `snapshot_id` sees it.

    Args:
        since: the first snapshot that is read.
        limit: the largest number of snapshots that is read, newest first.
        earlier: the sums that an earlier transaction has read.
    """
    table_id = table.table_id
    all_groups = file_sums.file_groups(lake, table_id, snapshot_id)
    now = run_named(
        con,
        inlined=inlined_tables.inlined(lake, table_id, table.begin_snapshot),
        columns=table_columns.columns(table_id, snapshot_id),
        mapped_names=table_columns.mapped_names(lake, table_id),
        snapshots=catalog.snapshots(lake, table, snapshot_id, since, limit),
        unservable_deletes=delete_rows.unservable_deletes(table_id),
        unservable_tables=inlined_tables.unservable_inlined_tables(table_id, table.begin_snapshot),
        uncopied_rows=inlined_tables.uncopied_rows(lake, table_id),
        unservable_rows=named_objects.unservable_rows_of_table(table_id),
        partition_columns=table_columns.partition_columns(table_id),
        files=file_sums.new_data_files(table_id, earlier.transactions) if earlier else all_groups,
        partitionings=table_columns.partitionings(table_id, snapshot_id),
        sort_keys=table_columns.sort_keys_at(lake, snapshot_id, table_id),
        tags=named_objects.tags_at(snapshot_id, table_id),
        column_tags=named_objects.column_tags_at(snapshot_id, table_id),
        identifiers=named_objects.identifier_fields(table_id),
        previous_id=catalog.previous_snapshot(since) if since else constant(0),
    )
    columns: list[objects.Column] = now.columns
    touched, first_id = now.snapshots
    # Its first snapshot shows the changes of those before it that have expired.
    since = max(now.previous_id + 1 if since else 0, first_id)
    inlined, uncertain = tables_with_columns(con, now.inlined, columns, snapshot_id)
    unservable = [
        *(*now.uncopied_rows, *now.unservable_rows, *now.unservable_deletes),
        *(*now.unservable_tables, *uncertain),
    ]
    new = groups = None
    if earlier and earlier.result.can_grow_to(snapshot_id, since):
        before = earlier.result.groups
        added = file_sums.file_groups(lake, table_id, snapshot_id, now.files).run(con)
        if now.files.only_add(before.files, added.files):
            new, groups = now.files, before + added
    if groups is None:
        groups = all_groups.run(con) if earlier else now.files
    # Mostly there are none: the reasons are read only if the sums over all files have found a
    # fault.
    if groups.has_faults:
        unservable += data_files.unservable_data_files(lake, table_id).run(con)
    lifetimes = TableLifetimes(lake, table_id, inlined, groups.has_partial)
    # A batch returns JSON, which is read three times as fast as rows.
    directory = table_location(lake, schema, table)
    edges = {edge for c in columns for edge in (c.begin_snapshot, c.end_snapshot) if edge}
    layouts = edges.union(now.partitionings[1])
    events, unservable_inlined_deletes, unservable_shared_files, *of_clients = run_batched(
        con,
        lifetimes.events(snapshot_id, since, new),
        delete_rows.unservable_inlined_deletes(inlined, table_id),
        delete_rows.unservable_shared_files(lake, inlined, table_id, directory, groups),
        catalog.client_snapshots(lake, table.table_uuid, snapshot_id, since, layouts),
        catalog.chosen_ids(lake, table.table_uuid, snapshot_id),
        catalog.sink_commits(lake, table.table_uuid, snapshot_id),
    )
    commits, chosen_ids, of_sinks = of_clients
    if earlier and new:
        events = file_sums.summed([*earlier.result.events, *events], since)
    unservable += [*unservable_inlined_deletes, *unservable_shared_files]
    snapshots = {snapshot.snapshot_id: snapshot for snapshot in touched}
    # A change whose own snapshot has expired is visible first in the next snapshot that exists.
    changes = {table.begin_snapshot, *(event.snapshot_id for event in events)}
    changes.update(commit.snapshot_id for commit in of_sinks)
    changes |= edges
    # In some catalogs rows are older than their table; DuckLake reads them.
    changes = {max(change, table.begin_snapshot) for change in changes}
    # Without the snapshots before a list that was cut: its first snapshot shows all their changes.
    first = max(first_id, 1)
    expired = sorted(
        change for change in changes - snapshots.keys() if first <= change <= snapshot_id
    )
    if expired:
        for snapshot in catalog.next_snapshots(expired, snapshot_id).run(con):
            if snapshot.snapshot_id >= since:
                snapshots.setdefault(snapshot.snapshot_id, snapshot)
    history = TableHistory(
        lake=lake,
        schema=schema,
        table=table,
        snapshot_id=snapshot_id,
        columns=columns,
        snapshots=[snapshots[key] for key in sorted(snapshots)],
        since=since,
        events=events,
        unservable=unservable,
        inlined=inlined,
        has_partial=groups.has_partial,
        partitioning=_partitioning(now, groups),
        mapped_names=now.mapped_names,
        sort_keys=now.sort_keys,
        tags=now.tags,
        column_tags=now.column_tags,
        identifiers=now.identifiers,
        commits=commits,
        chosen_ids=chosen_ids,
        sink_commits=of_sinks,
        file_sums=file_sums.file_sums(snapshot_id, since, groups, events),
    )
    missing = 0 if limit is None else limit + 1 + len(history.unlisted) - len(snapshots)
    if limit is not None and first_id and missing > 0:
        # Unlisted snapshots do not count, and one more is read, the parent of the oldest.
        more = limit + max(missing, limit)
        return read(con, lake, schema, table, snapshot_id, limit=more, earlier=earlier)
    return history


def _partitioning(now: SimpleNamespace, groups: FileGroups) -> objects.Partitioning:
    current, begins = now.partitionings
    return objects.Partitioning(
        columns=now.partition_columns,
        column_types=_types(now.columns),
        constants=_constants(now.mapped_names),
        groups=groups.lifetimes,
        current=current,
        begins=begins,
        mapped=_mapped(now.mapped_names),
    )


def _types(columns: Iterable[objects.Column]) -> dict[int, frozenset[str]]:
    """Every type that a column ever had."""
    types: dict[int, set[str]] = defaultdict(set)
    for column in columns:
        if column.column_type is not None:
            types[column.column_id].add(column.column_type)
    return {column_id: frozenset(names) for column_id, names in types.items()}


def _constants(names: Iterable[objects.MappedName]) -> dict[int | None, dict[int, str]]:
    """The columns whose values are in the paths of the files, and their names there, by mapping."""
    constants: dict[int | None, dict[int, str]] = defaultdict(dict)
    for name in names:
        if name.is_partition:
            constants[name.mapping_id][name.target_field_id] = name.source_name
    return constants


def _mapped(names: Iterable[objects.MappedName]) -> dict[int, frozenset[int]]:
    """The columns that added files have, by mapping_id."""
    mapped: dict[int, set[int]] = defaultdict(set)
    for name in names:
        mapped[name.mapping_id].add(name.target_field_id)
    return {mapping_id: frozenset(ids) for mapping_id, ids in mapped.items()}


def states(events: Iterable[Event], snapshot_ids: Iterable[int]) -> Iterator[tuple[int, State]]:
    """The state of a table at each of the snapshots, both in ascending order."""
    state = {kind: Totals() for kind in KINDS}
    coming = iter(events)
    event = next(coming, None)
    for snapshot_id in snapshot_ids:
        while event is not None and event.snapshot_id <= snapshot_id:
            state[event.kind] = _add_event(state[event.kind], event)
            event = next(coming, None)
        yield snapshot_id, dict(state)


def state_at(events: Iterable[Event], snapshot_id: int) -> State:
    """The state of a table at one snapshot."""
    [(_, state)] = states(events, [snapshot_id])
    return state


def _add_event(totals: Totals, event: Event) -> Totals:
    is_same = event.snapshot_id == totals.changed_at
    return Totals(
        files=totals.files + event.sign * event.files,
        rows=totals.rows + event.sign * event.rows,
        bytes=totals.bytes + event.sign * event.bytes,
        hash=totals.hash + event.sign * event.hash,
        changed_at=event.snapshot_id,
        added=event if event.sign > 0 else totals.added if is_same else None,
        removed=event if event.sign < 0 else totals.removed if is_same else None,
        past=totals.past + event.past,
    )


def unservable_reason(unservable: Iterable[UnservableRange], snapshot_id: int) -> str | None:
    """Why the table cannot be shown as it was at this snapshot; None if it can."""
    for gap in unservable:
        if is_visible(gap.begin_snapshot, gap.end_snapshot, snapshot_id):
            return gap.reason
    return None
