"""A table of the lake at a snapshot, whether Iceberg clients get it or not."""

from dataclasses import dataclass

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.entries import named
from polynya.ducklake.rows.objects import Lake, Table
from polynya.runtime.errors import NoSuchTable, PolynyaError, Refused
from polynya.runtime.namespaces import dotted, parsed
from polynya.virtual_files.virtual_files import VirtualTable

from .changes import LARGEST_ID, SnapshotReport
from .generator import Generator, OpenedTable
from .lake import served_lake, snapshot_of
from .row_counts import Counts, RowCounts
from .statuses import Status
from .table_report import default_columns, hidden_columns

WINDOW = 120
"""How many snapshots of a table are shown at once."""


@dataclass(frozen=True, slots=True)
class TableRef:
    """A table by its name, at a snapshot."""

    namespace: str
    """All levels, as people write them; so everywhere in reports."""
    name: str
    snapshot_id: int | None = None
    """None: the newest."""


@dataclass(frozen=True, slots=True)
class TableHead:
    """What is said of a table on each of its pages."""

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


@dataclass(frozen=True, slots=True)
class TableAt:
    """A table at a snapshot, within one transaction."""

    con: Connection
    lake: Lake
    files: VirtualTable
    opened: OpenedTable | None
    """None: clients do not get it; the status says why."""
    head: TableHead

    @property
    def snapshot_id(self) -> int:
        """The shown snapshot."""
        return self.head.snapshot.snapshot_id

    def row_counts(self, generator: Generator, snapshot_id: int | None = None) -> RowCounts:
        """Counts its rows at a snapshot; None: the shown one."""
        then = self.snapshot_id if snapshot_id is None else snapshot_id
        return generator.row_counts(self.con, self.files.history, [then])

    def counts(self, generator: Generator) -> Counts:
        """What it has at the shown snapshot."""
        return generator.counts_at(self.con, self.files.history, self.snapshot_id)


class Renamed(PolynyaError):
    """At the snapshot the table has another name."""

    status = 307

    def __init__(self, namespace: str, name: str) -> None:
        full_name = f"{namespace}.{dotted(name)}"
        super().__init__(f"at this snapshot the table is called {full_name}")
        self.namespace, self.name = namespace, name


def open_at(
    generator: Generator, con: Connection, ref: TableRef, *, limit: int = WINDOW
) -> TableAt:
    """Open a table.

    Args:
        limit: how many of its snapshots are read.

    Raises:
        NoSuchTable: the lake has none of this name at the snapshot.
        Renamed: it has another name then.
        Refused: the lake is not served.
    """
    lake = served_lake(con)
    shown = snapshot_of(con, lake, ref.snapshot_id)
    snapshot_id = shown.snapshot_id
    pair = queries.table_at(snapshot_id, parsed(ref.namespace), ref.name).run(con)
    if pair is None:
        raise _missing(con, ref, snapshot_id)
    schema, table = pair
    files = generator.table_files(con, lake, schema, table, snapshot_id, limit)
    opened, status = opened_or_refused(generator, con, files)
    head = TableHead(
        namespace=schema.full_name,
        name=table.table_name,
        table_id=table.table_id,
        uuid=table.table_uuid,
        newest=lake.snapshot_id,
        snapshot=shown,
        status=status,
        is_dropped=_is_dropped(con, table),
    )
    return TableAt(con, lake, files, opened, head)


def opened_or_refused(
    generator: Generator, con: Connection, files: VirtualTable
) -> tuple[OpenedTable | None, Status]:
    """The table as clients get it, and what to say of it; None: they do not get it."""
    try:
        opened = generator.opened(con, files)
    except Refused as error:
        return None, Status("refused", str(error), dict(files.table.schemas.hidden))
    hidden = hidden_columns(opened)
    return opened, Status("partly" if hidden else "served", "", hidden, default_columns(opened))


def _is_dropped(con: Connection, table: Table) -> bool:
    """Whether the newest snapshot lacks the table; its row ends when it is renamed, too."""
    if table.end_snapshot is None:
        return False
    newest = queries.table_of_uuid(table.table_uuid).run(con)
    return newest is None or newest[1].end_snapshot is not None


def _missing(con: Connection, ref: TableRef, snapshot_id: int) -> PolynyaError:
    """The error for a name without a table: it says when a table has the name, if one does."""
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
