"""How each client reads a table: the snippets, and the faults that it has with this table."""

from dataclasses import dataclass

from polynya.ducklake import queries
from polynya.runtime.errors import Refused

from .client_faults import Fault, known_faults, measured_clients
from .generator import OpenedTable
from .opened_table import TableHead
from .snippets import CLIENTS, Block, Place, blocks
from .table_facts import table_facts


@dataclass(frozen=True, slots=True)
class ClientReport:
    """One client."""

    name: str
    version: str
    """The one whose faults are known."""
    note: str
    blocks: tuple[Block, ...]
    """To copy in this order."""
    faults: tuple[Fault, ...]


@dataclass(frozen=True, slots=True)
class ReadingReport:
    """A table at a snapshot, for all clients."""

    head: TableHead
    place: Place
    clients: tuple[ClientReport, ...]


def reading_report(table: OpenedTable, head: TableHead, place: Place) -> ReadingReport:
    """How each client reads a table; no client, if they do not get it."""
    faults = known_faults(table_facts(table)) if table.is_served else []
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
            )
            for client in CLIENTS
            if table.is_served
        ),
    )


def listed_snapshot(table: OpenedTable) -> int | None:
    """The snapshot id by which clients of the newest state read the table as of its snapshot.

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
