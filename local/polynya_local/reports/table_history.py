"""A table at a snapshot: its columns, its order on disk, and its history.

`snapshot_summaries` is the history: what each snapshot did to the table, and what it had then.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.paths import table_location
from polynya.ducklake.queries.history import State, Totals, states, unservable_reason
from polynya.ducklake.queries.snapshot_changes import named
from polynya.ducklake.rows import listing
from polynya.ducklake.rows.listing import LARGEST_ID, NamedFrom
from polynya.ducklake.rows.objects import SortKey, changes_of
from polynya.mapping.partitions import client_specs, every_key, sort_fields
from polynya.mapping.properties import COMMENT
from polynya.runtime.errors import Refused
from polynya.runtime.namespaces import parsed

from ..queries.lake_snapshots import changes_at
from .changes import GROUPS, KINDS, PAGE_SIZE, Change, SnapshotReport, client_of
from .client_faults import gain_of
from .columns import ColumnLine, alterations, columns_at
from .data_files import partition_key
from .generator import Generator, OpenedTable
from .opened_table import WINDOW, TableHead, TableRef, lost_clients, open_at
from .row_counts import Counts

CHANGES = {
    "append": {"inserted_into_table", "inlined_insert"},
    "delete": {"deleted_from_table", "inlined_delete"},
    "rewrite": {
        *("inline_flush", "flushed_inlined", "merge_adjacent", "compacted_table"),
        "rewrite_delete",
    },
}
"""What a snapshot did to the rows, with DuckLake's words for it."""
ROWS = GROUPS["rows"]


@dataclass(frozen=True, slots=True)
class SnapshotSummary:
    """A snapshot that touched the table."""

    snapshot_id: int
    time: datetime
    kind: str
    """`append`, `delete`, `update` (both), `rewrite` (the same rows), `create` and `alter` (no
    rows)."""
    words: list[str]
    """What the writer did."""
    operation: str
    """Iceberg's word; empty: clients do not see the snapshot."""
    author: str
    message: str
    counts: Counts
    added_files: int
    removed_files: int
    left_out: str
    """Why Iceberg clients cannot be shown the snapshot; empty: they can."""
    inserted: int | None = None
    """How many rows it inserted, those of updates included; None: only files tell."""
    deleted: int | None = None
    client: str = ""
    """The Iceberg client that committed it; empty: DuckLake itself did."""


def snapshot_summaries(table: OpenedTable) -> list[SnapshotSummary]:
    """The snapshots that touched the table and that were read, oldest first."""
    history, con = table.history, table.con
    ids = [snapshot.snapshot_id for snapshot in history.snapshots]
    commits = {change.snapshot_id: change for change in changes_at(history.lake, ids).run(con)}
    operations = _operations(table)
    names = named([table.table_id], [], LARGEST_ID).run(con)
    clients = {commit.snapshot_id: client_of(commit.summary or "") for commit in history.commits}
    rows = table.row_counts(ids)
    summaries: list[SnapshotSummary] = []
    before: int | None = None
    for snapshot, (_, state) in zip(history.snapshots, states(history.events, ids), strict=True):
        snapshot_id = snapshot.snapshot_id
        kinds = _kinds(snapshot.changes_made, table.table_id)
        change = commits.get(
            snapshot_id, listing.Change(snapshot_id, snapshot.snapshot_time, "", None, None)
        )
        is_new = snapshot_id == history.table.begin_snapshot
        kind, counts = _kind(kinds, is_new=is_new), rows.counts(snapshot_id, state)
        before = 0 if is_new else before
        new_rows = None if history.has_partial else _new_rows(state, snapshot_id)
        # The state also has the changes of the snapshots in between, which have expired.
        has_gap = snapshot.previous_id < snapshot_id - 1 and not is_new
        inserted, deleted = _row_changes(kind, None if has_gap else before, counts.rows, new_rows)
        before = counts.rows
        altered = [] if is_new else alterations(history.columns, snapshot_id)
        words = [*_naming(names, snapshot_id), *map(_words, sorted(kinds))]
        summaries.append(
            SnapshotSummary(
                snapshot_id=snapshot_id,
                time=snapshot.snapshot_time,
                kind=kind,
                words=[
                    f"altered: {', '.join(altered)}" if altered and word == "altered" else word
                    for word in dict.fromkeys(words)
                ],
                operation=operations.get(snapshot_id, ""),
                author=change.author or "",
                message=change.commit_message or "",
                counts=counts,
                added_files=_changed(state["data"], "added", snapshot_id),
                removed_files=_changed(state["data"], "removed", snapshot_id),
                left_out=unservable_reason(table.files.unservable, snapshot_id) or "",
                inserted=inserted,
                deleted=deleted,
                client=clients.get(snapshot_id, ""),
            )
        )
    return summaries


