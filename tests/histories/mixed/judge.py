"""Compares a lake with what the twin has, natively, after each operation."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from random import Random
from typing import Any

import duckdb as engine
from polynya_local.clients.canonical import Canonical, Columns, canonical, columns_of, difference
from polynya_local.clients.duckdb import literal

from .operations import Operation
from .scene import MEMORY, TABLE, Scene
from .tables import quoted

FLOATS = {"FLOAT", "DOUBLE"}
UNORDERED = {"INTERVAL"}
UNFINDABLE = {"BLOB"}
"""DuckDB looks for another text in the Bloom filters of its files (docs/developers/ducklake.md)."""
COMPARED = ("=", "<", ">=")
LINE_END = "\n"
CONSTANTS = ("smallest", "largest", "any")

RowIds = dict[int, tuple[int, str]]
"""The row id and the file of each key."""


class Judge:
    """Yields a line for each fault."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene, self.rng = scene, Random(seed)
        self.keys_of: dict[int, int] = {}
        """The key of each row id that was ever seen."""
        self.row_ids: RowIds = {}
        """Those after the last operation."""
        self.is_sorted = False
        """DuckLake's merge gives the rows of a sorted table other row ids."""

    def now(self, con: Any | None = None, *, complete: bool = False) -> Iterator[str]:
        """The rows natively, now, and answers to questions.

        Args:
            complete: ask everything, not an aggregation and a filter that the seed draws.
        """
        con = con or self.scene.con
        try:
            con.execute("BEGIN")  # DuckLake reads its catalog once for all questions
            found = read(con, f"lake.{TABLE}", self.scene.columns)
            if report := difference(self.scene.rows, found):
                yield f"natively: {' | '.join(report)}"
            else:
                yield from self._questions(con, complete)
            con.execute("COMMIT")
        except engine.Error as error:
            with suppress(engine.FatalException):  # this DuckDB refuses everything from now on
                con.execute("ROLLBACK")
            yield f"natively: {str(error).partition(LINE_END)[0]}"

    def _questions(self, con: Any, complete: bool) -> Iterator[str]:
        """Aggregates, and filters by which DuckLake leaves out files, each with its own scan."""
        counts, extremes = ["count(*)"], ["count(*)"]
        filters: list[tuple[str, ...]] = [("true",)]
        nan = self._with_nan()
        for name, kind in self.scene.columns.items():
            word = quoted(name)
            counts.append(f"count({word})")
            filters += [(f"{word} IS NULL",), (f"{word} IS NOT NULL",)]
            is_ordered = kind.id not in {"struct", "list", "map"} and str(kind) not in UNORDERED
            if is_ordered and name not in nan:
                extremes += [f"min({word})", f"max({word})"]
                operators = COMPARED[1:] if str(kind) in UNFINDABLE else COMPARED
                filters += product([name], operators, CONSTANTS)
        aggregates = [counts, extremes]
        if not complete:
            aggregates, filters = self.rng.sample(aggregates, 1), self.rng.sample(filters, 1)
        questions = [(asked, "true") for asked in aggregates]
        questions += [(["count(*)"], self._where(*one)) for one in filters]
        yield from self._differing(con, questions)

    def _differing(self, con: Any, questions: list[tuple[list[str], str]]) -> Iterator[str]:
        """Ask for expressions where something holds, in one statement."""
        scans = []
        for asked, where in questions:
            texts = ", ".join(f"CAST({one} AS VARCHAR)" for one in asked)
            scans.append(f"(SELECT [{texts}] FROM {{0}} WHERE {where})")
        sql = f"SELECT [{', '.join(scans)}]"
        [[found]] = con.execute(sql.replace("{0}", f"lake.{TABLE}")).fetchall()
        [[wanted]] = self.scene.con.execute(sql.replace("{0}", MEMORY)).fetchall()
        for (asked, where), *answers in zip(questions, found, wanted, strict=True):
            for question, one, other in zip(asked, *answers, strict=True):
                if one != other:
                    yield f"natively {question}: {one}, not {other} where {where}"

    def _with_nan(self) -> set[str]:
        """The columns with NaN: DuckDB's Parquet reader skips it by bounds of other writers."""
        floats = [n for n, kind in self.scene.columns.items() if str(kind) in FLOATS]
        if not floats:
            return set()
        parts = (f"coalesce(bool_or(isnan({quoted(n)})), false)" for n in floats)
        [row] = self.scene.con.execute(f"SELECT {', '.join(parts)} FROM {MEMORY}").fetchall()
        return {name for name, has in zip(floats, row, strict=True) if has}

    def _where(self, column: str, operator: str = "", which: str = "") -> str:
        """SQL of a filter; without an operator it is SQL already."""
        if not operator:
            return column
        word = quoted(column)
        values = self.scene.values(
            f"SELECT CAST(v AS VARCHAR) FROM (SELECT DISTINCT {word} AS v FROM {MEMORY} "
            f"WHERE {word} IS NOT NULL ORDER BY 1)"
        )
        if not values:
            return f"{word} IS NULL"
        chosen = {"smallest": values[0], "largest": values[-1], "any": self.rng.choice(values)}
        constant = f"CAST({literal(chosen[which])} AS {self.scene.columns[column]})"
        return f"{word} {operator} {constant}"

    def read_row_ids(self) -> None:
        """Read the row id and the file of each row, natively."""
        sql = f"SELECT k, rowid, filename FROM lake.{TABLE} WHERE k IS NOT NULL"
        found = self.scene.con.execute(sql).fetchall()
        self.row_ids = {k: (rowid, file) for k, rowid, file in found}

    def wrong_row_ids(self, operation: Operation) -> Iterator[str]:
        """Row ids that two rows have, or that have changed in a file that stays."""
        before = self.row_ids
        self.read_row_ids()
        after = self.row_ids
        if len({rowid for rowid, _ in after.values()}) != len(after):
            yield "two rows have the same row id"
        self.is_sorted |= operation.kind == "sort"
        if self.is_sorted or operation.merges:
            return
        files = {file for _, file in after.values()}
        keeps = operation.kind in (KEEP if operation.is_native else CLIENTS_KEEP)
        for key, (rowid, file) in after.items():
            if self.keys_of.setdefault(rowid, key) != key:
                yield f"row {key} has the row id {rowid} of row {self.keys_of[rowid]}"
            old = before.get(key, (rowid, file))
            if old[0] != rowid and (keeps or file == old[1] in files):
                yield f"row {key} had the row id {old[0]}, and has {rowid}"

    def feed(self, after: int) -> Iterator[str]:
        """What the change feed says of a snapshot leads from the rows before it to those after."""
        past, columns_at = self.scene.past, self.scene.past_columns
        before = max((n for n in past if n < after), default=None)
        if before is None or [*columns_at[before].items()] != [*columns_at[after].items()]:
            return
        changes = f"ducklake_table_changes('lake', 'main', 't', {after}, {after})"
        types = {"change_type": engine.sqltype("VARCHAR"), **self.scene.columns}
        columns = ", ".join(map(quoted, types))
        rows = past[before].rows.copy()
        try:
            found = read(self.scene.con, f"(SELECT {columns} FROM {changes})", types)
        except engine.Error as error:
            yield f"change feed of {after}: {error}"
            return
        for (kind, *row), number in found.rows.items():
            rows[tuple(row)] += SIGNS[str(kind)] * number
        wanted = past[after].rows
        wrong = {row: rows[row] - wanted[row] for row in rows | wanted if rows[row] != wanted[row]}
        is_repeated = all(number < 0 for number in wrong.values())
        if wrong and not (is_repeated and -sum(wrong.values()) == self.scene.told_again(after)):
            yield f"change feed of {after}: {list(wrong.items())[:3]}"


def read(con: Any, source: str, types: Columns | None = None) -> Canonical:
    """The rows of a source, which is planned once; as text in its own types, or in those given."""
    con.execute(f"CREATE OR REPLACE TABLE {SEEN} AS FROM {source}")
    return canonical(con, SEEN, types or columns_of(con, SEEN))


SEEN = "memory.main.seen"

KEEP = {"insert", "delete", "update", "merge", "alter", "maintain", "expire", "partition"}
CLIENTS_KEEP = {"append", "schema", "properties", "partition"}
"""Kinds of operations after which each row has the row id that it had."""

SIGNS = {
    '"insert"': 1,
    '"update_postimage"': 1,
    '"delete"': -1,
    '"update_preimage"': -1,
}
"""What a change of the feed adds to the number of rows; texts are quoted."""
