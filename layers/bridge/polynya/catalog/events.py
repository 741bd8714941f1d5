"""What happened in a lake since a snapshot: DuckLake's snapshots are a log already.

A consumer keeps one number, the last snapshot that it has seen, and asks for what came after it.
Nothing is kept here. The REST specification has no such operation.
"""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from pg8000.native import Connection

from ..access.policy import Rights
from ..ducklake.connection.database import retried
from ..ducklake.queries.changes import MOST_CHANGES, changes_after
from ..ducklake.queries.entries import MOST_NAMED, named
from ..ducklake.rows import listing
from ..ducklake.rows.listing import (
    NamedChange,
    NamedFrom,
    looked_up,
    named_changes,
    renamed_ids,
)
from ..runtime.errors import BadRequest, Expired
from ..runtime.namespaces import Namespace
from .reader import Catalog

MOST_SNAPSHOTS = 1000
DEFAULT_SNAPSHOTS = 100
"""The snapshots of an answer."""

MOST_OBJECTS = 1000
"""Tables and views of an answer whose names are looked up, unless one snapshot changes more."""

Events = dict[str, Any]
"""The answer: `events`, oldest first, and `last-snapshot-id`, after which the next ones come."""


@retried
def events_after(catalog: Catalog, since: int | None, limit: int | None = None) -> Events:
    """The snapshots after one, oldest first, each with what it changed, as the caller may see it.

    Args:
        since: the last snapshot that the caller has seen; None: the newest, to begin now.
        limit: the most snapshots of the answer.

    Raises:
        BadRequest: the lake has no such snapshot yet.
        Expired: one of the snapshots after it has expired.
    """
    most = min(limit or DEFAULT_SNAPSHOTS, MOST_SNAPSHOTS)
    with catalog.database.transaction() as con:
        readable = catalog.readable(con)
        newest = readable.snapshot_id
        if since is None or since == newest:
            return {"events": [], "last-snapshot-id": newest}
        if since > newest:
            raise BadRequest(f"since: the newest snapshot of the lake is {newest}, not {since}")
        rows = changes_after(readable.lake, since, newest, most).run(con)
        # DuckLake's ids have no gaps: a snapshot that is not there has expired.
        first = rows[0].snapshot_id if rows else newest
        if first > since + 1:
            raise Expired(
                f"snapshots {since + 1} to {first - 1} have expired, so what they changed is not "
                f"known; read the tables again, and go on with since={first - 1}"
            )
        rows = _page(rows)
        namings = _namings(con, rows, readable.lake.snapshot_id)
    events = [event for row in rows if (event := _event(row, namings, readable.rights))]
    return {"events": events, "last-snapshot-id": rows[-1].snapshot_id}


def _page(rows: Sequence[listing.Change]) -> list[listing.Change]:
    """The rows up to the next expired snapshot, and with not too many changes; at least one."""
    first = rows[0].snapshot_id
    page = [row for place, row in enumerate(rows) if row.snapshot_id == first + place]
    objects: set[int | str] = set()

    def fits(row: listing.Change) -> bool:
        for changed in looked_up([row.changes_made]):
            objects.update(changed)
        return len(objects) <= MOST_OBJECTS

    return [*takewhile(fits, page)] or page[:1]


def _namings(con: Connection, rows: Sequence[listing.Change], newest: int) -> list[NamedFrom]:
    """All names up to the newest snapshot, because rights depend on the newest one."""
    ids, names = looked_up(row.changes_made for row in rows)
    if not ids and not names:
        return []
    namings = named(ids, names, newest).run(con)
    # `changes_made` has only the new name of a rename: the one before is found by the id.
    if renamed := renamed_ids(ids, names, namings):
        namings = named([*ids, *renamed], names, newest).run(con)
    return namings


def _event(row: listing.Change, namings: list[NamedFrom], rights: Rights) -> dict[str, Any] | None:
    """A snapshot with the changes that the caller may see; None if there is none."""
    changes = [*named_changes(row.snapshot_id, row.changes_made, namings)]
    visible = [change for change in changes if _may_see(change, namings, rights)]
    if not visible and not rights.all_tables:
        return None
    event: dict[str, Any] = {
        "snapshot-id": row.snapshot_id,
        "timestamp-ms": int(row.snapshot_time.timestamp() * 1000),
        "changes": [*_changes(visible)],
    }
    if len(visible) == len(changes):
        # They may speak of everything that the snapshot changed.
        texts = {"author": row.author, "message": row.commit_message}
        event |= {key: text for key, text in texts.items() if text}
    # The statements read no more than that.
    if len(row.changes_made) >= MOST_CHANGES or len(namings) >= MOST_NAMED:
        event["is-cut"] = True
    return event


def _may_see(change: NamedChange, namings: list[NamedFrom], rights: Rights) -> bool:
    """Whether the caller may read what changed under its newest name, as everywhere.

    What has no row in the catalog any more has no newest name.
    """
    if rights.all_tables:
        return True
    if change.kind.endswith("_schema"):
        return bool(change.names) and rights.may_read_namespace(change.names)
    object_id = change.naming.object_id if change.naming else change.object_id
    newest = [naming.names for naming in namings if naming.object_id == object_id][-1:]
    return any(rights.may_read_table(names[:-1], names[-1]) for names in newest)


def _changes(changes: Sequence[NamedChange]) -> Iterator[dict[str, Any]]:
    for change in changes:
        is_schema = change.kind.endswith("_schema")
        yield {
            "type": change.kind,
            **({} if change.object_id is None else {"id": change.object_id}),
            **_identifier(change.names, is_schema=is_schema),
            **({"renamed-from": _identifier(change.before)} if change.before else {}),
        }


def _identifier(names: Namespace, *, is_schema: bool = False) -> dict[str, Any]:
    if not names:
        return {}
    return (
        {"namespace": list(names)}
        if is_schema
        else {
            "namespace": list(names[:-1]),
            "name": names[-1],
        }
    )
