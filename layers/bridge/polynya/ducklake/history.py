"""The history of one table, read within one transaction, and what it says of each snapshot.

History is mutable in DuckLake: a second delete, a merge or a flush replace rows of past snapshots.
So every state carries a hash of its rows, and the name of a file that is made from a state contains
the hash.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pg8000.native import Connection

from . import queries
from .changes import changes_of
from .connection.statements import run_batched
from .inlined_columns import with_columns
from .queries.lifetimes import KINDS, TableLifetimes
from .rows.columns import Column, MappedName, SortKey
from .rows.commits import ClientSnapshot
from .rows.inlined_tables import Inlined
from .rows.lake import Lake, Snapshot
from .rows.lifetimes import UnservableRange
from .rows.named_objects import Schema, Table, Tag
from .rows.partitions import Partitioning
from .rows.sums import Event


@dataclass(frozen=True, slots=True)
class TableHistory:
    """Everything about a table up to a snapshot, without its single files."""

    lake: Lake
    schema: Schema
    table: Table
    snapshot_id: int
    columns: list[Column]
    snapshots: list[Snapshot]
    """The snapshots that touched the table, oldest first."""
    since: int
    """The first snapshot that was read; 0 if there is none before."""
    events: list[Event]
    unservable: list[UnservableRange]
    inlined: Inlined
    has_partial: bool
    """Some data files hold rows of snapshots later than their own."""
    partitioning: Partitioning
    mapped_names: list[MappedName]
    sort_keys: list[SortKey]
    tags: list[Tag]
    column_tags: list[Tag]
    commits: list[ClientSnapshot]
    """What Iceberg clients committed, in order; all of it, also before the first snapshot."""

    @property
    def full_name(self) -> str:
        """The name with its schema, for messages."""
        return f"{self.schema.schema_name}.{self.table.table_name}"

    @property
    def unlisted(self) -> frozenset[int]:
        """Snapshots that Iceberg does not list: commits of a schema or of properties alone.

        One that replaces the table by an empty one has no Iceberg snapshot either, but ends rows.
        So does one that is the first to show a change whose own snapshot has expired.
        """
        listed = {c.snapshot_id for c in self.commits if c.client_snapshot_id is not None}
        with_rows = {
            snapshot.snapshot_id
            for snapshot in self.snapshots
            if changes_of(snapshot.changes_made, self.table.table_id) - {"altered_table"}
        }
        alone = {c.snapshot_id for c in self.commits} - listed - with_rows
        return frozenset(alone and alone.difference(self._first_to_show()))

    def _first_to_show(self) -> Iterator[int]:
        """The first snapshot that shows each change: its own, or the next one that is left."""
        ids = [snapshot.snapshot_id for snapshot in self.snapshots]
        changes = {event.snapshot_id for event in self.events if event.snapshot_id >= self.since}
        places = {bisect_left(ids, change) for change in changes}
        return (ids[place] for place in places if place < len(ids))

    @property
    def lifetimes(self) -> TableLifetimes:
        """The lifetimes of the table's rows in the catalog."""
        return TableLifetimes(self.lake, self.table.table_id, self.inlined, self.has_partial)


