"""The metadata documents made last: most loadTables find the table as the one before did."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from ..ducklake.history import TableHistory
from ..ducklake.rows import Snapshot
from ..iceberg.table_metadata import TableMetadata

MOST = 8
"""A document of a thousand snapshots takes some megabytes."""


class MetadataCache:
    """By the history that they show, so that the same history is not put together twice."""

    def __init__(self) -> None:
        self._made: OrderedDict[str, tuple[TableHistory, TableMetadata]] = OrderedDict()

    def once(self, history: TableHistory, make: Callable[[int], TableMetadata]) -> TableMetadata:
        """The document of this history, from before or as `make` makes it.

        Args:
            make: from now, in milliseconds since 1970.
        """
        now_ms = int(time.time() * 1000)
        if any(_milliseconds(snapshot) > now_ms for snapshot in history.snapshots):
            # Shown as of now, and so another document with each now.
            return make(now_ms)
        of = _but_for_the_lake(history)
        uuid = history.table.table_uuid
        known, document = self._made.get(uuid, (None, None))
        if document is None or known != of:
            document = make(now_ms)
        self._made[uuid] = of, document
        self._made.move_to_end(uuid)
        if len(self._made) > MOST:
            self._made.popitem(last=False)
        return document


def _but_for_the_lake(history: TableHistory) -> TableHistory:
    """A document is as of the table's own last snapshot, whatever happened in the lake since."""
    return replace(history, lake=replace(history.lake, snapshot_id=0), snapshot_id=0)


def _milliseconds(snapshot: Snapshot) -> float:
    return snapshot.snapshot_time.timestamp() * 1000
