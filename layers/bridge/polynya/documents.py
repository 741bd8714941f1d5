"""The metadata documents made last: most loadTables find the table as the one before did."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from .ducklake.history import TableHistory
from .iceberg.table_metadata import TableMetadata

MOST = 8
"""A document of a thousand snapshots takes some megabytes."""


class Documents:
    """By the history that they show, so that the same history is not put together twice."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, tuple[TableHistory, TableMetadata]] = OrderedDict()

    def once(self, history: TableHistory, make: Callable[[], TableMetadata]) -> TableMetadata:
        """The document of this history, from before or as `make` makes it."""
        of = _but_for_the_lake(history)
        uuid = history.table.table_uuid
        known, document = self._made.get(uuid, (None, None))
        if document is None or known != of:
            document = make()
        if _ahead_of_us(history):
            return document
        self._made[uuid] = of, document
        self._made.move_to_end(uuid)
        if len(self._made) > MOST:
            self._made.popitem(last=False)
        return document


def _but_for_the_lake(history: TableHistory) -> TableHistory:
    """A document is as of the table's own last snapshot, whatever happened in the lake since."""
    return replace(history, lake=replace(history.lake, snapshot_id=0), snapshot_id=0)


def _ahead_of_us(history: TableHistory) -> bool:
    """Some snapshot is younger than now by our clock, and shown as of now: of each now."""
    now = datetime.now(UTC)
    return any(snapshot.snapshot_time > now for snapshot in history.snapshots)