@dataclass(frozen=True, slots=True)
class Totals:
    """The visible rows of one kind at a snapshot, and what its last change did."""

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
    lake: Lake,
    schema: Schema,
    table: Table,
    snapshot_id: int,
    *,
    since: int = 0,
    limit: int | None = None,
) -> TableHistory:
    """Read the history of `table` as a reader at `snapshot_id` sees it.

    Args:
        since: the first snapshot that is read.
        limit: the largest number of snapshots that is read, newest first.
    """
    table_id = table.table_id
    (
        inlined,
        columns,
        names,
        (touched, first_id),
        unservable_deletes,
        unservable_inlined_tables,
        partition_columns,
        groups,
        current_partition,
        sort_keys,
        tags,
        column_tags,
    ) = run_batched(
        con,
        queries.inlined(lake, table_id, table.begin_snapshot),
        queries.columns(table_id, snapshot_id),
        queries.mapped_names(lake, table_id),
        queries.snapshots(lake, table, snapshot_id, since, limit),
        queries.unservable_deletes(table_id),
        queries.unservable_inlined_tables(table_id, table.begin_snapshot),
        queries.partition_columns(table_id),
        queries.file_groups(lake, table_id),
        queries.partition_at(table_id, snapshot_id),
        queries.sort_keys_at(lake, snapshot_id, table_id),
        queries.tags_at(snapshot_id, table_id),
        queries.column_tags_at(snapshot_id, table_id),
    )
    since = max(since, first_id)
    inlined, uncertain = with_columns(con, inlined, columns, snapshot_id)
    unservable = [*unservable_deletes, *unservable_inlined_tables, *uncertain]
    if groups.has_faults:
        unservable += queries.unservable_data_files(lake, table_id).run(con)
    lifetimes = TableLifetimes(lake, table_id, inlined, groups.has_partial)
    # A batch returns JSON, which is read three times as fast as rows.
    events, unservable_inlined_deletes, commits = run_batched(
        con,
        lifetimes.events(snapshot_id, since),
        queries.unservable_inlined_deletes(inlined, table_id),
        queries.client_snapshots(lake, table.table_uuid, snapshot_id, since),
    )
    unservable += unservable_inlined_deletes
    known = {snapshot.snapshot_id: snapshot for snapshot in touched}
    # A change whose own snapshot has expired is visible first in the next snapshot that exists.
    changes = {table.begin_snapshot, *(event.snapshot_id for event in events)}
    changes |= {edge for c in columns for edge in (c.begin_snapshot, c.end_snapshot) if edge}
    expired = sorted(change for change in changes - known.keys() if 0 < change <= snapshot_id)
    if expired:
        for snapshot in queries.next_snapshots(expired, snapshot_id).run(con):
            if snapshot.snapshot_id >= since:
                known.setdefault(snapshot.snapshot_id, snapshot)
    return TableHistory(
        lake=lake,
        schema=schema,
        table=table,
        snapshot_id=snapshot_id,
        columns=columns,
        snapshots=[known[key] for key in sorted(known)],
        since=since,
        events=events,
        unservable=unservable,
        inlined=inlined,
        has_partial=groups.has_partial,
        partitioning=Partitioning(
            columns=partition_columns,
            column_types=_types(columns),
            constants=_constants(names),
            groups=groups.lifetimes,
            current=current_partition,
        ),
        mapped_names=names,
        sort_keys=sort_keys,
        tags=tags,
        column_tags=column_tags,
        commits=commits,
    )


def _types(columns: Iterable[Column]) -> dict[int, frozenset[str]]:
    """Every type that a column ever had."""
    types: dict[int, set[str]] = defaultdict(set)
    for column in columns:
        if column.column_type is not None:
            types[column.column_id].add(column.column_type)
    return {column_id: frozenset(found) for column_id, found in types.items()}


def _constants(names: Iterable[MappedName]) -> dict[int | None, list[int]]:
    """The columns whose values are in the paths of the files, by mapping_id."""
    constants: dict[int | None, list[int]] = defaultdict(list)
    for name in names:
        if name.is_partition:
            constants[name.mapping_id].append(name.target_field_id)
    return constants


def states(events: Iterable[Event], snapshot_ids: Iterable[int]) -> Iterator[tuple[int, State]]:
    """The state of a table at each of the snapshots, both in ascending order."""
    state = {kind: Totals() for kind in KINDS}
    coming = iter(events)
    event = next(coming, None)
    for snapshot_id in snapshot_ids:
        while event is not None and event.snapshot_id <= snapshot_id:
            state[event.kind] = _after(state[event.kind], event)
            event = next(coming, None)
        yield snapshot_id, dict(state)


def state_at(events: Iterable[Event], snapshot_id: int) -> State:
    """The state of a table at one snapshot."""
    [(_, state)] = states(events, [snapshot_id])
    return state


def _after(totals: Totals, event: Event) -> Totals:
    if event.snapshot_id != totals.changed_at:
        totals = replace(totals, changed_at=event.snapshot_id, added=None, removed=None)
    return replace(
        totals,
        files=totals.files + event.sign * event.files,
        rows=totals.rows + event.sign * event.rows,
        bytes=totals.bytes + event.sign * event.bytes,
        hash=totals.hash + event.sign * event.hash,
        added=event if event.sign > 0 else totals.added,
        removed=event if event.sign < 0 else totals.removed,
        past=totals.past + event.past,
    )


def unservable_reason(unservable: Iterable[UnservableRange], snapshot_id: int) -> str | None:
    """Why the table cannot be shown as it was at this snapshot; None if it can."""
    for gap in unservable:
        ended = gap.end_snapshot is not None and gap.end_snapshot <= snapshot_id
        if gap.begin_snapshot <= snapshot_id and not ended:
            return gap.reason
    return None
