"""Compares what two clients read through one bridge with what the model expects.

The judge is the model, because DuckLake's own time travel has defects. If DuckLake and the bridge
agree with each other but not with the model, the catalog has lost data; this is reported, and it
fails no test.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator

from polynya_local.clients import Client
from polynya_local.clients.canonical import difference, from_arrow

from tests.support import rest

from .events import SCHEMA
from .history import History
from .model import Table
from .predicates import Predicate, filtered

Chosen = Callable[[list[int]], list[int]]
"""Selects the listed snapshots that are read."""


class Judge:
    def __init__(self, history: History, catalog: rest.Rest, clients: list[Client]) -> None:
        self._history, self._rest, self._clients = history, catalog, clients
        self.lost: list[str] = []
        """Tables and snapshots of which DuckLake itself has lost rows."""
        self.reads = 0

    def wrong(self, chosen: Chosen) -> Iterator[str]:
        """A line for each difference, now and at the chosen snapshots of each table."""
        for name, table in self._history.model.tables.items():
            try:
                metadata = self._rest.load_table(SCHEMA, name)
            except rest.Refused as refusal:
                yield f"{name}: {refusal}"
                continue
            listed = sorted(s["snapshot-id"] for s in metadata.get("snapshots", []))
            yield from self._left_out(name, table, listed)
            if hidden := json.loads(metadata["properties"].get("polynya.hidden-columns", "[]")):
                yield f"{name}: {hidden} hidden"
            for snapshot_id in [None, *chosen(listed)]:
                yield from self._at(name, table, snapshot_id)

    def pruned(self, predicate: Predicate) -> Iterator[str]:
        """A line for each client whose filtered scan differs from its filtered whole table."""
        table = self._history.model.tables[predicate.table]
        types = self._history.contents[max(self._history.contents)][table.id].types()
        for client in self._clients:
            self.reads += 2
            where = f"{client.name}, {predicate.table} where {predicate.sql}"
            try:
                kept = predicate.of(client.rows(SCHEMA, predicate.table), types)
                found = from_arrow(filtered(client, predicate), types)
            except Exception as error:
                yield f"{where}: {type(error).__name__}: {' '.join(str(error).split())[:400]}"
                continue
            if report := difference(kept, found):
                yield f"{where}: {' | '.join(report)}"

    def _left_out(self, name: str, table: Table, listed: list[int]) -> Iterator[str]:
        """An unlisted snapshot has the same content as the last one listed before it."""
        history, empty = self._history, Counter()
        for snapshot_id in history.model.snapshots:
            then = history.contents[snapshot_id].get(table.id)
            before = [n for n in listed if n <= snapshot_id]
            shown = history.contents[before[-1]][table.id].rows if before else empty
            if (snapshot_id, table.id) in history.doubtful:
                continue
            if then is not None and then.rows != shown:
                yield f"{name}: the change at {snapshot_id} is not in {listed}"

    def _at(self, name: str, table: Table, snapshot_id: int | None) -> Iterator[str]:
        contents = self._history.contents
        then = contents[max(contents) if snapshot_id is None else snapshot_id].get(table.id)
        if then is None:
            yield f"{name}: {snapshot_id} is listed, but the table did not exist then"
            return
        for client in self._clients:
            self.reads += 1
            where = f"{client.name}, {name} at {snapshot_id}"
            try:
                seen = from_arrow(client.rows(SCHEMA, name, snapshot_id), then.types())
            except Exception as error:  # any error of a client is a finding
                yield f"{where}: {type(error).__name__}: {' '.join(str(error).split())[:400]}"
                continue
            report = difference(then.canonical(), seen)
            if not report:
                continue
            itself = self._history.native(name, snapshot_id)
            if itself is not None and not difference(itself, seen):
                self.lost.append(f"{where}: {report[0]}")
                continue
            yield f"{where}: {' | '.join(report)}"
            if itself is None:
                yield f"{where}: DuckLake cannot read it itself"
            elif difference(itself, then.canonical()):
                yield f"{where}: DuckLake has neither: {difference(then.canonical(), itself)[0]}"
