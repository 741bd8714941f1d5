"""A table or a view for a page: its name, its status for clients, and how each client reads it.

`open_at` opens a table, `Statuses` finds the statuses of tables in a list, `reading_report` has the
snippets and the faults of each client.
"""

import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from threading import Lock

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.snapshot_changes import named
from polynya.ducklake.rows.listing import LARGEST_ID
from polynya.ducklake.rows.objects import Lake, Table
from polynya.runtime.errors import NoSuchTable, PolynyaError, Refused
from polynya.runtime.namespaces import dotted, parsed

from .changes import SnapshotReport, snapshot_of
from .client_faults import (
    FAILS,
    WRONG,
    Fault,
    clients_by_kind,
    known_faults,
    measured_clients,
    others,
    own_clients,
)
from .findings import HIDDEN, UNREADABLE, WRONG_ROWS, worst
from .generator import Generator, OpenedTable, served_lake
from .snippets import CLIENTS, Block, Place, blocks
from .table_facts import table_facts

WINDOW = 120
"""How many snapshots of a table are shown at once."""
CAPACITY = 20_000
CPU_SECONDS = 0.15
"""The CPU time that the statuses of a page may take; the next request finds the others."""


@dataclass(frozen=True, slots=True)
class Status:
    """What clients get of a table or a view."""

    word: str
    """`served`; `partly`: columns are hidden; `refused`; `fails`: it cannot be read; `unknown`:
    not found yet."""
    reason: str = ""
    """Why it is refused or fails, and what to do about it."""
    hidden: dict[str, str] = field(default_factory=dict)
    """The reason by dotted name of a column."""
    defaults: dict[str, str] = field(default_factory=dict)
    """Columns with a default that some clients do not read, and what they read instead."""
    wrong: list[str] = field(default_factory=list)
    """Clients that are known to read wrong rows."""
    failing: list[str] = field(default_factory=list)
    """Clients that are known not to read all of it."""
    own_wrong: list[str] = field(default_factory=list)
    """Those of `wrong` that are the owner's."""
    own_failing: list[str] = field(default_factory=list)

    @property
    def worst(self) -> str:
        """The worst consequence for the owner's clients, as in `doctor`'s findings; empty: not
        known yet."""
        if self.word == UNKNOWN.word:
            return ""
        consequences = [
            (WRONG_ROWS, self.own_wrong),
            (UNREADABLE, self.word in ("refused", "fails") or self.own_failing),
            (HIDDEN, self.hidden),
        ]
        return worst(consequence for consequence, is_so in consequences if is_so)

    @property
    def others(self) -> dict[str, list[str]]:
        """Sentences about the faults of clients that are not the owner's, with their names."""
        own = {*self.own_wrong, *self.own_failing}
        return others({WRONG: self.wrong, FAILS: self.failing}, own)


UNKNOWN = Status("unknown")


@dataclass(frozen=True, slots=True)
class Subject:
    """A table or a view, and when it last changed."""

    kind: str
    object_id: int
    namespace: str
    name: str
    changed_at: int
    """The newest snapshot that changed it."""


def status_of(table: OpenedTable) -> Status:
    """What clients get of a table, without their faults."""
    try:
        word = "partly" if table.hidden_columns else "served"
    except Refused as error:
        return Status("refused", str(error), dict(table.files.table.schemas.hidden))
    return Status(word, "", table.hidden_columns, table.default_columns)


def lost_clients(table: OpenedTable) -> list[str]:
    """The clients that read all of a table, but could not if it had format version 3."""
    upgraded = table.with_version_3
    if upgraded is None:
        return []
    now, later = (
        clients_by_kind(known_faults(table_facts(opened)))[FAILS] for opened in (table, upgraded)
    )
    return [client for client in later if client not in now]


class Statuses:
    """Finds statuses, and caches each until its table changes."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._cached: OrderedDict[tuple[str, int, int], Status] = OrderedDict()
        self._lock = Lock()

    def read(self, subjects: Iterable[Subject], snapshot_id: int) -> list[Status]:
        """The statuses at a snapshot; `UNKNOWN` where there was no time to find one."""
        started = time.thread_time()
        statuses = []
        for subject in subjects:
            status = self._cached.get(_key(subject))
            if status is None and time.thread_time() - started < CPU_SECONDS:
                status = self._put(subject, self._find(subject, snapshot_id))
            statuses.append(status or UNKNOWN)
        return statuses

    def _put(self, subject: Subject, status: Status) -> Status:
        if status.word != "fails":  # the next attempt may succeed
            with self._lock:
                self._cached[_key(subject)] = status
                if len(self._cached) > CAPACITY:
                    self._cached.popitem(last=False)
        return status

    def _find(self, subject: Subject, snapshot_id: int) -> Status:
        if subject.kind == "view":
            return Status("served")

        def find(con: Connection) -> Status:
            return self._status(con, queries.lake().run(con), subject, snapshot_id)

        try:
            return self._generator.read(find)
        except Refused as error:
            return Status("refused", str(error))
        except PolynyaError as error:
            return Status("fails", str(error))

    def _status(self, con: Connection, lake: Lake, subject: Subject, snapshot_id: int) -> Status:
        pair = queries.table_at(snapshot_id, parsed(subject.namespace), subject.name).run(con)
        if pair is None:
            return UNKNOWN
        table = self._generator.open_table(con, lake, *pair, snapshot_id, since=snapshot_id)
        clients = clients_by_kind(known_faults(table_facts(table)))
        own = own_clients(self._generator.config.files.clients)
        return replace(
            status_of(table),
            wrong=clients[WRONG],
            failing=clients[FAILS],
            own_wrong=[name for name in clients[WRONG] if name in own],
            own_failing=[name for name in clients[FAILS] if name in own],
        )


def _key(subject: Subject) -> tuple[str, int, int]:
    return subject.kind, subject.object_id, subject.changed_at


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table by its name, at a snapshot."""

    namespace: str
    """All levels, as people write them; the same holds for all reports."""
    name: str
    snapshot_id: int | None = None
    """None: the newest."""