def _row_changes(
    kind: str, before: int | None, after: int | None, new_rows: int | None
) -> tuple[int | None, int | None]:
    """How many rows a snapshot inserted and deleted.

    Args:
        new_rows: those of the files and the inlined rows that began with it; None: not known.
    """
    if kind in ("rewrite", "create", "alter"):
        return 0, 0
    if before is None or after is None:
        return None, None
    if kind == "append":
        return after - before, 0
    if kind == "delete":
        return 0, before - after
    return (None, None) if new_rows is None else (new_rows, before + new_rows - after)


def _new_rows(state: State, snapshot_id: int) -> int:
    return sum(
        totals.added.rows
        for totals in (state["data"], state["inlined"])
        if totals.added is not None and totals.changed_at == snapshot_id
    )


CPU_SECONDS = 0.1
SECONDS = 0.5
"""How long tables are opened to count the rows that the changes on a page affect."""


def add_counts(
    generator: Generator, con: Connection, snapshots: list[SnapshotReport]
) -> list[SnapshotReport]:
    """The snapshots with the numbers of rows that they inserted and deleted, as far as known."""
    started, deadline = time.thread_time(), time.monotonic() + SECONDS
    newest: dict[int, tuple[int, Change]] = {}
    for snapshot in snapshots:
        for change in snapshot.changes:
            if change.kind in ROWS and change.object_kind == "table" and change.object_id:
                newest.setdefault(change.object_id, (snapshot.snapshot_id, change))
    counts: dict[tuple[int, int], SnapshotSummary] = {}
    lake = queries.lake().run(con) if newest else None
    for table_id, (snapshot_id, change) in newest.items():
        if time.thread_time() - started > CPU_SECONDS or time.monotonic() > deadline:
            break
        pair = queries.table_at(snapshot_id, parsed(change.namespace), change.table).run(con)
        if pair is None or lake is None:
            continue
        try:
            table = generator.open_table(con, lake, *pair, snapshot_id, limit=PAGE_SIZE)
            summaries = snapshot_summaries(table)
        except Refused:
            continue
        counts |= {(table_id, summary.snapshot_id): summary for summary in summaries}
    return [
        replace(
            snapshot,
            changes=[
                _counted(change, counts.get((change.object_id or 0, snapshot.snapshot_id)))
                for change in snapshot.changes
            ],
        )
        for snapshot in snapshots
    ]


def _counted(change: Change, summary: SnapshotSummary | None) -> Change:
    if summary is None or change.kind not in ROWS:
        return change
    is_insert = change.kind in CHANGES["append"]
    return replace(change, rows=summary.inserted if is_insert else summary.deleted)


def _operations(table: OpenedTable) -> dict[int, str]:
    """Iceberg's operation by DuckLake's snapshot id."""
    snapshots = table.metadata.snapshots if table.is_served else []
    return {snapshot.sequence_number: snapshot.summary["operation"] for snapshot in snapshots}


def _kinds(changes_made: str, table_id: int) -> frozenset[str]:
    try:
        return changes_of(changes_made, table_id)
    except Refused:  # the text is too long
        return frozenset()


def _words(kind: str) -> str:
    """What a writer did, without naming the table."""
    words = KINDS.get(kind, kind.replace("_", " "))
    return words.removesuffix(" into").removesuffix(" from").removesuffix(" of")


def _naming(names: list[NamedFrom], snapshot_id: int) -> list[str]:
    """Words for a snapshot that created the table, or renamed it."""
    if names and names[0].begin_snapshot == snapshot_id:
        return ["created the table"]
    before = [name for name in names if name.end_snapshot == snapshot_id]
    if before and any(name.begin_snapshot == snapshot_id for name in names):
        return [f"renamed it from {before[-1].full_name}"]
    return []


def _kind(kinds: Iterable[str], *, is_new: bool) -> str:
    names = {name for name, words in CHANGES.items() if words.intersection(kinds)}
    if "rewrite" in names:
        return "rewrite"
    if len(names) == 2:
        return "update"
    return names.pop() if names else "create" if is_new else "alter"


def _changed(totals: Totals, change: str, snapshot_id: int) -> int:
    """Files that began or ended at the snapshot itself."""
    event = totals.added if change == "added" else totals.removed
    return event.files if event is not None and totals.changed_at == snapshot_id else 0


@dataclass(frozen=True, slots=True)
class Key:
    """A part of a partitioning or of a sort order, in DuckLake's words and in Iceberg's."""

    ducklake: str
    """Empty: DuckLake has no such partitioning."""
    iceberg: str
    """Empty: Iceberg clients do not know of it."""


