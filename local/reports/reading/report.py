"""How each client reads a table: the snippets, and the faults that it has with this table."""

from collections.abc import Sequence
from dataclasses import dataclass

from .faults import Fault, faults
from .place import Place
from .snippets import CLIENTS, Block, blocks
from .table_facts import TableFacts


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

    namespace: str
    table: str
    snapshot: int | None
    """DuckLake's; None: the newest."""
    clients: tuple[ClientReport, ...]


def reading_report(place: Place, facts: TableFacts) -> ReadingReport:
    """How each client reads the table of a place.

    Args:
        facts: of the table at the snapshot of the place.
    """
    found = known_faults(facts)
    return ReadingReport(
        place.namespace,
        place.table,
        place.lake_snapshot,
        tuple(
            ClientReport(
                one.name,
                one.version,
                one.note,
                blocks(one, place),
                tuple(fault for fault in found if fault.client == one.name),
            )
            for one in CLIENTS
        ),
    )


def known_faults(facts: TableFacts) -> Sequence[Fault]:
    """The faults that clients are known to have with a table."""
    return faults(facts, {one.name: one.version for one in CLIENTS})
