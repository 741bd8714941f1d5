"""Events: each one changes a model, and returns the SQL that makes the same change to a lake."""

import copy
from dataclasses import dataclass
from typing import Any

from polynya_local.clients.duckdb import identifier, literal

from .model import Column, Model, Table, found

SCHEMA = "main"
WRITERS = ("lake", "other")
"""The names under which the lake is attached, one for each writer."""


@dataclass(frozen=True)
class Event:
    def apply(self, model: Model) -> list[str]:
        """Change the model that the event was drawn for; return the SQL for the lake."""
        raise NotImplementedError


@dataclass(frozen=True)
class Statement(Event):
    """A statement without a visible effect."""

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
        model.tables[self.table] = Table(self.id, copy.deepcopy(list(self.columns)))
        definitions = ", ".join(column.definition for column in self.columns)
        return [f"CREATE {'OR REPLACE ' if self.replace else ''}TABLE {self.name}({definitions})"]


@dataclass(frozen=True)
class Drop(OnTable):
    def apply(self, model: Model) -> list[str]:
        del model.tables[self.table]
        return [f"DROP TABLE {self.name}"]


@dataclass(frozen=True)
class RenameTable(OnTable):
    to: str

    def apply(self, model: Model) -> list[str]:
        model.tables[self.to] = model.tables.pop(self.table)
        return [f"ALTER TABLE {self.name} RENAME TO {identifier(self.to)}"]


@dataclass(frozen=True)
class Insert(OnTable):
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def apply(self, model: Model) -> list[str]:
        table = model.tables[self.table]
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
    """A drawn list of values as a struct, in the order of the current fields."""
    if column.type != "STRUCT" or value is None:
        return value
    return {f.id: v for f, v in zip(column.fields, [*value, *[None] * 9], strict=False)}


@dataclass(frozen=True)
class Rows:
    """A selection of rows by their keys."""

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
        table = model.tables[self.table]
        table.rows = [row for row in table.rows if not self.which.match(row[table.key.id])]
        return [f"DELETE FROM {self.name} WHERE {self.which.sql(table.key)}"]


@dataclass(frozen=True)
class Truncate(OnTable):
    def apply(self, model: Model) -> list[str]:
        model.tables[self.table].rows.clear()
        return [f"TRUNCATE {self.name}"]


@dataclass(frozen=True)
class Update(OnTable):
    which: Rows
    column: str
    value: Any

    def apply(self, model: Model) -> list[str]:
        table = model.tables[self.table]
        column = table.column(self.column)
        value = fitting(column, self.value)
        for row in table.rows:
            if self.which.match(row[table.key.id]):
                row[column.id] = value
        change = f"{identifier(column.name)} = {column.literal(value)}"
        return [f"UPDATE {self.name} SET {change} WHERE {self.which.sql(table.key)}"]


@dataclass(frozen=True)
class Merge(OnTable):
    """MERGE INTO by key: a match is deleted or updated, every other key is inserted."""

    keys: tuple[int, ...]
    column: str | None
    value: Any
    inserts: bool

    def apply(self, model: Model) -> list[str]:
        table = model.tables[self.table]
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
        table = model.tables[self.table]
        new = copy.deepcopy(self.column)
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
        column = model.tables[self.table].column(self.column)
        column.default = self.value
        words = "DROP DEFAULT" if self.value is None else f"SET DEFAULT {literal(str(self.value))}"
        return [f"ALTER TABLE {self.name} ALTER COLUMN {identifier(column.name)} {words}"]


@dataclass(frozen=True)
class DropColumn(OnTable):
    column: str

    def apply(self, model: Model) -> list[str]:
        table = model.tables[self.table]
        column = table.column(self.column)
        table.columns.remove(column)
        return [f"ALTER TABLE {self.name} DROP COLUMN {identifier(column.name)}"]


@dataclass(frozen=True)
class RenameColumn(OnTable):
    column: str
    to: str

    def apply(self, model: Model) -> list[str]:
        table = model.tables[self.table]
        table.column(self.column).name = self.to
        change = f"{identifier(self.column)} TO {identifier(self.to)}"
        return [f"ALTER TABLE {self.name} RENAME COLUMN {change}"]


@dataclass(frozen=True)
class Promote(OnTable):
    column: str
    to: str

    def apply(self, model: Model) -> list[str]:
        column = model.tables[self.table].column(self.column)
        column.type = self.to
        return [f"ALTER TABLE {self.name} ALTER COLUMN {identifier(column.name)} TYPE {self.to}"]


@dataclass(frozen=True)
class ChangeStruct(OnTable):
    """A field is added, dropped or renamed."""

    column: str
    old: str | None
    new: Column | None

    def apply(self, model: Model) -> list[str]:
        table = model.tables[self.table]
        column = table.column(self.column)
        name = identifier(column.name)
        if self.old is None and self.new is not None:
            column.fields.append(copy.deepcopy(self.new))
            for row in table.rows:
                if row[column.id] is not None:
                    row[column.id] = {**row[column.id], self.new.id: None}
            change = f"ADD COLUMN {name}.{self.new.definition}"
        elif self.new is None:
            column.fields.remove(found(column.fields, self.old or ""))
            change = f"DROP COLUMN {name}.{identifier(self.old or '')}"
        else:
            part = found(column.fields, self.old or "")
            part.name = self.new.name
            change = f"RENAME COLUMN {name}.{identifier(self.old or '')} TO "
            change += identifier(self.new.name)
        return [f"ALTER TABLE {self.name} {change}"]


@dataclass(frozen=True)
class Alter(OnTable):
    """Partitioning or sorting by columns; `{0}` and so on are replaced by their names."""

    words: str
    columns: tuple[str, ...] = ()

    def apply(self, model: Model) -> list[str]:
        table = model.tables[self.table]
        names = [identifier(table.column(name).name) for name in self.columns]
        return [f"ALTER TABLE {self.name} {self.words.format(*names)}"]


@dataclass(frozen=True)
class Expire(Event):
    snapshots: tuple[int, ...]

    def apply(self, model: Model) -> list[str]:
        model.snapshots = [n for n in model.snapshots if n not in self.snapshots]
        return [
            f"CALL ducklake_expire_snapshots('lake', versions => {[*self.snapshots]})",
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


@dataclass(frozen=True)
class Elsewhere(Event):
    """The same event by the other writer."""

    event: Event

    def apply(self, model: Model) -> list[str]:
        own, other = (f"{name}." for name in WRITERS)
        return [sql.replace(own, other) for sql in self.event.apply(model)]
