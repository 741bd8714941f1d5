"""Snapshots of the lake in words: who changed what, and when."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.snapshot_changes import named
from polynya.ducklake.queries.table_columns import columns_of_tables
from polynya.ducklake.rows import listing
from polynya.ducklake.rows.listing import (
    LARGEST_ID,
    NamedFrom,
    looked_up,
    named_changes,
    renamed_ids,
)
from polynya.ducklake.rows.objects import ID, Column, Lake
from polynya.mapping.properties import stored_texts
from polynya.runtime.errors import NoSuchTable
from polynya.runtime.namespaces import Namespace, dotted, parsed

from ..queries.lake_snapshots import LakeSize, authors, changes, changes_at, clients_at, growth
from .columns import alterations

PAGE_SIZE = 50

MOST_AUTHORS = 100
MOST_SIZES = 100
"""About how many points the chart of the lake's size has."""

GROUPS = {
    "rows": ("inserted_into_table", "deleted_from_table", "inlined_insert", "inlined_delete"),
    "columns, names and properties": ("altered_table", "altered_view"),
    "created": ("created_schema", "created_table", "created_view"),
    "dropped": ("dropped_schema", "dropped_table", "dropped_view"),
    "maintenance": (
        *("inline_flush", "flushed_inlined", "merge_adjacent", "compacted_table"),
        "rewrite_delete",
    ),
}
"""The types of changes in each filter of the history."""

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


@dataclass(frozen=True, slots=True)
class Change:
    """One change in words."""

    kind: str
    """DuckLake's word."""
    words: str
    object_id: int | None
    """The table or view; None: it is new, and only its name is known."""
    name: str
    """Its full name, or the last one that it had; empty: the catalog no longer has one."""
    details: tuple[str, ...] = ()
    """The changes of an `altered_table` to columns, in words."""
    rows: int | None = None
    """How many rows were inserted, or deleted; None: not known, or it changes no rows."""
    object_kind: str = ""
    """`table` or `view`; empty: the snapshot does not have it."""
    namespace: str = ""
    table: str = ""


@dataclass(frozen=True, slots=True)
class SnapshotReport:
    """A snapshot of the lake, with its author, its message and its changes."""

    snapshot_id: int
    time: datetime
    author: str
    message: str
    changes: list[Change]
    changes_made: str
    """The changes as DuckLake stores them."""
    client: str = ""
    """The Iceberg client that committed it; empty: DuckLake itself did."""


@dataclass(frozen=True, slots=True)
class ChangesQuery:
    """Which snapshots are listed."""

    until: int | None = None
    """The newest one; None: that of the lake."""
    since: datetime | None = None
    """The earliest time; None: from the beginning."""
    author: str = ""
    table: str = ""
    """A present or past name of a table or view, as people write it; empty: all."""
    kind: str = ""
    """One of `GROUPS`; empty: all."""

    @property
    def is_all(self) -> bool:
        """Whether all snapshots are listed, from the newest on."""
        return self == ChangesQuery()


@dataclass(frozen=True, slots=True)
class ChangesReport:
    """A page of the lake's history, newest first."""

    query: ChangesQuery
    authors: list[str]
    newest: int
    sizes: list[LakeSize]
    """The files of the lake at some snapshots, oldest first; only if all snapshots are listed."""
    since: int | None
    """The snapshot that the next page begins with; None: this is the last page."""
    snapshots: list[SnapshotReport]


