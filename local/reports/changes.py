"""Snapshots of the lake in words: who changed what, and when."""

import re
from dataclasses import dataclass, replace
from datetime import datetime

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.changes import changes, changes_at
from polynya.ducklake.queries.entries import named
from polynya.ducklake.rows import listing
from polynya.ducklake.rows.listing import NamedFrom
from polynya.ducklake.rows.objects import Lake
from polynya.runtime.errors import NoSuchTable
from polynya.runtime.namespaces import dotted

PAGE_SIZE = 50
LARGEST_ID = 2**63 - 1

KINDS = {
    "created_schema": "created the namespace",
    "created_table": "created the table",
    "created_view": "created the view",
    "created_scalar_macro": "created the macro",
    "created_table_macro": "created the macro",
    "dropped_schema": "dropped a namespace",
    "dropped_table": "dropped a table",
    "dropped_view": "dropped a view",
    "altered_table": "altered",
    "altered_view": "altered the view",
    "inserted_into_table": "inserted rows into",
    "inlined_insert": "inserted rows into",
    "deleted_from_table": "deleted rows from",
    "inlined_delete": "deleted rows from",
    "inline_flush": "moved inlined rows to files of",
    "flushed_inlined": "moved inlined rows to files of",
    "merge_adjacent": "merged files of",
    "compacted_table": "compacted files of",
    "rewrite_delete": "rewrote files with deletes of",
}
"""What a writer did, by the kind of a change in `changes_made`."""

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
CHANGE = re.compile(r'(?P<kind>\w+):(?:(?P<id>\d+)|(?P<names>"(?:[^"]|"")*"(?:\."(?:[^"]|"")*")*))')


@dataclass(frozen=True, slots=True)
class Change:
    """One change in words."""

    kind: str
    """DuckLake's word."""
    words: str
    object_id: int | None
    """The table or view; None: it is new, and only its name is known."""
    name: str
    """Its full name, or the last one that it had; empty: the catalog has none any more."""
    object_kind: str = ""
    """`table` or `view`; empty: the snapshot does not have it."""
    namespace: str = ""
    table: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """A snapshot of the lake, with what its writer said of it."""

    snapshot_id: int
    time: datetime
    author: str
    message: str
    changes: list[Change]
    changes_made: str
    """DuckLake's text."""


@dataclass(frozen=True, slots=True)
class ChangesReport:
    """A page of the lake's history, newest first."""

    newest: int
    since: int | None
    """The snapshot that the next page begins with; None: this is the last page."""
    snapshots: list[SnapshotReport]


def changes_report(con: Connection, until: int | None) -> ChangesReport:
    """Read a page of the lake's history.

    Args:
        until: the newest snapshot of the page; None: that of the lake.

    Raises:
        Misconfigured: the catalog is no lake.
    """
    lake = queries.lake().run(con)
    snapshot_id = lake.snapshot_id if until is None else until
    page = changes(lake, snapshot_id, PAGE_SIZE + 1).run(con)
    more = page[PAGE_SIZE].snapshot_id if len(page) > PAGE_SIZE else None
    return ChangesReport(lake.snapshot_id, more, snapshot_reports(con, page[:PAGE_SIZE]))


def snapshot_of(con: Connection, lake: Lake, snapshot_id: int | None) -> SnapshotReport:
    """A snapshot of the lake; None: the newest.

    Raises:
        NoSuchTable: the lake does not have it.
    """
    if snapshot_id is None:
        snapshot_id = lake.snapshot_id
    rows = changes_at(lake, [snapshot_id]).run(con)
    if not rows:
        raise NoSuchTable(
            f"the lake has no snapshot {snapshot_id}, or it has expired; the newest is "
            f"{lake.snapshot_id}"
        )
    return snapshot_reports(con, rows)[0]


def snapshot_reports(con: Connection, rows: list[listing.Change]) -> list[SnapshotReport]:
    """Snapshots in words; each table under the name that it had."""
    matches = [match for row in rows for match in CHANGE.finditer(row.changes_made)]
    ids = {int(match["id"]) for match in matches if match["id"]}
    object_ids = [id_ for id_ in sorted(ids) if id_ <= LARGEST_ID]
    created = {_names(match)[-1] for match in matches if match["names"]}
    newest = max((row.snapshot_id for row in rows), default=0)
    namings = named(object_ids, sorted(created), newest).run(con) if object_ids or created else []
    # A rename is recorded as `created_…` with the new name: the id tells that it is none.
    renamed = {naming.object_id for naming in namings if naming.name in created} - set(object_ids)
    if renamed:
        namings = named(sorted({*object_ids, *renamed}), sorted(created), newest).run(con)
    return [_snapshot_report(row, namings) for row in rows]


def _snapshot_report(row: listing.Change, namings: list[NamedFrom]) -> SnapshotReport:
    snapshot_id = row.snapshot_id
    changes = [_change(match, snapshot_id, namings) for match in CHANGE.finditer(row.changes_made)]
    return SnapshotReport(
        snapshot_id=snapshot_id,
        time=row.snapshot_time,
        author=row.author or "",
        message=row.commit_message or "",
        # An insert may have inlined some rows, and not others: two kinds, the same words.
        changes=[
            *{(change.words, change.name, change.object_id): change for change in changes}.values()
        ],
        changes_made=row.changes_made,
    )


def _change(match: re.Match[str], snapshot_id: int, namings: list[NamedFrom]) -> Change:
    kind = match["kind"]
    words = KINDS.get(kind, kind.replace("_", " "))
    if match["id"] is not None:
        same = [naming for naming in namings if naming.object_id == int(match["id"])]
        name = same[-1].full_name if same else ""
        return _linked(Change(kind, words, int(match["id"]), name), snapshot_id, same)
    names = _names(match)
    same = [
        naming
        for naming in namings
        if kind == f"created_{naming.kind}" and [*naming.names] == names
    ]
    if before := _name_before(snapshot_id, same, namings):
        words = f"renamed {before.full_name} to"
    return _linked(Change(kind, words, None, dotted(*names)), snapshot_id, same)


def _name_before(
    snapshot_id: int, same: list[NamedFrom], namings: list[NamedFrom]
) -> NamedFrom | None:
    """The name that a table or view had until a snapshot gave it another; None: it is new."""
    begun = {
        (naming.kind, naming.object_id) for naming in same if naming.begin_snapshot == snapshot_id
    }
    before = [
        naming
        for naming in namings
        if (naming.kind, naming.object_id) in begun and naming.end_snapshot == snapshot_id
    ]
    return before[-1] if before else None


def _linked(change: Change, snapshot_id: int, same: list[NamedFrom]) -> Change:
    """The change with the table's name at the snapshot, if it was there then."""
    visible = [naming for naming in same if naming.visible_at(snapshot_id)]
    if not visible:
        return change
    naming = visible[-1]
    return replace(
        change,
        name=naming.full_name,
        object_kind=naming.kind,
        namespace=naming.namespace,
        table=naming.name,
    )


def _names(match: re.Match[str]) -> list[str]:
    return [part.replace('""', '"') for part in QUOTED.findall(match["names"])]
