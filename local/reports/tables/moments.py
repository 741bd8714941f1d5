"""The history of a table: what each snapshot did to it, and what it had then."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from pg8000.native import Connection
from polynya.ducklake.changes import changes_of
from polynya.ducklake.history import Totals, states, unservable_reason
from polynya.ducklake.queries.listing.changes import changes_at
from polynya.ducklake.queries.listing.entries import named
from polynya.ducklake.rows.listing import Change, NamedFrom
from polynya.errors import Refused
from polynya.files.table_files import TableFiles

from ..generator import Generator, OpenedTable
from ..lake.changes import KINDS, LARGEST_ID
from ..row_counts import Counts

CHANGES = {
    "append": {"inserted_into_table", "inlined_insert"},
    "delete": {"deleted_from_table", "inlined_delete"},
    "rewrite": {
        *("inline_flush", "flushed_inlined", "merge_adjacent", "compacted_table"),
        "rewrite_delete",
    },
}
"""What a snapshot did to the rows, by DuckLake's words."""


@dataclass(frozen=True, slots=True)
class Moment:
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
    """Why Iceberg clients do not see the snapshot."""


def moments(
    generator: Generator, con: Connection, files: TableFiles, opened: OpenedTable | None
) -> list[Moment]:
    """The snapshots that touched the table and that were read, oldest first.

    Args:
        opened: the same table for Iceberg clients; None: they do not get it.
    """
    history = files.history
    ids = [one.snapshot_id for one in history.snapshots]
    said = {one.snapshot_id: one for one in changes_at(history.lake, ids).run(con)}
    operations = _operations(opened)
    names = named([history.table.table_id], [], LARGEST_ID).run(con)
    rows = generator.row_counts(con, history, ids)
    found = []
    for snapshot, (_, state) in zip(history.snapshots, states(history.events, ids), strict=True):
        at = snapshot.snapshot_id
        kinds = _kinds(snapshot.changes_made, history.table.table_id)
        change = said.get(at, Change(at, snapshot.snapshot_time, "", None, None))
        found.append(
            Moment(
                snapshot_id=at,
                time=snapshot.snapshot_time,
                kind=_kind(kinds, is_new=at == history.table.begin_snapshot),
                words=list(dict.fromkeys([*_naming(names, at), *map(_words, sorted(kinds))])),
                operation=operations.get(at, ""),
                author=change.author or "",
                message=change.commit_message or "",
                counts=rows.counts(at, state),
                added_files=_changed(state["data"], "added", at),
                removed_files=_changed(state["data"], "removed", at),
                left_out=unservable_reason(files.unservable, at) or "",
            )
        )
    return found


def _operations(opened: OpenedTable | None) -> dict[int, str]:
    """Iceberg's operation by DuckLake's snapshot id."""
    snapshots = opened.metadata.snapshots if opened else []
    return {one.sequence_number: one.summary["operation"] for one in snapshots}


def _kinds(changes_made: str, table_id: int) -> frozenset[str]:
    try:
        return changes_of(changes_made, table_id)
    except Refused:  # the text is too long
        return frozenset()


def _words(kind: str) -> str:
    """What a writer did, without naming the table."""
    words = KINDS.get(kind, kind.replace("_", " "))
    return words.removesuffix(" into").removesuffix(" from").removesuffix(" of")


def _naming(names: list[NamedFrom], at: int) -> list[str]:
    """That a snapshot made the table, or gave it another name."""
    if names and names[0].begin_snapshot == at:
        return ["created the table"]
    before = [one for one in names if one.end_snapshot == at]
    if before and any(one.begin_snapshot == at for one in names):
        return [f"renamed it from {before[-1].full_name}"]
    return []


def _kind(kinds: Iterable[str], *, is_new: bool) -> str:
    found = {name for name, words in CHANGES.items() if words.intersection(kinds)}
    if "rewrite" in found:
        return "rewrite"
    if len(found) == 2:
        return "update"
    return found.pop() if found else "create" if is_new else "alter"


def _changed(totals: Totals, change: str, at: int) -> int:
    """Files that began or ended at the snapshot itself."""
    event = totals.added if change == "added" else totals.removed
    return event.files if event is not None and totals.changed_at == at else 0
