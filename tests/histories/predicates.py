"""Filters, by which clients skip files: a filtered scan must return what the whole table has."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.canonical import Canonical, Columns, canonical
from polynya_local.clients.duckdb import connect, identifier, literal
from pyiceberg import expressions as iceberg

from .events import SCHEMA

# The SQL operator, and PyIceberg's expression
COMPARISONS: dict[str, Callable] = {
    "=": iceberg.EqualTo,
    "<": iceberg.LessThan,
    ">": iceberg.GreaterThan,
    "<=": iceberg.LessThanOrEqual,
    ">=": iceberg.GreaterThanOrEqual,
    "<>": iceberg.NotEqualTo,
}
TESTS: dict[str, Callable] = {"IS NULL": iceberg.IsNull, "IS NOT NULL": iceberg.NotNull}


@dataclass(frozen=True)
class Predicate:
    """A predicate on one column; unary ones have no value."""

    table: str
    column: str
    words: str
    value: Any = None

    @property
    def sql(self) -> str:
        name = identifier(self.column)
        if self.words in TESTS:
            return f"{name} {self.words}"
        value = literal(self.value) if isinstance(self.value, str) else str(self.value)
        return f"{name} {self.words} {value}"

    @property
    def iceberg(self) -> iceberg.BooleanExpression:
        if self.words in TESTS:
            return TESTS[self.words](self.column)
        return COMPARISONS[self.words](self.column, self.value)

    def of(self, rows: pa.Table, types: Columns) -> Canonical:
        """The rows for which it is true."""
        with connect() as con:
            con.register("client", rows)
            return canonical(con, f"(SELECT * FROM client WHERE {self.sql})", types)


def filtered(client: duckdb.DuckDB | pyiceberg.PyIceberg, predicate: Predicate) -> pa.Table:
    """The rows that a client returns for the predicate."""
    if isinstance(client, duckdb.DuckDB):
        source = f"ice.{identifier(SCHEMA)}.{identifier(predicate.table)}"
        return client.query(f"SELECT * FROM {source} WHERE {predicate.sql}")
    table = client._catalog.load_table((SCHEMA, predicate.table))
    return table.scan(row_filter=predicate.iceberg).to_arrow()
