"""A history: what happened to a real lake, and the rows that the model has after each event."""

import copy
from contextlib import closing

import duckdb as engine
from polynya_local.clients import native
from polynya_local.clients.canonical import Canonical, difference
from polynya_local.clients.duckdb import literal
from polynya_local.clients.native import Lake

from .events import SCHEMA, WRITERS, Event
from .model import Model, Then
from .writer import Writer


class History:
    def __init__(
        self, lake: Lake, s3_endpoint: str, writer: Writer, inlining: tuple[int, int]
    ) -> None:
        """`inlining`: how many rows each of the two writers inlines."""
        self.lake, self.model = lake, Model()
        self.script: list[str] = []
        self.disobeyed: list[str] = []
        """Statements for which DuckDB did not do what it reported: the model ends there."""
        self.contents: dict[int, dict[int, Then]] = {0: {}}
        """The expected rows, by snapshot and table."""
        self.doubtful: set[tuple[int, int]] = set()
        """Snapshots and tables of which DuckDB itself shows other rows than the model."""
        self._writer = writer
        limits = {
            name: f"DATA_INLINING_ROW_LIMIT {limit}"
            for name, limit in zip(WRITERS, inlining, strict=True)
        }
        path = f"DATA_PATH {literal(lake.data_path)}"
        self._writer.attach(lake, {name: f"{path}, {limits[name]}" for name in WRITERS})
        self._s3_endpoint = s3_endpoint
        self._native = native.open(lake, s3_endpoint)
        words = "ATTACH 'ducklake:{{CATALOG}}' AS %s (DATA_PATH '{{DATA_PATH}}', %s)"
        self._attach = [words % (name, limits[name]) for name in WRITERS]

    def close(self) -> None:
        self._native.close()

    def add(self, event: Event) -> bool:
        """Execute the event; return whether DuckDB accepted it."""
        model = copy.deepcopy(self.model)
        statements = event.apply(model)
        try:
            self._writer.execute(statements)
        except RuntimeError as error:
            if self._snapshots() != self.model.snapshots:
                self.disobeyed.append(f"in part, {'; '.join(statements)}: {error}")
            return False
        self.script += statements
        self.model = model
        then = {table.id: table.then() for table in model.tables.values()}
        doubtful: set[int] = set()
        model.snapshots = self._snapshots()
        for name, table in model.tables.items():
            after = f"{name} after {'; '.join(statements)}"
            seen = self.native(name)
            if seen is None:
                self.disobeyed.append(f"{after}: DuckDB can no longer read it")
            elif report := difference(then[table.id].canonical(), seen):
                self.disobeyed.append(f"{after}: {' | '.join(report)}")
                doubtful.add(table.id)
        # A statement that changes nothing makes no snapshot, CHECKPOINT makes several.
        for snapshot_id in range(max(self.contents) + 1, model.snapshots[-1] + 1):
            self.contents[snapshot_id] = then
            self.doubtful |= {(snapshot_id, table_id) for table_id in doubtful}
        return True

    def native(self, table: str, snapshot_id: int | None = None) -> Canonical | None:
        """DuckLake's own rows of a table, now or at a snapshot; None if reading fails."""
        for _ in range(2):  # a long-lived connection was seen to fail after a flush
            try:
                return self._native.canonical(SCHEMA, table, snapshot_id)
            except engine.Error:
                # After some errors a DuckDB connection is unusable.
                self._native.close()
                self._native = native.open(self.lake, self._s3_endpoint)
        return None

    def sql(self, note: str) -> str:
        """The history as a script like those in tests/lakes."""
        notes = "".join(f"-- {line}\n" for line in note.splitlines())
        return notes + "".join(f"{sql};\n" for sql in (*self._attach, "USE lake", *self.script))

    def _snapshots(self) -> list[int]:
        with closing(self.lake.database.connect()) as con:
            return [
                id_ for [id_] in con.run("SELECT snapshot_id FROM ducklake_snapshot ORDER BY 1")
            ]
