"""Compares all of a history at its end: each snapshot natively, Iceberg clients, and `verify`."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import duckdb as engine
from polynya_local.clients.canonical import Canonical, canonical, difference
from polynya_local.clients.duckdb import literal
from polynya_pipeline.verify.job import verify
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNull, LessThan, NotNull

from tests.support.derived_changes import ChangesJudge

from .judge import Judge, read
from .scene import MEMORY, TABLE
from .tables import quoted

SNAPSHOTS_READ = 5
"""How many earlier snapshots each client reads."""


class LastJudge:
    """Yields a line for each fault."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.scene, self.rng = judge, judge.scene, judge.rng

    def everything(self) -> Iterator[str]:
        """All snapshots natively, some through Iceberg, filters there, and `verify`."""
        with self.scene.fresh() as con:
            yield from self.judge.now(con, complete=True)
            yield from self._native_past(con)
        yield from self._iceberg()
        yield from (f"derived at {line}" for line in ChangesJudge(self.scene.table()).wrong())
        yield from self._verified()

    def _native_past(self, con: Any) -> Iterator[str]:
        scene = self.scene
        for snapshot_id in set(scene.snapshots()) & scene.past.keys() - scene.doubled():
            wanted = scene.past[snapshot_id]
            source = f"lake.{TABLE} AT (VERSION => {snapshot_id})"
            try:
                if report := difference(wanted, read(con, source)):
                    yield f"natively at {snapshot_id}: {' | '.join(report)}"
            except engine.Error as error:
                yield f"natively at {snapshot_id}: {error}"

    def _iceberg(self) -> Iterator[str]:
        scene = self.scene
        table = scene.table()
        hidden = scene.hidden()
        known = {s.sequence_number: s.snapshot_id for s in table.metadata.snapshots}
        listed = {n: id_ for n, id_ in known.items() if n in scene.past}
        some = self.rng.sample(sorted(listed), min(SNAPSHOTS_READ, len(listed)))
        for number in [None, *some]:
            at = None if number is None else listed[number]
            try:
                rows = table.scan(snapshot_id=at).to_arrow()
            except Exception as error:
                yield f"PyIceberg at {number}: {type(error).__name__}: {error}"
                continue
            yield from self._compare("PyIceberg", number, rows, hidden)
        others = [scene.duckdb] if scene.duckdb is not None else []
        if "spark" in vars(scene):  # it has written
            others.append(scene.spark)
        for client, number in product(others, [None, *some[:1]]):
            yield from self._read_by(client, number, listed, hidden)
        yield from self._pruned(table, hidden)

    def _read_by(
        self, client: Any, number: int | None, listed: dict[int, int], hidden: tuple[str, ...]
    ) -> Iterator[str]:
        try:
            rows = client.rows("main", "t", None if number is None else listed[number])
        except Exception as error:
            yield f"{client.name} at {number}: {type(error).__name__}: {error}"
            return
        yield from self._compare(client.name, number, rows, hidden)

    def _compare(
        self, name: str, number: int | None, rows: Any, hidden: tuple[str, ...]
    ) -> Iterator[str]:
        """Compare a client's rows, if the columns are those that the twin has now."""
        past, types = self.scene.past, self.scene.columns
        at = max(past) if number is None else number
        wanted = past[at]
        if [*self.scene.past_columns[at].items()] != [*types.items()]:  # in the same order
            return
        con = self.scene.con
        con.register("client", rows)
        shown = [n for n, name in enumerate(wanted.columns) if name not in hidden]
        seen = Canonical(tuple(wanted.columns[n] for n in shown), _counter(wanted, shown))
        if report := difference(seen, canonical(con, "client", types, hidden)):
            yield f"{name} at {number}: {' | '.join(report)}"
        con.unregister("client")

    def _pruned(self, table: Any, hidden: tuple[str, ...]) -> Iterator[str]:
        """Filters of PyIceberg, by which it skips files."""
        for name, kind in self.scene.columns.items():
            if str(kind) not in {"INTEGER", "BIGINT", "VARCHAR", "DATE"} or name in hidden:
                continue
            word = quoted(name)
            filters = [(IsNull(name), f"{word} IS NULL"), (NotNull(name), f"{word} IS NOT NULL")]
            sql = f"SELECT DISTINCT {word} FROM {MEMORY} WHERE {word} IS NOT NULL ORDER BY 1"
            values = self.scene.values(sql)
            if values:
                value = self.rng.choice(values)
                text = f"CAST({literal(str(value))} AS {kind})"
                for make, op in ((EqualTo, "="), (LessThan, "<"), (GreaterThanOrEqual, ">=")):
                    filters.append((make(name, value), f"{word} {op} {text}"))
            filter_, where = self.rng.choice(filters)
            [wanted] = self.scene.values(f"SELECT count(*) FROM {MEMORY} WHERE {where}")
            try:
                found = len(table.scan(row_filter=filter_).to_arrow())
            except OverflowError:  # PyIceberg's `<` looks for the day before the year 1
                continue
            except Exception as error:
                yield f"PyIceberg where {where}: {type(error).__name__}: {error}"
                continue
            if found != wanted:
                yield f"PyIceberg where {where}: {found} rows, not {wanted}"

    def _verified(self) -> Iterator[str]:
        report = verify(database=self.scene.lake.database.url, footers=True)
        for one in report.findings:
            if one.check not in UNAVOIDABLE:
                yield f"verify: {one.level} {one.check}: {one.message}"


UNAVOIDABLE = {"nan-bounds"}
"""Findings that tell of DuckDB's Parquet reader: NaN in files of PyIceberg (docs/exactness.md)."""


def _counter(wanted: Canonical, shown: list[int]) -> Any:
    rows = type(wanted.rows)()
    for row, number in wanted.rows.items():
        rows[tuple(row[n] for n in shown)] += number
    return rows
