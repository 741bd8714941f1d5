"""Compares a lake with what the twin has: natively, and as Iceberg clients read it."""

from collections.abc import Iterator
from random import Random
from typing import Any

import duckdb as engine
from polynya_local.clients.canonical import Canonical, canonical, difference
from polynya_local.clients.duckdb_connection import literal
from polynya_pipeline.verify.job import verify
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, IsNull, LessThan, NotNull

from .operations import Operation
from .scene import MEMORY, TABLE, Scene
from .tables import quoted

FLOATS = {"FLOAT", "DOUBLE"}
UNORDERED = {"INTERVAL"}
SNAPSHOTS_READ = 5
"""How many earlier snapshots each client reads at the end."""

RowIds = dict[int, tuple[int, str]]
"""The row id and the file of each key."""


class Judge:
    """Yields a line for each fault."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene, self.rng = scene, Random(seed)
        self.keys_of: dict[int, int] = {}
        """The key of each row id that was ever seen."""

    # After each operation

    def now(self, con: Any | None = None, *, filters: int = 3) -> Iterator[str]:
        """The rows, aggregates and some filters natively, now."""
        scene = self.scene
        con = con or scene.con
        types = scene.columns
        wanted = scene.rows(MEMORY)
        try:
            con.execute("BEGIN")  # DuckLake reads its catalog once for all questions
            found = canonical(con, f"lake.{TABLE}", types)
            if report := difference(wanted, found):
                yield f"natively: {' | '.join(report)}"
            else:
                yield from self._questions(con, filters)
            con.execute("COMMIT")
        except engine.Error as error:
            con.execute("ROLLBACK")
            yield f"natively: {error}"

    def _questions(self, con: Any, most: int) -> Iterator[str]:
        """Aggregates, and filters by which DuckLake leaves out files, each with its own scan."""
        counts, extremes, filters = ["count(*)"], ["count(*)"], ["true"]
        nan = self._with_nan()
        for name, kind in self.scene.columns.items():
            word = quoted(name)
            counts.append(f"count({word})")
            filters += [f"{word} IS NULL", f"{word} IS NOT NULL"]
            is_ordered = kind.id not in {"struct", "list", "map"} and str(kind) not in UNORDERED
            if is_ordered and name not in nan:
                extremes += [f"min({word})", f"max({word})"]
                filters += self._filters(word, kind)
        some = self.rng.sample(filters, min(most, len(filters)))
        texts = [[f"CAST({one} AS VARCHAR)" for one in asked] for asked in (counts, extremes)]
        queries = [f"SELECT [{', '.join(asked)}] FROM {{0}}" for asked in texts]
        queries += [f"SELECT count(*) FROM {{0}} WHERE {one}" for one in some]
        for sql in queries:
            [found] = con.execute(sql.replace("{0}", f"lake.{TABLE}")).fetchall()
            [wanted] = self.scene.con.execute(sql.replace("{0}", MEMORY)).fetchall()
            if found != wanted:
                yield f"natively {sql}: {found}, not {wanted}"

    def _with_nan(self) -> set[str]:
        """The columns with NaN: DuckDB's Parquet reader skips it by bounds of other writers."""
        floats = [n for n, kind in self.scene.columns.items() if str(kind) in FLOATS]
        if not floats:
            return set()
        parts = (f"coalesce(bool_or(isnan({quoted(n)})), false)" for n in floats)
        [row] = self.scene.con.execute(f"SELECT {', '.join(parts)} FROM {MEMORY}").fetchall()
        return {name for name, has in zip(floats, row, strict=True) if has}

    def _filters(self, word: str, kind: Any) -> list[str]:
        sql = (
            f"SELECT CAST(v AS VARCHAR) FROM (SELECT DISTINCT {word} AS v FROM {MEMORY} "
            f"WHERE {word} IS NOT NULL ORDER BY 1)"
        )
        values = self.scene.values(sql)
        chosen = {values[0], values[-1], self.rng.choice(values)} if values else set()
        constants = [f"CAST({literal(one)} AS {kind})" for one in sorted(chosen)]
        return [f"{word} {op} {one}" for one in constants for op in ("=", "<", ">=")]

    def row_ids(self) -> RowIds:
        """The row id and the file of each row, natively."""
        sql = f"SELECT k, rowid, filename FROM lake.{TABLE} WHERE k IS NOT NULL"
        return {k: (rowid, file) for k, rowid, file in self.scene.con.execute(sql).fetchall()}

    def wrong_row_ids(self, operation: Operation, before: RowIds) -> Iterator[str]:
        """Row ids that two rows have, or that have changed in a file that stays."""
        after = self.row_ids()
        if len({rowid for rowid, _ in after.values()}) != len(after):
            yield "two rows have the same row id"
        files = {file for _, file in after.values()}
        for key, (rowid, file) in after.items():
            if self.keys_of.setdefault(rowid, key) != key:
                yield f"row {key} has the row id {rowid} of row {self.keys_of[rowid]}"
            old = before.get(key, (rowid, file))
            keeps = operation.kind in (KEEP if operation.is_native else CLIENTS_KEEP)
            if old[0] != rowid and (keeps or file == old[1] in files):
                yield f"row {key} had the row id {old[0]}, and has {rowid}"

    def feed(self, after: int) -> Iterator[str]:
        """What the change feed says of a snapshot leads from the rows before it to those after."""
        past, columns_at = self.scene.past, self.scene.past_columns
        before = max((n for n in past if n < after), default=None)
        if before is None or columns_at[before] != columns_at[after]:
            return
        changes = f"ducklake_table_changes('lake', 'main', 't', {after}, {after})"
        types = self.scene.columns
        rows = past[before].rows.copy()
        try:
            con = self.scene.con
            con.execute(f"CREATE OR REPLACE TABLE memory.main.feed AS FROM {changes}")
            for kinds, sign in ((INSERTED, 1), (DELETED, -1)):
                columns = ", ".join(map(quoted, types))
                source = f"(SELECT {columns} FROM memory.main.feed WHERE change_type IN {kinds})"
                for row, number in canonical(con, source, types).rows.items():
                    rows[row] += sign * number
        except engine.Error as error:
            yield f"change feed of {after}: {error}"
            return
        wanted = past[after].rows
        wrong = {row: rows[row] - wanted[row] for row in rows | wanted if rows[row] != wanted[row]}
        if wrong:
            yield f"change feed of {after}: {list(wrong.items())[:3]}"

    # At the end

    def everything(self) -> Iterator[str]:
        """All snapshots natively, some through Iceberg, filters there, and `verify`."""
        with self.scene.fresh() as con:
            yield from self.now(con, filters=100)
            yield from self._native_past(con)
        yield from self._iceberg()
        yield from self._verified()

    def _native_past(self, con: Any) -> Iterator[str]:
        scene = self.scene
        for snapshot_id in set(scene.snapshots()) & scene.past.keys():
            wanted = scene.past[snapshot_id]
            source = f"lake.{TABLE} AT (VERSION => {snapshot_id})"
            try:
                types = dict(zip(*_described(con, source), strict=True))
                if report := difference(wanted, canonical(con, source, types)):
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
            wanted = scene.past[max(scene.past) if number is None else number]
            try:
                rows = table.scan(snapshot_id=at).to_arrow()
            except Exception as error:
                yield f"PyIceberg at {number}: {type(error).__name__}: {error}"
                continue
            yield from self._compare(f"PyIceberg at {number}", rows, wanted, hidden)
        if scene.duckdb is not None:
            for number in [None, *some[:1]]:
                yield from self._duckdb(number, listed, hidden)
        yield from self._pruned(table, hidden)

    def _duckdb(
        self, number: int | None, listed: dict[int, int], hidden: tuple[str, ...]
    ) -> Iterator[str]:
        scene = self.scene
        assert scene.duckdb is not None
        wanted = scene.past[max(scene.past) if number is None else number]
        try:
            rows = scene.duckdb.rows("main", "t", None if number is None else listed[number])
        except RuntimeError as error:
            yield f"DuckDB at {number}: {error}"
            return
        yield from self._compare(f"DuckDB at {number}", rows, wanted, hidden)

    def _compare(
        self, what: str, rows: Any, wanted: Canonical, hidden: tuple[str, ...]
    ) -> Iterator[str]:
        """Compare a client's rows, if the columns are those that the twin has now."""
        types = self.scene.columns
        if set(types) != set(wanted.columns):
            return
        con = self.scene.con
        con.register("client", rows)
        shown = [n for n, name in enumerate(wanted.columns) if name not in hidden]
        seen = Canonical(tuple(wanted.columns[n] for n in shown), _counter(wanted, shown))
        if report := difference(seen, canonical(con, "client", types, hidden)):
            yield f"{what}: {' | '.join(report)}"
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


KEEP = {"insert", "delete", "update", "merge", "alter", "maintain", "expire", "partition"}
CLIENTS_KEEP = {"append", "schema", "properties", "partition"}
"""Kinds of operations after which each row has the row id that it had."""

UNAVOIDABLE = {"nan-bounds"}
"""Findings that tell of DuckDB's Parquet reader: NaN in files of PyIceberg (docs/exactness.md)."""

INSERTED, DELETED = "('insert', 'update_postimage')", "('delete', 'update_preimage')"


def _described(con: Any, source: str) -> tuple[list[str], list[Any]]:
    relation = con.sql(f"SELECT * FROM {source}")
    return relation.columns, relation.types


def _counter(wanted: Canonical, shown: list[int]) -> Any:
    rows = type(wanted.rows)()
    for row, number in wanted.rows.items():
        rows[tuple(row[n] for n in shown)] += number
    return rows