@dataclass(frozen=True, slots=True)
class TableOverview:
    """A table as its page shows it."""

    head: TableHead
    comment: str
    data_location: str
    metadata_location: str
    """Below it are the metadata files that Iceberg clients read."""
    format_version: int
    gain: str
    """What it would show in format version 3, and who could not read it then; empty: nothing."""
    counts: Counts
    columns: list[ColumnLine]
    partitioning: list[Key]
    sort_order: list[Key]
    tags: dict[str, str]
    properties: dict[str, str]
    """The properties that Iceberg clients get, from the tags and from Polynya."""
    snapshots: list[SnapshotSummary]
    """The newest snapshots that touched the table, oldest first."""
    older: bool
    """There are older ones."""
    newer: bool
    """There are newer ones."""
    begin_snapshot: int
    """The snapshot that made the table."""


def table_overview(
    generator: Generator, con: Connection, ref: TableRef, until: int | None = None
) -> TableOverview:
    """Read a table.

    Args:
        until: the newest snapshot of the history that is shown; None: the last that has the table.

    Raises:
        NoSuchTable: the lake has no such snapshot, or none of this name at it.
        Renamed: it has another name then.
    """
    table, head = open_at(generator, con, ref)
    history, context = table.history, table.files.table
    shown = _shown_snapshots(table, until)
    return TableOverview(
        head=head,
        comment=next((t.value or "" for t in history.tags if t.key == COMMENT), ""),
        data_location=table_location(history.lake, history.schema, history.table),
        metadata_location=context.location,
        format_version=context.format_version,
        gain=gain_of(table.gained_columns, lost_clients(table)) if table.gained_columns else "",
        counts=table.counts(),
        columns=columns_at(context, table.snapshot_id),
        partitioning=_partitioning(table),
        sort_order=_sort_order(table),
        tags={tag.key: tag.value or "" for tag in history.tags if tag.key != COMMENT},
        properties=dict(table.metadata.properties) if table.is_served else {},
        snapshots=shown,
        older=bool(shown) and shown[0].snapshot_id > history.table.begin_snapshot,
        newer=until is not None
        or (bool(shown) and shown[-1].snapshot_id == table.snapshot_id < _end(table)),
        begin_snapshot=history.table.begin_snapshot,
    )


def _shown_snapshots(table: OpenedTable, until: int | None) -> list[SnapshotSummary]:
    """The newest snapshots; or those up to the shown one, if it is older than all of these."""
    end = _end(table)
    last = end if until is None else min(end, max(until, table.history.table.begin_snapshot))
    shown = _snapshots_until(table, last)
    if until is None and shown and shown[0].snapshot_id > table.snapshot_id:
        return _snapshots_until(table, table.snapshot_id)
    return shown


def _end(table: OpenedTable) -> int:
    """The last snapshot that has the table."""
    ended = table.history.table.end_snapshot
    return table.lake.snapshot_id if ended is None else ended - 1


def _snapshots_until(table: OpenedTable, until: int) -> list[SnapshotSummary]:
    return snapshot_summaries(
        table if until == table.snapshot_id else table.open_at(until, limit=WINDOW)
    )


def _partitioning(table: OpenedTable) -> list[Key]:
    history, partitions = table.history, table.files.table.partitions
    current, _ = queries.partitionings(table.table_id, table.snapshot_id).run(table.con)
    every = every_key(history.partitioning, client_specs(history.tags))
    columns = every.get(current, ()) if current is not None else ()
    has_keys = bool(history.partitioning.columns.get(current))
    names = _names(table)
    spec = partitions.specs[partitions.default_spec_id]
    keys = []
    for column in columns:
        name = names.get(column.column_id, str(column.column_id))
        fields = [field for field in spec.fields if field.source_id == column.column_id]
        if not has_keys:
            fields = [field for field in fields if field.transform == column.transform]
        ducklake = partition_key(name, column.transform) if has_keys else ""
        iceberg = ", ".join(f"{field.transform}({name})" for field in fields)
        keys.append(Key(ducklake, iceberg))
    return keys


def _sort_order(table: OpenedTable) -> list[Key]:
    history, context = table.history, table.files.table
    fields = sort_fields(history.sort_keys, context.schemas.schema_at(table.snapshot_id).fields)
    names = _names(table)
    words = [f"{names[f.source_id]} {f.direction} {f.null_order}" for f in fields]
    words = words or [""] * len(history.sort_keys)
    return [
        Key(_sort_key_text(key), word) for key, word in zip(history.sort_keys, words, strict=True)
    ]


def _sort_key_text(key: SortKey) -> str:
    """A sort key as DuckLake writes it; what the catalog lacks is left out."""
    null_order = key.null_order and key.null_order.replace("_", " ")
    return " ".join(filter(None, (key.expression, key.sort_direction, null_order)))


def _names(table: OpenedTable) -> dict[int, str]:
    return {
        column.column_id: column.column_name
        for column in table.history.columns
        if column.visible_at(table.snapshot_id)
    }
