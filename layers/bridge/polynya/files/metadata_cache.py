"""The metadata documents built last: most loadTables find the table unchanged."""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..ducklake.history import TableHistory
from ..ducklake.rows.lake import Snapshot
from ..ducklake.rows.lifetimes import UnservableRange
from ..iceberg.table_metadata import TableMetadata

CAPACITY = 8
"""Documents; one of a thousand snapshots takes some megabytes."""


class Source(NamedTuple):
    """What a document is built from, but for the time of day."""

    history: TableHistory
    unservable: Sequence[UnservableRange]


class MetadataCache:
    """The last document of each table, with what it was built from."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, tuple[Source, TableMetadata]] = OrderedDict()

    def get_or_build(
        self,
        history: TableHistory,
        unservable: Sequence[UnservableRange],
        build: Callable[[int], TableMetadata],
    ) -> TableMetadata:
        """The document of this history: the cached one, or what `build` gives.

        Args:
            unservable: the snapshots that the document leaves out.
            build: from the time now, in milliseconds since 1970.
        """
        now_ms = int(time.time() * 1000)
        if any(_milliseconds(snapshot) > now_ms for snapshot in history.snapshots):
            # The document says "now" for them, and so changes with the time.
            return build(now_ms)
        source = Source(_without_lake_snapshot(history), unservable)
        uuid = history.table.table_uuid
        cached, document = self._documents.get(uuid, (None, None))
        if document is None or cached != source:
            document = build(now_ms)
        self._documents[uuid] = source, document
        self._documents.move_to_end(uuid)
        if len(self._documents) > CAPACITY:
            self._documents.popitem(last=False)
        return document


def _without_lake_snapshot(history: TableHistory) -> TableHistory:
    """A document does not depend on the lake's snapshots after the table's own last one."""
    return replace(history, lake=replace(history.lake, snapshot_id=0), snapshot_id=0)


def _milliseconds(snapshot: Snapshot) -> float:
    return snapshot.snapshot_time.timestamp() * 1000
