"""Random histories of a lake: every snapshot that is listed has the rows that were written.

A generator draws DDL, DML and maintenance. DuckDB carries each statement out on a real lake, and
a model, which is nothing but lists of rows in Python, carries it out too. The judge is the model:
DuckLake's own time travel has defects, and where it and the bridge agree against the model, the
catalog has lost what happened; that is reported and fails nothing.

For the night: POLYNYA_HISTORIES=500 (how many) and POLYNYA_FIRST_HISTORY=1000 (the first seed);
failures are then made smaller before they are written, each as a script like those in tests/lakes.
"""

import copy
import json
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import duckdb as engine
import pytest

from local.canonical import (
    Canonical,
    Columns,
    canonical,
    columns_of,
    difference,
    from_arrow,
)
from local.clients import duckdb, native, pyiceberg, rest
from local.duckdb_connection import LAKE, connect, identifier, literal
from local.lakes import Lake
from local.serving import serving

FIRST = int(os.environ.get("POLYNYA_FIRST_HISTORY", "0"))
HISTORIES = int(os.environ.get("POLYNYA_HISTORIES", "0"))
STEPS = int(os.environ.get("POLYNYA_STEPS", "24"))
IN_CI = 3
LOOKS = 3  # how often a history is read while it goes on: what is kept must stay right
SOME = 3  # snapshots that are read in between; at the end all of them
SCRIPTS = Path(tempfile.gettempdir()) / "polynya-histories"
BUCKET = "lakes"
SCHEMA = "main"
NAMES = ("one", "two", "three x")
COLUMN_NAMES = ("a", "b", "c", "D é", "select")
FIELD_NAMES = ("x", "y", "z")
TEXTS = ("a", "b", "ä🦆", "it's", 'q"uo', "", "NULL", "x/y=z %41", "{'x': 1}")

Row = dict[int, Any]
"""Values by column id; a struct is such a row of its fields."""


# The model


@dataclass(frozen=True)
class Type:
    """A type without parts: how DuckDB calls it, what it becomes, which values it has."""

    sql: str
    values: tuple[Any, ...]
    becomes: tuple[str, ...] = ()


SCALARS = {
    type.sql: type
    for type in (
        Type("TINYINT", (0, 1, -128, 127), ("SMALLINT", "BIGINT")),
        Type("SMALLINT", (0, 1, -32768, 32767), ("INTEGER",)),
        Type("INTEGER", (0, 1, 2, 3, -(2**31), 2**31 - 1), ("BIGINT",)),
        Type("BIGINT", (0, 1, 2, 3, -(2**63), 2**63 - 1)),
        Type("FLOAT", (0.5, -1.25, 1024.0), ("DOUBLE",)),
        Type("DOUBLE", (0.5, -1.25, 1048577.0)),
        Type("DECIMAL(6,2)", (Decimal("0.25"), Decimal("-9999.99")), ("DECIMAL(12,2)",)),
        Type("DECIMAL(12,2)", (Decimal("0.25"), Decimal("9999999999.99"))),
        Type("VARCHAR", TEXTS),
        Type("BOOLEAN", (True, False)),
        Type("DATE", ("1969-12-31", "2024-02-29", "2024-03-01")),
        Type("TIMESTAMP", ("1969-12-31 23:59:59", "2024-02-29 12:00:00")),
    )
}
IDENTITIES = ("TINYINT", "INTEGER", "BIGINT", "VARCHAR", "BOOLEAN", "DATE", "DECIMAL(6,2)")
BUCKETS = ("TINYINT", "INTEGER", "BIGINT", "VARCHAR", "DATE")
CALENDAR = ("DATE", "TIMESTAMP")


