"""A table of a test lake as the beginning of a short history, with a copy of its rows in memory."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import duckdb as engine
from polynya_local.clients.canonical import canonical, columns_of, difference
from polynya_local.clients.duckdb import identifier, literal
from pyiceberg.expressions import BooleanExpression, EqualTo

TWIN = "memory.main.twin"
COMPARED = ("INTEGER", "BIGINT", "VARCHAR", "DATE", "BOOLEAN")
MAINTENANCE = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
)
NATIVE = (
    "INSERT INTO {t} SELECT * FROM {t} WHERE {where}",
    "DELETE FROM {t} WHERE {where}",
    *MAINTENANCE,
)

DELETE = "DELETE FROM {t} WHERE {where}"
APPEND = "INSERT INTO {t} BY NAME SELECT {visible} FROM {t} WHERE {where}"


@dataclass(frozen=True, slots=True)
class Where:
    """A filter of rows, for SQL and for PyIceberg."""

    sql: str
    expression: BooleanExpression


@dataclass
class LakeTable:
    """A table that native DuckLake and PyIceberg change; `con` has attached the lake."""

    con: Any
    source: str
    visible: tuple[str, ...]
    """The columns that Iceberg clients see."""
    rng: Random

    def __post_init__(self) -> None:
        self.con.execute(f"CREATE OR REPLACE TABLE {TWIN} AS FROM {self.source}")
        self.types = columns_of(self.con, TWIN)

    def where(self) -> Where | None:
        """A filter that some rows pass, or None if there is no column or no value for one."""
        able = [n for n in self.visible if str(self.types.get(n)) in COMPARED]
        self.rng.shuffle(able)
        for name in able:
            word = identifier(name)
            sql = f"SELECT DISTINCT {word} FROM {TWIN} WHERE {word} IS NOT NULL ORDER BY 1"
            values = [row[0] for row in self.con.execute(sql).fetchall()]
            # DuckDB's SQL ends at a NUL.
            if values := [value for value in values if "\0" not in str(value)]:
                value = self.rng.choice(values)
                constant = f"CAST({literal(str(value))} AS {self.types[name]})"
                return Where(f"{word} = {constant}", EqualTo(name, value))
        return None

    def natively(self, sql: str, where: Where) -> None:
        """Run a statement on the lake; on the twin too, if the lake takes it."""
        with_lake = sql.format(t=self.source, where=where.sql)
        try:
            self.con.execute(with_lake)
        except engine.Error:
            return
        if sql not in MAINTENANCE:
            self.change_twin(sql, where)

    def change_twin(self, sql: str, where: Where) -> None:
        """Run a statement on the twin."""
        visible = ", ".join(map(identifier, self.visible))
        self.con.execute(sql.format(t=TWIN, where=where.sql, visible=visible))

    def wrong(self) -> Iterator[str]:
        """How the rows differ, and the counts."""
        seen = canonical(self.con, self.source, self.types)
        yield from difference(canonical(self.con, TWIN, self.types), seen)
        for name in self.types:
            word = identifier(name)
            sql = f"SELECT count(*), count({word}) FROM {{}} WHERE {word} IS NOT NULL"
            found, wanted = (
                self.con.execute(sql.format(of)).fetchall() for of in (self.source, TWIN)
            )
            if found != wanted:
                yield f"{name} IS NOT NULL: {found}, not {wanted}"