def changes_report(con: Connection, query: ChangesQuery) -> ChangesReport:
    """Read a page of the lake's history.

    Raises:
        BadRequest: the text for the table is not a valid name.
        Misconfigured: the catalog has no snapshot.
    """
    lake = queries.lake().run(con)
    snapshot_id = lake.snapshot_id if query.until is None else query.until
    page = changes(
        lake,
        snapshot_id,
        PAGE_SIZE + 1,
        since=query.since,
        author=query.author or None,
        kinds=GROUPS.get(query.kind, ()),
        table=_ids_and_names(con, query.table) if query.table else None,
    ).run(con)
    more = page[PAGE_SIZE].snapshot_id if len(page) > PAGE_SIZE else None
    by = authors(lake, MOST_AUTHORS).run(con)
    reports = snapshot_reports(con, lake, page[:PAGE_SIZE])
    sizes = growth(snapshot_id, MOST_SIZES).run(con) if query.is_all else []
    return ChangesReport(query, by, lake.snapshot_id, sizes, more, reports)


def _ids_and_names(con: Connection, text: str) -> tuple[list[int], Namespace]:
    """The ids of all objects that ever had a name, and the levels of the name.

    `changes_made` has the ids of most objects, and the names of new ones.
    """
    names = parsed(text)
    namings = named([], [names[-1]], LARGEST_ID).run(con)
    # A name without a namespace matches in every namespace.
    ids = [naming.object_id for naming in namings if naming.names[-len(names) :] == names]
    return ids, names


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
    return snapshot_reports(con, lake, rows)[0]


def snapshot_reports(
    con: Connection, lake: Lake, rows: list[listing.Change]
) -> list[SnapshotReport]:
    """Describe snapshots in words; tables have the names that they had then."""
    object_ids, created = looked_up(row.changes_made for row in rows)
    newest = max((row.snapshot_id for row in rows), default=0)
    namings = named(object_ids, created, newest).run(con) if object_ids or created else []
    if renamed := renamed_ids(object_ids, created, namings):
        namings = named([*object_ids, *renamed], created, newest).run(con)
    altered = {int(id_) for row in rows for id_ in ALTERED.findall(row.changes_made)}
    ids = sorted(altered.intersection(object_ids))
    columns = columns_of_tables(ids, newest).run(con) if ids else {}
    clients = clients_at(lake, [row.snapshot_id for row in rows]).run(con)
    return [
        replace(
            _snapshot_report(row, namings, columns),
            client=client_of(*clients[row.snapshot_id]) if row.snapshot_id in clients else "",
        )
        for row in rows
    ]


def client_of(summary: str, principal: str = "") -> str:
    """The name of the Iceberg client that committed a snapshot, from the snapshot's summary.

    Args:
        summary: a JSON object; or empty.
        principal: the caller; empty: not known.
    """
    values = stored_texts(summary)
    parts = [values.get("engine-name", ""), values.get("engine-version", "")]
    name = " ".join(filter(None, parts)) or "an Iceberg client"
    return f"{name} as {principal}" if principal else name


ALTERED = re.compile(rf"(?:^|,)altered_table:{ID}(?=,|$)")


def _snapshot_report(
    row: listing.Change, namings: list[NamedFrom], columns: Mapping[int, list[Column]]
) -> SnapshotReport:
    changes = [
        replace(
            _described(change),
            details=tuple(alterations(columns.get(change.object_id or -1, ()), row.snapshot_id))
            if change.kind == "altered_table"
            else (),
        )
        for change in named_changes(row.snapshot_id, row.changes_made, namings)
    ]
    return SnapshotReport(
        snapshot_id=row.snapshot_id,
        time=row.snapshot_time,
        author=row.author or "",
        message=row.commit_message or "",
        # An insert may inline only some of its rows: two kinds with the same words.
        changes=[
            *{(change.words, change.name, change.object_id): change for change in changes}.values()
        ],
        changes_made=row.changes_made,
    )


def _described(change: listing.NamedChange) -> Change:
    words = KINDS.get(change.kind, change.kind.replace("_", " "))
    if change.before:
        words = f"renamed {dotted(*change.before)} to"
    report = Change(change.kind, words, change.object_id, dotted(*change.names))
    if (naming := change.naming) is None:
        return report
    kind, namespace, name = naming.kind, naming.namespace, naming.name
    return replace(report, object_kind=kind, namespace=namespace, table=name)