@dataclass
class Column:
    id: int
    name: str
    type: str
    """A key of SCALARS, `STRUCT` or `INTEGER[]`."""
    fields: list["Column"] = field(default_factory=list)
    default: Any = None
    """Of rows to come."""

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
        """A value in SQL."""
        if value is None:
            return "NULL"
        if self.type == "STRUCT":
            parts = (f"{literal(f.name)}: {f.literal(value[f.id])}" for f in self.fields)
            return f"{{{', '.join(parts)}}}"
        if self.type == "INTEGER[]":
            return f"[{', '.join('NULL' if v is None else str(v) for v in value)}]"
        return literal(value) if isinstance(value, str) else str(value).lower()

    def text(self, value: Any) -> str | None:
        """A value as `local.canonical` writes it."""
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

    def without(self, hidden: frozenset[str]) -> Canonical:
        shown = [i for i, name in enumerate(self.columns) if name not in hidden]
        rows: Counter = Counter()
        for row, times in self.rows.items():
            rows[tuple(row[i] for i in shown)] += times
        return Canonical(tuple(name for name in self.columns if name not in hidden), rows)

    def types(self) -> Columns:
        return {name: engine.sqltype(type) for name, type in self.columns.items()}


@dataclass
class Model:
    tables: dict[str, Table] = field(default_factory=dict)
    snapshots: list[int] = field(default_factory=lambda: [0])
    """Those that have not expired."""


class Inapplicable(Exception):
    """The statement makes no sense now: what it needs was left out while shrinking."""


def found(columns: list[Column], name: str) -> Column:
    for column in columns:
        if column.name == name:
            return column
    raise Inapplicable(name)


def table_of(model: Model, name: str) -> Table:
    if name not in model.tables:
        raise Inapplicable(name)
    return model.tables[name]


def unused(columns: list[Column], name: str) -> str:
    if name.lower() in {column.name.lower() for column in columns}:
        raise Inapplicable(name)
    return name


# What can happen: each changes a model and says the SQL that does the same to a lake