@dataclass(frozen=True, slots=True)
class TableHead:
    """What each page of a table shows of it."""

    namespace: str
    name: str
    table_id: int
    uuid: str
    newest: int
    """The lake's newest snapshot."""
    snapshot: SnapshotReport
    """The shown one."""
    status: Status
    is_dropped: bool
    """The newest snapshot does not have it."""


class Renamed(PolynyaError):
    """The table has another name at the snapshot."""

    status = 307

    def __init__(self, namespace: str, name: str) -> None:
        full_name = f"{namespace}.{dotted(name)}"
        super().__init__(f"at this snapshot the table is called {full_name}")
        self.namespace, self.name = namespace, name


def open_at(
    generator: Generator, con: Connection, ref: TableRef, *, limit: int = WINDOW
) -> tuple[OpenedTable, TableHead]:
    """Open a table.

    Args:
        limit: how many of its snapshots are read.

    Raises:
        NoSuchTable: the lake has no such snapshot, or none of this name at it.
        Renamed: it has another name then.
        Refused: the lake is not served, or the table's own row is broken.
    """
    lake = served_lake(con)
    shown = snapshot_of(con, lake, ref.snapshot_id)
    snapshot_id = shown.snapshot_id
    pair = queries.table_at(snapshot_id, parsed(ref.namespace), ref.name).run(con)
    if pair is None:
        raise _missing(con, ref, snapshot_id)
    schema, row = pair
    table = generator.open_table(con, lake, schema, row, snapshot_id, limit=limit)
    head = TableHead(
        namespace=schema.full_name,
        name=row.table_name,
        table_id=row.table_id,
        uuid=row.table_uuid,
        newest=lake.snapshot_id,
        snapshot=shown,
        status=status_of(table),
        is_dropped=_is_dropped(con, row),
    )
    return table, head


def _is_dropped(con: Connection, table: Table) -> bool:
    """Whether the newest snapshot lacks the table; its row ends when it is renamed, too."""
    if table.end_snapshot is None:
        return False
    newest = queries.table_of_uuid(table.table_uuid).run(con)
    return newest is None or newest[1].end_snapshot is not None


def _missing(con: Connection, ref: TableRef, snapshot_id: int) -> PolynyaError:
    """The error for a name that no table has at a snapshot.

    Renamed if a table that has the name at another snapshot exists; else NoSuchTable, which says
    when the name began or ended.
    """
    name = f"{ref.namespace}.{dotted(ref.name)}"
    had = [
        naming
        for naming in named([], [ref.name], LARGEST_ID).run(con)
        if (naming.kind, naming.namespace) == ("table", ref.namespace)
    ]
    ids = [naming.object_id for naming in had]
    namings = named(ids, [], snapshot_id).run(con) if ids else []
    visible = [naming for naming in namings if naming.visible_at(snapshot_id)]
    if visible:
        return Renamed(visible[-1].namespace, visible[-1].name)
    if had and had[0].begin_snapshot > snapshot_id:
        return NoSuchTable(
            f"{name} did not exist at snapshot {snapshot_id}: "
            f"it began with snapshot {had[0].begin_snapshot}"
        )
    ended = f"; it ended with snapshot {had[-1].end_snapshot}" if had else ""
    return NoSuchTable(f"there is no table {name} at snapshot {snapshot_id}{ended}")


@dataclass(frozen=True, slots=True)
class ClientReport:
    """How one client reads a table, and its faults with it."""

    name: str
    version: str
    """The version whose faults are known."""
    note: str
    blocks: tuple[Block, ...]
    """To copy in this order."""
    faults: tuple[Fault, ...]
    is_own: bool
    """Whether it is one of the owner's."""


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """A table at a snapshot, for all clients."""

    head: TableHead
    place: Place
    clients: tuple[ClientReport, ...]


def reading_report(table: OpenedTable, head: TableHead, place: Place) -> ReadingReport:
    """How each client reads a table; no clients if they do not get it."""
    faults = known_faults(table_facts(table)) if table.is_served else []
    own = own_clients(table.generator.config.files.clients)
    return ReadingReport(
        head,
        place,
        tuple(
            ClientReport(
                client.name,
                measured_clients()[client.name].version,
                client.note,
                blocks(client, place),
                tuple(fault for fault in faults if fault.client == client.name),
                client.name in own,
            )
            for client in CLIENTS
            if table.is_served and client.connecting(place)
        ),
    )


def listed_snapshot(table: OpenedTable) -> int | None:
    """The Iceberg snapshot in the newest metadata that has the table in this state.

    None: the table has another name now, or does not exist, or clients do not see the snapshot.
    """
    lake, history = table.lake, table.history
    name_then = history.schema.namespace, history.table.table_name
    now = queries.table_at(lake.snapshot_id, *name_then).run(table.con)
    if now is None or now[1].table_id != table.table_id:
        return None
    try:
        newest = table.generator.open_table(table.con, lake, *now, since=0).metadata
    except Refused:
        return None
    listed = [
        snapshot for snapshot in newest.snapshots if snapshot.sequence_number <= table.snapshot_id
    ]
    touched = [snapshot.snapshot_id for snapshot in history.snapshots]
    if not listed or not touched or listed[-1].sequence_number != touched[-1]:
        return None  # the state of this snapshot is not listed, but an older one is
    return listed[-1].snapshot_id
