"""The expected content of a lake, as lists of rows in Python.

The model has no files, no inlining and no visibility rules: a snapshot is a copy of all rows.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import duckdb as engine
from polynya_local.clients.canonical import Canonical, Columns
from polynya_local.clients.duckdb import identifier, literal

Row = dict[int, Any]
"""Values by column id; the value of a struct is such a row of its fields."""

TEXTS = ("a", "b", "ä🦆", "it's", 'q"uo', "", "NULL", "x/y=z %41", "{'x': 1}")


@dataclass(frozen=True)
class Type:
    """A scalar type: DuckDB's name, the types it can be promoted to, its values."""

    sql: str
    values: tuple[Any, ...]
    becomes: tuple[str, ...] = ()


SCALARS = {
    type.sql: type
    for type in (
        Type("INTEGER", (0, 1, 2, 3, -(2**31), 2**31 - 1), ("BIGINT",)),
        Type("BIGINT", (0, 1, 2, 3, -(2**63), 2**63 - 1)),
        Type("VARCHAR", TEXTS),
        Type("TINYINT", (0, 1, -128, 127), ("SMALLINT", "BIGINT")),
        Type("SMALLINT", (0, 1, -32768, 32767), ("INTEGER",)),
        Type("FLOAT", (0.5, -1.25, 1024.0), ("DOUBLE",)),
        Type("DOUBLE", (0.5, -1.25, 1048577.0)),
        Type("DECIMAL(6,2)", (Decimal("0.25"), Decimal("-9999.99")), ("DECIMAL(12,2)",)),
        Type("DECIMAL(12,2)", (Decimal("0.25"), Decimal("9999999999.99"))),
        Type("BOOLEAN", (True, False)),
        Type("DATE", ("1969-12-31", "2024-02-29", "2024-03-01")),
        Type("TIMESTAMP", ("1969-12-31 23:59:59", "2024-02-29 12:00:00")),
    )
}


@dataclass
class Column:
    id: int
    name: str
    type: str
    """A key of SCALARS, `STRUCT` or `INTEGER[]`."""
    fields: list["Column"] = field(default_factory=list)
    default: Any = None
    """The default for later rows."""

    @property
    def sql(self) -> str:
        if self.type != "STRUCT":
            return self.type
        inner = (f"{identifier(part.name)} {part.sql}" for part in self.fields)
        return f"STRUCT({', '.join(inner)})"

    @property
    def definition(self) -> str:
        return f"{identifier(self.name)} {self.sql}"

    def literal(self, value: Any) -> str:
        """A value as a SQL literal."""
        if value is None:
            return "NULL"
        if self.type == "STRUCT":
            parts = (f"{literal(f.name)}: {f.literal(value[f.id])}" for f in self.fields)
            return f"{{{', '.join(parts)}}}"
        if self.type == "INTEGER[]":
            return f"[{', '.join('NULL' if v is None else str(v) for v in value)}]"
        return literal(value) if isinstance(value, str) else str(value).lower()

    def text(self, value: Any) -> str | None:
        """A value as `polynya_local.clients.canonical` writes it."""
        if value is None:
            return None
        if self.type == "STRUCT":
            parts = (f"{f.name}: {f.text(value[f.id]) or 'NULL'}" for f in self.fields)
            return f"{{{', '.join(parts)}}}"
        if self.type == "INTEGER[]":
            return f"[{', '.join('NULL' if v is None else str(v) for v in value)}]"
        if self.type == "VARCHAR":
            return json.dumps(value, ensure_ascii=False)
        return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass
class Table:
    id: int
    columns: list[Column]
    """The first is the key: an integer that is never dropped."""
    rows: list[Row] = field(default_factory=list)

    @property
    def key(self) -> Column:
        return self.columns[0]

    def column(self, name: str) -> Column:
        return found(self.columns, name)

    def then(self) -> "Then":
        rows = Counter(tuple(c.text(row[c.id]) for c in self.columns) for row in self.rows)
        return Then({c.name: c.sql for c in self.columns}, rows)


@dataclass(frozen=True)
class Then:
    """A table at one snapshot."""

    columns: dict[str, str]
    rows: Counter

    def canonical(self) -> Canonical:
        return Canonical(tuple(self.columns), self.rows)

    def types(self) -> Columns:
        return {name: engine.sqltype(type) for name, type in self.columns.items()}


@dataclass
class Model:
    tables: dict[str, Table] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=lambda: [0])
    """The snapshots that have not expired."""
    numbers: int = 0

    def number(self) -> int:
        """A number that was never returned before: for keys and ids."""
        self.numbers += 1
        return self.numbers


def found(columns: list[Column], name: str) -> Column:
    [column] = [column for column in columns if column.name == name]
    return column
