"""Snapshots of the lake in words: who changed what, and when."""

import re
from dataclasses import dataclass, replace
from datetime import datetime

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.changes import changes
from polynya.ducklake.queries.entries import named
from polynya.ducklake.rows.listing import Change, NamedFrom
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
class Deed:
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
    deeds: list[Deed]
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
    at = lake.snapshot_id if until is None else until
    found = changes(lake, at, PAGE_SIZE + 1).run(con)
    more = found[PAGE_SIZE].snapshot_id if len(found) > PAGE_SIZE else None
    return ChangesReport(lake.snapshot_id, more, snapshot_reports(con, found[:PAGE_SIZE]))


def snapshot_reports(con: Connection, found: list[Change]) -> list[SnapshotReport]:
    """Snapshots in words; each table under the name that it had."""
    matches = [match for one in found for match in CHANGE.finditer(one.changes_made)]
    ids = {int(match["id"]) for match in matches if match["id"]}
    wanted = [one for one in sorted(ids) if one <= LARGEST_ID]
    made = {_names(match)[-1] for match in matches if match["names"]}
    newest = max((one.snapshot_id for one in found), default=0)
    known = named(wanted, sorted(made), newest).run(con) if wanted or made else []
    # A rename is recorded as `created_…` with the new name: the id tells that it is none.
    others = {one.object_id for one in known if one.name in made} - set(wanted)
    if others:
        known = named(sorted({*wanted, *others}), sorted(made), newest).run(con)
    return [_snapshot_report(one, known) for one in found]


def _snapshot_report(change: Change, known: list[NamedFrom]) -> SnapshotReport:
    at = change.snapshot_id
    deeds = [_deed(match, at, known) for match in CHANGE.finditer(change.changes_made)]
    return SnapshotReport(
        snapshot_id=at,
        time=change.snapshot_time,
        author=change.author or "",
        message=change.commit_message or "",
        # An insert may have inlined some rows, and not others: two kinds, the same words.
        deeds=[*{(one.words, one.name, one.object_id): one for one in deeds}.values()],
        changes_made=change.changes_made,
    )


def _deed(match: re.Match[str], at: int, known: list[NamedFrom]) -> Deed:
    kind = match["kind"]
    words = KINDS.get(kind, kind.replace("_", " "))
    if match["id"] is not None:
        same = [one for one in known if one.object_id == int(match["id"])]
        name = same[-1].full_name if same else ""
        return _linked(Deed(kind, words, int(match["id"]), name), at, same)
    names = _names(match)
    same = [one for one in known if kind == f"created_{one.kind}" and _is_called(one, names)]
    if before := _name_before(at, same, known):
        words = f"renamed {before.full_name} to"
    return _linked(Deed(kind, words, None, dotted(*names)), at, same)


def _name_before(at: int, same: list[NamedFrom], known: list[NamedFrom]) -> NamedFrom | None:
    """The name that a table or view had until a snapshot gave it another; None: it is new."""
    begun = {(one.kind, one.object_id) for one in same if one.begin_snapshot == at}
    before = [one for one in known if (one.kind, one.object_id) in begun and one.end_snapshot == at]
    return before[-1] if before else None


def _linked(deed: Deed, at: int, same: list[NamedFrom]) -> Deed:
    """The change with the table's name at the snapshot, if it was there then."""
    there = [one for one in same if one.visible_at(at)]
    if not there:
        return deed
    one = there[-1]
    return replace(
        deed,
        name=one.full_name,
        object_kind=one.kind,
        namespace=one.namespace,
        table=one.name,
    )


def _names(match: re.Match[str]) -> list[str]:
    return [part.replace('""', '"') for part in QUOTED.findall(match["names"])]


def _is_called(one: NamedFrom, names: list[str]) -> bool:
    return [*one.names] == names
