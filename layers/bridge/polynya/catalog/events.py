"""The events of a lake since a snapshot, of which DuckLake's snapshots already are a log.

A consumer keeps one number, the last snapshot that it has seen, and requests the events after it.
Nothing is kept here. The REST specification has no such operation. `publish` is such a consumer: it
puts the events after the last published snapshot onto a bus of EventBridge.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, takewhile
from typing import Any

from pg8000.native import Connection

from polynya.ducklake.queries.snapshot_changes import MOST_NAMED, named

from ..access.policy import Rights
from ..ducklake.connection.database import retried
from ..ducklake.queries.snapshot_changes import MOST_CHANGES, changes_after
from ..ducklake.rows import listing
from ..ducklake.rows.listing import NamedChange, NamedFrom, looked_up, named_changes, renamed_ids
from ..runtime import budget
from ..runtime.errors import BadRequest, Expired
from ..runtime.namespaces import Namespace
from ..storage.event_bus import Entry, EventBus, Positions, compact_json
from .reader import Catalog
from .warehouse import Warehouse

MOST_SNAPSHOTS = 1000
DEFAULT_SNAPSHOTS = 100
"""The snapshots of an answer."""

MOST_OBJECTS = 1000
"""Tables and views of an answer whose names are looked up, unless one snapshot changes more."""

Event = dict[str, Any]
"""A snapshot and its changes, as JSON."""

Events = dict[str, Any]
"""The answer: `events`, oldest first, and `last-snapshot-id`, with which the next request
continues."""


@dataclass(frozen=True, slots=True)
class EventPage:
    """The changes after a snapshot, or the first part of them."""

    events: Sequence[Event]
    last_id: int
    """The snapshot after which the next page begins."""
    newest_id: int
    """The newest snapshot of the lake."""
    expired: range = range(0)
    """The snapshots before the next page that have expired."""


def events_after(catalog: Catalog, since: int | None, limit: int | None = None) -> Events:
    """The snapshots after one, oldest first, each with the changes that the caller may see.

    Args:
        since: the last snapshot that the caller has seen; None: the newest, to begin now.
        limit: the most snapshots of the answer.

    Raises:
        BadRequest: the lake has no such snapshot yet.
        Expired: one of the snapshots after it has expired.
    """
    page = event_page(catalog, since, limit)
    if since is not None and since > page.newest_id:
        raise BadRequest(f"since: the newest snapshot of the lake is {page.newest_id}, not {since}")
    if page.expired:
        raise Expired(
            f"snapshots {page.expired[0]} to {page.expired[-1]} have expired, so what they changed "
            f"is not known; read the tables again, and continue with since={page.last_id}"
        )
    return {"events": page.events, "last-snapshot-id": page.last_id}


@retried
def event_page(catalog: Catalog, since: int | None, limit: int | None = None) -> EventPage:
    """As `events_after`, but expired snapshots are a page of their own instead of an error."""
    most = min(limit or DEFAULT_SNAPSHOTS, MOST_SNAPSHOTS)
    with catalog.database.transaction() as con:
        readable = catalog.readable(con)
        newest = readable.snapshot_id
        if since is None or since >= newest:
            return EventPage([], newest, newest)
        rows = changes_after(readable.lake, since, newest, most).run(con)
        # DuckLake's ids have no gaps: a snapshot that is not there has expired.
        first = rows[0].snapshot_id if rows else newest
        if first > since + 1:
            return EventPage([], first - 1, newest, range(since + 1, first))
        rows = _page(rows)
        namings = _namings(con, rows, readable.lake.snapshot_id)
    events = [event for row in rows if (event := _event(row, namings, readable.rights))]
    return EventPage(events, rows[-1].snapshot_id, newest)


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


def _event(row: listing.Change, namings: list[NamedFrom], rights: Rights) -> Event | None:
    """A snapshot with the changes that the caller may see; None if there is none."""
    changes = [*named_changes(row.snapshot_id, row.changes_made, namings)]
    visible = [change for change in changes if _may_see(change, namings, rights)]
    if not visible and not rights.all_tables:
        return None
    event: Event = {
        "snapshot-id": row.snapshot_id,
        "timestamp-ms": int(row.snapshot_time.timestamp() * 1000),
        "changes": [*_changes(visible)],
    }
    if len(visible) == len(changes) and not rights.hidden:
        # Author and message may be about everything that the snapshot changed, also about values
        # of columns that the caller does not see.
        texts = {"author": row.author, "message": row.commit_message}
        event |= {key: text for key, text in texts.items() if text}
    # The statements read no more than that.
    if len(row.changes_made) >= MOST_CHANGES or len(namings) >= MOST_NAMED:
        event["is-cut"] = True
    return event


def _may_see(change: NamedChange, namings: list[NamedFrom], rights: Rights) -> bool:
    """Whether the caller may read the changed object under its newest name, as everywhere.

    An object without a row in the catalog has no newest name.
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