@dataclass(frozen=True)
class Event:
    def apply(self, model: Model) -> list[str]:
        """Change the model; gives the SQL for the lake.

        Raises:
            Inapplicable: it makes no sense; the model may have become anything.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Statement(Event):
    """Changes nothing that can be seen."""

    sql: str

    def apply(self, model: Model) -> list[str]:
        return [self.sql]


@dataclass(frozen=True)
class OnTable(Event):
    table: str

    @property
    def name(self) -> str:
        return f"lake.{identifier(SCHEMA)}.{identifier(self.table)}"


@dataclass(frozen=True)
class Create(OnTable):
    columns: tuple[Column, ...]
    id: int
    replace: bool

    def apply(self, model: Model) -> list[str]:
        if self.table in model.tables and not self.replace:
            raise Inapplicable(self.table)
        model.tables[self.table] = Table(self.id, copy.deepcopy(list(self.columns)))
        definitions = ", ".join(column.definition for column in self.columns)
        return [f"CREATE {'OR REPLACE ' if self.replace else ''}TABLE {self.name}({definitions})"]


@dataclass(frozen=True)
class Drop(OnTable):
    def apply(self, model: Model) -> list[str]:
        table_of(model, self.table)
        del model.tables[self.table]
        return [f"DROP TABLE {self.name}"]


@dataclass(frozen=True)
class RenameTable(OnTable):
    to: str

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        if self.to in model.tables:
            raise Inapplicable(self.to)
        del model.tables[self.table]
        model.tables[self.to] = table
        return [f"ALTER TABLE {self.name} RENAME TO {identifier(self.to)}"]


@dataclass(frozen=True)
class Insert(OnTable):
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        given = [table.column(name) for name in self.columns]
        values = []
        for row in self.rows:
            new = {column.id: column.default for column in table.columns}
            new |= {c.id: fitting(c, value) for c, value in zip(given, row, strict=True)}
            table.rows.append(new)
            values.append(f"({', '.join(c.literal(new[c.id]) for c in given)})")
        names = ", ".join(identifier(name) for name in self.columns)
        if values:
            return [f"INSERT INTO {self.name} ({names}) VALUES {', '.join(values)}"]
        nulls = ", ".join("NULL" for _ in given)
        return [f"INSERT INTO {self.name} ({names}) SELECT {nulls} WHERE false"]


def fitting(column: Column, value: Any) -> Any:
    """A struct was drawn as a list of values: in order of the fields that there are now."""
    if column.type != "STRUCT" or value is None:
        return value
    return {f.id: v for f, v in zip(column.fields, [*value, *[None] * 9], strict=False)}


@dataclass(frozen=True)
class Rows:
    """Which rows are meant, by their keys."""

    keys: tuple[int, ...] | None = None
    modulo: tuple[int, int] | None = None

    def match(self, key: Any) -> bool:
        if self.keys is not None:
            return key in self.keys and key is not None
        return self.modulo is None or (key is not None and key % self.modulo[0] == self.modulo[1])

    def sql(self, key: Column) -> str:
        name = identifier(key.name)
        if self.keys is not None:
            return f"{name} IN ({', '.join(map(str, self.keys))})"
        return f"{name} % {self.modulo[0]} = {self.modulo[1]}" if self.modulo else "true"


@dataclass(frozen=True)
class Delete(OnTable):
    which: Rows

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        table.rows = [row for row in table.rows if not self.which.match(row[table.key.id])]
        return [f"DELETE FROM {self.name} WHERE {self.which.sql(table.key)}"]


@dataclass(frozen=True)
class Truncate(OnTable):
    def apply(self, model: Model) -> list[str]:
        table_of(model, self.table).rows.clear()
        return [f"TRUNCATE {self.name}"]


@dataclass(frozen=True)
class Update(OnTable):
    which: Rows
    column: str
    value: Any

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        column = table.column(self.column)
        value = fitting(column, self.value)
        for row in table.rows:
            if self.which.match(row[table.key.id]):
                row[column.id] = value
        change = f"{identifier(column.name)} = {column.literal(value)}"
        return [f"UPDATE {self.name} SET {change} WHERE {self.which.sql(table.key)}"]


@dataclass(frozen=True)
class Merge(OnTable):
    """MERGE INTO by key: what matches is deleted or gets a value, what does not is inserted."""

    keys: tuple[int, ...]
    column: str | None
    value: Any
    inserts: bool

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        key = table.key
        known = {row[key.id] for row in table.rows}
        if self.column is None:
            matched = "DELETE"
            table.rows = [row for row in table.rows if row[key.id] not in self.keys]
        else:
            column = table.column(self.column)
            value = fitting(column, self.value)
            matched = f"UPDATE SET {identifier(column.name)} = {column.literal(value)}"
            for row in table.rows:
                if row[key.id] in self.keys:
                    row[column.id] = value
        words = ""
        if self.inserts:
            for new in [k for k in self.keys if k not in known]:
                table.rows.append({c.id: None for c in table.columns} | {key.id: new})
            names = ", ".join(identifier(c.name) for c in table.columns)
            values = ", ".join(["s.k", *["NULL" for _ in table.columns[1:]]])
            words = f" WHEN NOT MATCHED THEN INSERT ({names}) VALUES ({values})"
        keys = ", ".join(map(str, self.keys))
        return [
            f"MERGE INTO {self.name} AS t USING (SELECT unnest([{keys}]) AS k) AS s "
            f"ON t.{identifier(key.name)} = s.k WHEN MATCHED THEN {matched}{words}"
        ]


@dataclass(frozen=True)
class AddColumn(OnTable):
    column: Column

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        new = copy.deepcopy(self.column)
        unused(table.columns, new.name)
        for row in table.rows:
            row[new.id] = new.default
        table.columns.append(new)
        words = "" if new.default is None else f" DEFAULT {literal(str(new.default))}"
        return [f"ALTER TABLE {self.name} ADD COLUMN {new.definition}{words}"]


@dataclass(frozen=True)
class SetDefault(OnTable):
    column: str
    value: Any

    def apply(self, model: Model) -> list[str]:
        column = table_of(model, self.table).column(self.column)
        column.default = self.value
        words = "DROP DEFAULT" if self.value is None else f"SET DEFAULT {literal(str(self.value))}"
        return [f"ALTER TABLE {self.name} ALTER COLUMN {identifier(column.name)} {words}"]


@dataclass(frozen=True)
class DropColumn(OnTable):
    column: str

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        column = table.column(self.column)
        if column is table.key:
            raise Inapplicable(self.column)
        table.columns.remove(column)
        return [f"ALTER TABLE {self.name} DROP COLUMN {identifier(column.name)}"]


@dataclass(frozen=True)
class RenameColumn(OnTable):
    column: str
    to: str

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        table.column(self.column).name = unused(table.columns, self.to)
        change = f"{identifier(self.column)} TO {identifier(self.to)}"
        return [f"ALTER TABLE {self.name} RENAME COLUMN {change}"]


@dataclass(frozen=True)
class Promote(OnTable):
    column: str
    to: str

    def apply(self, model: Model) -> list[str]:
        column = table_of(model, self.table).column(self.column)
        if self.to not in SCALARS[column.type].becomes if column.type in SCALARS else True:
            raise Inapplicable(self.column)
        column.type = self.to
        return [f"ALTER TABLE {self.name} ALTER COLUMN {identifier(column.name)} TYPE {self.to}"]


@dataclass(frozen=True)
class ChangeStruct(OnTable):
    """A field is added, dropped or renamed."""

    column: str
    old: str | None
    new: Column | None

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        column = table.column(self.column)
        if column.type != "STRUCT":
            raise Inapplicable(self.column)
        name = identifier(column.name)
        if self.old is None and self.new is not None:
            unused(column.fields, self.new.name)
            column.fields.append(copy.deepcopy(self.new))
            for row in table.rows:
                if row[column.id] is not None:
                    row[column.id] = {**row[column.id], self.new.id: None}
            change = f"ADD COLUMN {name}.{self.new.definition}"
        elif self.new is None:
            if len(column.fields) == 1:
                raise Inapplicable(self.column)
            column.fields.remove(found(column.fields, self.old or ""))
            change = f"DROP COLUMN {name}.{identifier(self.old or '')}"
        else:
            part = found(column.fields, self.old or "")
            part.name = unused(column.fields, self.new.name)
            change = f"RENAME COLUMN {name}.{identifier(self.old or '')} TO "
            change += identifier(self.new.name)
        return [f"ALTER TABLE {self.name} {change}"]


@dataclass(frozen=True)
class Alter(OnTable):
    """Partitioning or sorting by columns: `{0}` and so on stand for their names."""

    words: str
    columns: tuple[str, ...] = ()

    def apply(self, model: Model) -> list[str]:
        table = table_of(model, self.table)
        names = [identifier(table.column(name).name) for name in self.columns]
        return [f"ALTER TABLE {self.name} {self.words.format(*names)}"]


@dataclass(frozen=True)
class Expire(Event):
    """Every snapshot but some; the newest stays."""

    modulo: int

    def apply(self, model: Model) -> list[str]:
        gone = [n for n in model.snapshots[:-1] if n > 0 and n % self.modulo]
        if not gone:
            raise Inapplicable("nothing to expire")
        model.snapshots = [n for n in model.snapshots if n not in gone]
        return [
            f"CALL ducklake_expire_snapshots('lake', versions => {gone})",
            "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
        ]


@dataclass(frozen=True)
class Together(Event):
    """A transaction."""

    events: tuple[Event, ...]
    ending: str

    def apply(self, model: Model) -> list[str]:
        changed = model if self.ending == "COMMIT" else copy.deepcopy(model)
        inner = [sql for event in self.events for sql in event.apply(changed)]
        return ["BEGIN", *inner, self.ending]


# What is drawn


class Generator:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._ids = count(1)
        self._keys = count(1)
        self.inlining = self._random.choice((10, 10, 3, 0))
        draws: dict[Callable[[Model, str], Event], int] = {
            self._dml: 60,
            self._together: 8,
            self._evolution: 25,
            self._layout: 6,
            self._maintenance: 22,
            self._table: 4,
        }
        # Every history has its own leaning: what seldom meets in an average one does in some.
        self._weights = {
            function: weight * self._random.choice((0.2, 1, 1, 3))
            for function, weight in draws.items()
        }

    def event(self, model: Model) -> Event:
        """What may come next."""
        if len(model.tables) < 1 or (len(model.tables) < 3 and self._random.random() < 0.03):
            return self._create(model)
        table = self._random.choice(sorted(model.tables))
        [function] = self._random.choices(list(self._weights), list(self._weights.values()))
        return function(model, table)

    def _together(self, model: Model, name: str) -> Event:
        names = [self._random.choice(sorted(model.tables)) for _ in range(3)]
        ending = "COMMIT" if self._random.random() < 0.85 else "ROLLBACK"
        return Together(tuple(self._dml(model, name) for name in names), ending)

    def _create(self, model: Model, name: str | None = None) -> Event:
        names = [n for n in NAMES if n not in model.tables]
        key = Column(next(self._ids), "k", self._random.choice(("INTEGER", "INTEGER", "BIGINT")))
        others = self._random.sample(COLUMN_NAMES, self._random.randint(1, 3))
        columns = (key, *(self._column(name) for name in others))
        return Create(
            name or self._random.choice(names), columns, next(self._ids), name is not None
        )

    def _column(self, name: str) -> Column:
        kind = self._random.choice([*SCALARS, "VARCHAR", "STRUCT", "STRUCT", "INTEGER[]"])
        column = Column(next(self._ids), name, kind)
        if kind == "STRUCT":
            names = self._random.sample(FIELD_NAMES, self._random.randint(1, 2))
            column.fields = [self._field(name) for name in names]
        return column

    def _field(self, name: str) -> Column:
        return Column(next(self._ids), name, self._random.choice(("INTEGER", "VARCHAR")))

    def _value(self, column: Column) -> Any:
        if self._random.random() < 0.2:
            return None
        if column.type == "STRUCT":
            return [self._value(part) for part in column.fields]
        if column.type == "INTEGER[]":
            return [self._random.choice((None, 1, 2)) for _ in range(self._random.randint(0, 3))]
        return self._random.choice(SCALARS[column.type].values)

    def _some_rows(self, table: Table) -> Rows:
        keys = sorted({row[table.key.id] for row in table.rows} - {None})
        kind = self._random.random()
        if keys and kind < 0.6:
            number = min(len(keys), self._random.choice((1, 1, 2, 3, 12)))
            return Rows(keys=tuple(self._random.sample(keys, number)))
        if kind < 0.95:
            modulo = self._random.choice((2, 3, 5))
            return Rows(modulo=(modulo, self._random.randrange(modulo)))
        return Rows()

    def _dml(self, model: Model, name: str) -> Event:
        table = model.tables[name]
        column = self._random.choice(table.columns[1:] or table.columns)
        value = self._value(column) if column is not table.key else next(self._keys)
        [kind] = self._random.choices(
            ("insert", "delete", "update", "merge", "truncate"), (45, 25, 20, 8, 2)
        )
        if kind == "insert":
            return self._insert(name, table)
        if kind == "delete":
            return Delete(name, self._some_rows(table))
        if kind == "update":
            return Update(name, self._some_rows(table), column.name, value)
        if kind == "merge":
            keys = sorted({row[table.key.id] for row in table.rows} - {None})
            chosen = [*self._random.sample(keys, min(len(keys), 2)), next(self._keys)]
            changed = column.name if self._random.random() < 0.6 else None
            return Merge(name, tuple(chosen), changed, value, self._random.random() < 0.7)
        return Truncate(name)

    def _insert(self, name: str, table: Table) -> Event:
        given = table.columns
        if self._random.random() < 0.2:
            given = [table.key, *(c for c in table.columns[1:] if self._random.random() < 0.5)]
        number = self._random.choice((0, 1, 1, 1, 2, 3, 12, 15, 30))
        rows = []
        for _ in range(number):
            key = next(self._keys)
            if self._random.random() < 0.1:
                key = self._random.choice((None, max(1, key - 3)))
            rows.append((key, *(self._value(column) for column in given[1:])))
        return Insert(name, tuple(column.name for column in given), tuple(rows))

    def _evolution(self, model: Model, name: str) -> Event:
        table = model.tables[name]
        column = self._random.choice(table.columns)
        kind = self._random.choice(
            ("add", "add", "drop", "rename", "rename", "promote", "promote", "default", "struct")
        )
        new_name = self._random.choice(COLUMN_NAMES)
        if kind == "add":
            new = self._column(new_name)
            if new.type in SCALARS and new.type != "BOOLEAN" and self._random.random() < 0.6:
                new.default = self._random.choice(SCALARS[new.type].values)
            return AddColumn(name, new)
        if kind == "drop":
            return DropColumn(name, column.name)
        if kind == "rename":
            return RenameColumn(name, column.name, new_name)
        if kind == "promote":
            able = [c for c in table.columns if c.type in SCALARS and SCALARS[c.type].becomes]
            if not able:
                raise Inapplicable("nothing to promote")
            chosen = self._random.choice(able)
            return Promote(name, chosen.name, self._random.choice(SCALARS[chosen.type].becomes))
        if kind == "default":
            if column.type not in SCALARS or column.type == "BOOLEAN" or column is table.key:
                raise Inapplicable("no default")
            return SetDefault(name, column.name, self._value(column))
        structs = [c for c in table.columns if c.type == "STRUCT"]
        if not structs:
            raise Inapplicable("no struct")
        struct = self._random.choice(structs)
        part = self._random.choice(struct.fields).name
        new_part = self._field(self._random.choice(FIELD_NAMES))
        old, new_field = self._random.choice(((None, new_part), (part, None), (part, new_part)))
        return ChangeStruct(name, struct.name, old, new_field)

    def _layout(self, model: Model, name: str) -> Event:
        columns = model.tables[name].columns
        words = ["RESET PARTITIONED BY", "RESET SORTED BY", "SET SORTED BY ({0} DESC)"]
        words += ["SET PARTITIONED BY ({0})", "SET PARTITIONED BY (bucket(3, {0}))"]
        words += ["SET PARTITIONED BY (year({0}))", "SET PARTITIONED BY (year({0}), month({0}))"]
        words += ["SET PARTITIONED BY ({0}, {1})"]
        chosen = self._random.choice(words)
        if "{0}" not in chosen:
            return Alter(name, chosen)
        kinds = CALENDAR if "year" in chosen else BUCKETS if "bucket" in chosen else IDENTITIES
        able = [column.name for column in columns if column.type in kinds]
        if len(able) < 1 + ("{1}" in chosen):
            raise Inapplicable("no column to do it by")
        return Alter(name, chosen, tuple(self._random.sample(able, 1 + ("{1}" in chosen))))

    def _maintenance(self, model: Model, name: str) -> Event:
        limit = self._random.choice((0, 3, 10, 1000))
        statements = (
            "CALL ducklake_flush_inlined_data('lake')",
            "CALL ducklake_flush_inlined_data('lake')",
            f"CALL ducklake_flush_inlined_data('lake', table_name => {literal(name)})",
            "CALL ducklake_merge_adjacent_files('lake')",
            "CALL ducklake_merge_adjacent_files('lake')",
            "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
            "CALL ducklake_rewrite_data_files('lake')",
            f"CALL lake.set_option('data_inlining_row_limit', {limit})",
            "CHECKPOINT lake",
        )
        if self._random.random() < 0.12:
            return Expire(self._random.choice((2, 3, 4)))
        return Statement(self._random.choice(statements))

    def _table(self, model: Model, name: str) -> Event:
        kind = self._random.choice(("rename", "rename", "drop", "replace"))
        if kind == "rename":
            return RenameTable(name, self._random.choice(NAMES))
        if kind == "replace":
            return self._create(model, name)
        return Drop(name)


# A history: what happened to a real lake


class History:
    def __init__(self, lake: Lake, s3_endpoint: str, inlining: int) -> None:
        self.lake, self.model = lake, Model()
        self.script: list[str] = []
        self.refused: list[str] = []
        """What DuckDB would not do, and why."""
        self.disobeyed: list[str] = []
        """Where DuckDB said that all is well and did something else: the model ends there."""
        self.contents: dict[int, dict[int, Then]] = {0: {}}
        """By snapshot and table."""
        self._s3_endpoint = s3_endpoint
        self._pg = lake.database.connect()
        self._open(f"(DATA_PATH {literal(lake.data_path)}, DATA_INLINING_ROW_LIMIT {inlining})")
        self.attach = (
            "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', "
            f"DATA_INLINING_ROW_LIMIT {inlining})"
        )

    def _open(self, options: str) -> None:
        self._con = connect(LAKE, self._s3_endpoint)
        source = literal(f"ducklake:postgres:{self.lake.database.libpq}")
        self._con.execute(f"ATTACH {source} AS lake {options}")

    def close(self) -> None:
        self._con.close()
        self._pg.close()

    def add(self, event: Event) -> bool:
        """Let it happen; false where the model or DuckDB does not let it."""
        model = copy.deepcopy(self.model)
        try:
            statements = event.apply(model)
        except Inapplicable:
            return False
        try:
            for sql in statements:
                self._con.execute(sql)
        except engine.Error as error:
            self.refused.append(f"{'; '.join(statements)}: {error}"[:600])
            self._undo(error)
            return False
        self.script += statements
        self.model = model
        then = {table.id: table.then() for table in model.tables.values()}
        model.snapshots = self._snapshots()
        for name, table in model.tables.items():
            seen = self._seen(name)
            if report := difference(then[table.id].without(frozenset()), seen):
                self.disobeyed.append(f"{name} after {'; '.join(statements)}: {' | '.join(report)}")
                then[table.id] = Then(then[table.id].columns, seen.rows)
        # A statement that changed nothing makes no snapshot, CHECKPOINT makes several.
        for snapshot_id in range(max(self.contents) + 1, model.snapshots[-1] + 1):
            self.contents[snapshot_id] = then
        return True

    def _seen(self, table: str) -> Canonical:
        source = f"lake.{identifier(SCHEMA)}.{identifier(table)}"
        return canonical(self._con, source, columns_of(self._con, source))

    def _undo(self, error: engine.Error) -> None:
        with suppress(engine.Error):
            self._con.execute("ROLLBACK")
        if isinstance(error, engine.InternalException | engine.FatalException):
            with suppress(engine.Error):
                self._con.close()
            self._open("")

    def _snapshots(self) -> list[int]:
        rows = self._pg.run("SELECT snapshot_id FROM ducklake_snapshot ORDER BY 1")
        return [row[0] for row in rows]

    def sql(self, note: str) -> str:
        """As a script like those in tests/lakes."""
        notes = "".join(f"-- {line}\n" for line in note.splitlines())
        return notes + "".join(f"{sql};\n" for sql in (self.attach, "USE lake", *self.script))


class Judge:
    """Compares what clients read through one bridge with a history."""

    def __init__(self, history: History, bridge, s3_endpoint: str) -> None:
        self._history = history
        self._s3_endpoint = s3_endpoint
        self._rest = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        self._clients = [pyiceberg.open(*where), duckdb.open(*where)]
        self.lost: list[str] = []
        """Where DuckLake itself no longer knows what was."""
        self.reads = 0

    def close(self) -> None:
        for client in self._clients:
            client.close()

    def wrong(self, random: random.Random | None) -> list[str]:
        """A line for each difference; of each table some snapshots, or all without `random`."""
        wrong = []
        truth = native.open(self._history.lake, self._s3_endpoint)
        try:
            for name, table in self._history.model.tables.items():
                try:
                    metadata = self._rest.load_table(SCHEMA, name)
                except rest.Refused as refusal:
                    wrong.append(f"{name}: {refusal}")
                    continue
                listed = sorted(s["snapshot-id"] for s in metadata.get("snapshots", []))
                wrong += self._left_out(name, table, listed)
                hidden = json.loads(metadata["properties"].get("polynya.hidden-columns", "[]"))
                if hidden:
                    wrong.append(f"{name}: {hidden} hidden")
                if random is not None:
                    listed = sorted(random.sample(listed, min(SOME, len(listed))))
                for snapshot_id in [None, *listed]:
                    wrong += self._at(truth, name, table, snapshot_id, frozenset(hidden))
        finally:
            truth.close()
        return wrong

    def _left_out(self, name: str, table: Table, listed: list[int]) -> Iterator[str]:
        """A snapshot that is there shows what the last one listed up to it shows."""
        history, empty = self._history, Counter()
        for snapshot_id in history.model.snapshots:
            then = history.contents[snapshot_id].get(table.id)
            before = [n for n in listed if n <= snapshot_id]
            shown = history.contents[before[-1]][table.id].rows if before else empty
            if then is not None and then.rows != shown:
                yield f"{name}: the change at {snapshot_id} is not in {listed}"

    def _at(
        self, truth, name: str, table: Table, snapshot_id: int | None, hidden: frozenset[str]
    ) -> Iterator[str]:
        contents = self._history.contents
        then = contents[max(contents) if snapshot_id is None else snapshot_id].get(table.id)
        if then is None:
            yield f"{name}: {snapshot_id} is listed, but the table was not there"
            return
        expected = then.without(hidden)
        for client in self._clients:
            self.reads += 1
            where = f"{client.name}, {name} at {snapshot_id}"
            try:
                rows = client.rows(SCHEMA, name, snapshot_id)
                seen = from_arrow(rows, then.types(), hidden)
            except Exception as error:
                yield f"{where}: {type(error).__name__}: {' '.join(str(error).split())[:400]}"
                continue
            report = difference(expected, seen)
            if not report:
                continue
            itself = truth.canonical(SCHEMA, name, snapshot_id, hidden)
            if not difference(itself, seen):
                self.lost.append(f"{where}: {report[0]}")
                continue
            yield f"{where}: {' | '.join(report)}"
            if difference(itself, expected):
                yield f"{where}: DuckLake has neither: {difference(expected, itself)[0]}"


class Stage:
    """Where histories happen: each in a database of its own."""

    NUMBERS = count(1)

    def __init__(self, server, s3_endpoint: str, delivery: str) -> None:
        self._server, self._s3_endpoint, self._delivery = server, s3_endpoint, delivery

    @contextmanager
    def history(self, inlining: int) -> Iterator[tuple[History, Judge]]:
        name = f"history_{os.getpid()}_{next(self.NUMBERS)}"
        database = self._server.create_database(name)
        lake = Lake(name, database, f"s3://{BUCKET}/{name}")
        history = History(lake, self._s3_endpoint, inlining)
        try:
            url, settings = database.url, {"CHUNK_FILES": "2"}
            with serving(
                url, self._s3_endpoint, delivery=self._delivery, settings=settings
            ) as bridge:
                judge = Judge(history, bridge, self._s3_endpoint)
                try:
                    yield history, judge
                finally:
                    judge.close()
        finally:
            history.close()

    def replay(self, events: list[Event], inlining: int, looks: bool) -> tuple[list[str], History]:
        """Let the events happen again, those that can; what is wrong at the end."""
        with self.history(inlining) as (history, judge):
            for number, event in enumerate(events):
                if history.disobeyed:
                    break
                history.add(event)
                if looks and number % (len(events) // LOOKS + 1) == 0:
                    judge.wrong(random.Random(number))
            return judge.wrong(None), history


def shrunk(stage: Stage, events: list[Event], inlining: int) -> tuple[list[str], History]:
    """A shorter history that is wrong too."""
    wrong, history = stage.replay(events, inlining, looks=False)
    looks = not wrong
    if looks:
        wrong, history = stage.replay(events, inlining, looks=True)
    size = len(events) // 2
    while wrong and size:
        start = 0
        while start < len(events):
            fewer = events[:start] + events[start + size :]
            still, shorter = stage.replay(fewer, inlining, looks)
            if still:
                events, wrong, history = fewer, still, shorter
            else:
                start += size
        size //= 2
    return wrong, history


@pytest.fixture(scope="module")
def stage(request, postgres_server, moto):
    return Stage(postgres_server, moto, (request.config.getoption("--delivery") or "object-lambda"))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + (HISTORIES or IN_CI)))
def test_every_listed_snapshot_has_the_rows_that_were_written(seed, stage, left_out):
    generator, happened, wrong = Generator(seed), [], []
    looks = {STEPS * look // LOOKS for look in range(1, LOOKS)}
    with stage.history(generator.inlining) as (history, judge):
        while len(happened) < STEPS and not wrong and not history.disobeyed:
            try:
                event = generator.event(history.model)
            except Inapplicable:
                continue
            if not history.add(event):
                continue
            happened.append(event)
            if len(happened) in looks:
                wrong = judge.wrong(random.Random(seed))
        wrong = wrong or judge.wrong(None)
        left_out.extend(f"history {seed}: DuckLake lost it: {line}" for line in judge.lost)
        left_out.extend(f"history {seed}: DuckDB did not: {line}" for line in history.disobeyed)
    if not wrong:
        return
    scripts = [script_of(seed, "", wrong, history)]
    if HISTORIES:
        smaller, shorter = shrunk(stage, happened, generator.inlining)
        if smaller:
            scripts.append(script_of(seed, "_smaller", smaller, shorter))
            wrong = smaller
    pytest.fail("\n".join([*map(str, scripts), *wrong]))


def script_of(seed: int, suffix: str, wrong: list[str], history: History) -> Path:
    SCRIPTS.mkdir(exist_ok=True)
    path = SCRIPTS / f"history_{seed}{suffix}.sql"
    path.write_text(history.sql("\n".join([f"random history {seed}", *wrong[:20]])))
    return path