SNAPSHOT, SKIPPED = "DuckLake Snapshot", "DuckLake Snapshots Skipped"
"""The `detail-type` of events on the bus."""

RESERVE_SECONDS = 12
"""The time that must be left when the last event is put: for two attempts of five seconds each."""


def publish(catalog: Catalog, bus: EventBus, positions: Positions) -> int | None:
    """Put the events after the last published snapshot onto a bus, at least once, in order.

    The first time, earlier events are not published. An event says where snapshots are left out.
    Events that do not fit into the time budget are left to the next invocation.

    Returns:
        The number of events; None: another process publishes them now.

    Raises:
        Misconfigured, ServiceUnavailable: the lake, the bus or the table of positions cannot be
            used. Events that were put before are recorded.
    """
    warehouse, published = catalog.settings.warehouse, 0
    with positions.turn(warehouse) as turn:
        if turn is None:
            return None
        while True:
            page = event_page(catalog, turn.snapshot_id)
            last_id = turn.snapshot_id
            try:
                for last_put_id, entry in _entries(warehouse, turn.snapshot_id, page):
                    if budget.seconds_left() < RESERVE_SECONDS:
                        return published
                    bus.put(entry)
                    published, last_id = published + 1, last_put_id
                last_id = page.last_id
            finally:
                if last_id is not None:
                    turn.advance(last_id)
            if page.last_id == page.newest_id:
                return published


def _entries(warehouse: str, since: int | None, page: EventPage) -> Iterator[tuple[int, Entry]]:
    """The events of a page for the bus, each with the last snapshot that it covers."""
    if reason := _why_skipped(since, page):
        skipped = {"first-snapshot-id": page.expired[0]} if page.expired else {}
        key = f"{Warehouse(warehouse, page.last_id)}-skipped"
        detail = {"warehouse": warehouse, "idempotency-key": key, "reason": reason, **skipped}
        yield page.last_id, Entry(SKIPPED, {**detail, "last-snapshot-id": page.last_id})
    for event in page.events:
        snapshot_id = event["snapshot-id"]
        key = str(Warehouse(warehouse, snapshot_id))
        time = datetime.fromtimestamp(event["timestamp-ms"] / 1000, UTC)
        detail = {"warehouse": warehouse, "idempotency-key": key, **event}
        yield snapshot_id, _shortened(Entry(SNAPSHOT, detail, time))


def _why_skipped(since: int | None, page: EventPage) -> str | None:
    """Why no events lead to the page; None: they do."""
    if since is None:
        return "began"
    if since > page.newest_id:
        return "replaced"
    return "expired" if page.expired else None


def _shortened(entry: Entry) -> Entry:
    """An event for the bus with as many of its changes as EventBridge takes."""
    if EventBus.bytes_left(entry) >= 0:
        return entry
    cut = replace(entry, detail={**entry.detail, "changes": [], "is-cut": True})
    if EventBus.bytes_left(cut) < 0:
        detail = {key: cut.detail[key] for key in cut.detail.keys() - {"author", "message"}}
        cut = replace(cut, detail=detail)
    most = EventBus.bytes_left(cut)
    changes = entry.detail["changes"]
    sizes = accumulate(len(f"{compact_json(change)},".encode()) for change in changes)
    number = sum(1 for _ in takewhile(lambda size: size <= most, sizes))
    return replace(cut, detail={**cut.detail, "changes": changes[:number]})
