"""Inlined rows as values of an Iceberg schema: the SQL that converts them.

DuckLake keeps inlined rows in PostgreSQL in one table per schema version, with the column names of
that version and values in DuckDB's text forms. A row of an old version is read as DuckLake reads
it: columns by id, later ones from their default, types cast.
"""

from collections.abc import Sequence
from itertools import count
from typing import Any

from ...ducklake.rows.columns import Column
from ...ducklake.rows.inlined_tables import InlinedTable, postgres_name
from ...iceberg.parquet.files import Rows, Texts
from ...iceberg.parquet.sandbox import literal, quoted
from ...iceberg.types import Field, List, Map, Primitive, Struct, Type
from ..columns.types import is_decimal

# DuckLake's name -> DuckDB's. https://ducklake.select/docs/stable/specification/data_types
SOURCE_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "int128": "HUGEINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "varchar": "VARCHAR",
    "json": "VARCHAR",
    "blob": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timetz": "TIMETZ",
    "timestamp": "TIMESTAMP",
    "timestamp_s": "TIMESTAMP_S",
    "timestamp_ms": "TIMESTAMP_MS",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamptz": "TIMESTAMPTZ",
    "interval": "INTERVAL",
    "uuid": "UUID",
}

# Iceberg's name -> the DuckDB type that Parquet readers expect for it.
TARGET_TYPES = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "uuid": "UUID",
}


class Source:
    """The columns of one schema version, as a tree."""

    def __init__(self, columns: Sequence[Column], snapshot_id: int) -> None:
        visible = [column for column in columns if column.visible_at(snapshot_id)]
        self.by_id = {column.column_id: column for column in visible}
        # DuckDB 1.5.5 drops the default of a struct's field when the field is renamed; snapshots
        # from before show the default still.
        self._defaults = {
            column.column_id: column.initial_default
            for column in columns
            if column.initial_default is not None
        }
        self._children: dict[int | None, list[Column]] = {}
        for column in visible:
            self._children.setdefault(column.parent_column, []).append(column)

    def children(self, column: Column) -> list[Column]:
        """The members of a nested column, in their order."""
        return self._children.get(column.column_id, [])

    def sql_type(self, column: Column) -> str:
        """The DuckDB type whose literals the column holds."""
        inner = [self.sql_type(child) for child in self.children(column)]
        match column.column_type:
            case "struct":
                names = [quoted(child.column_name) for child in self.children(column)]
                fields = [f"{name} {type_}" for name, type_ in zip(names, inner, strict=True)]
                return f"STRUCT({', '.join(fields)})"
            case "list":
                return f"{inner[0]}[]"
            case "map":
                return f"MAP({inner[0]}, {inner[1]})"
        if is_decimal(column.column_type):
            return column.column_type  # DuckDB's spelling too
        # A column of an unknown type is hidden: its value is not read, and VARCHAR can hold any.
        return SOURCE_TYPES.get(column.column_type, "VARCHAR")

    def default(self, column_id: int) -> str | None:
        """The text of the value that a column has in rows that are older than it; None for NULL."""
        return self._defaults.get(column_id)


def inlined_columns(
    table: InlinedTable, columns: Sequence[Column], fields: Sequence[Field]
) -> list[str]:
    """The columns of an inlined table that the schema still shows, by their PostgreSQL names."""
    source = Source(columns, table.schema_begin)
    shown = [source.by_id[field.field_id] for field in fields if field.field_id in source.by_id]
    return [postgres_name(column.column_name) for column in shown]


def inlined_rows(
    table: InlinedTable,
    columns: Sequence[Column],
    fields: Sequence[Field],
    rows: list[list[Any]],
) -> Rows:
    """Rows (columns that `inlined_columns` names), and the SQL that converts them to `fields`."""
    source = Source(columns, table.schema_begin)
    texts: list[Texts | None] = []
    select = []
    place = count()
    binary_columns = table.binary_columns
    for number, field in enumerate(fields):
        column = source.by_id.get(field.field_id)
        if column is None:
            texts.append(None)
            select.append(_default(field, source))
            continue
        nth = next(place)
        is_binary = postgres_name(column.column_name) in binary_columns
        texts.append(("BLOB" if is_binary else "VARCHAR", [row[nth] for row in rows]))
        text = f"decode(c{number})" if is_binary and column.column_type != "blob" else f"c{number}"
        value = f"CAST({text} AS {source.sql_type(column)})"
        select.append(_value(value, column, field.type, source))
    return Rows(texts, select, len(rows))


def _default(field: Field, source: Source) -> str:
    """The value of a field that the rows' schema version did not have."""
    text = None if field.initial_default is None else source.default(field.field_id)
    return f"CAST({'NULL' if text is None else literal(text)} AS {_target_type(field.type)})"


def _value(sql: str, column: Column, type_: Type, source: Source) -> str:
    """SQL for a value of `type_` from `sql`, a value of the column's type; children by id."""
    target = _target_type(type_)
    if _has_shape(column, type_, source):
        return f"CAST({sql} AS {target})"
    match type_:
        case Struct(fields):
            packed = ", ".join(f"{quoted(f.name)} := {_member(sql, f, source)}" for f in fields)
            return f"CASE WHEN {sql} IS NULL THEN NULL ELSE struct_pack({packed})::{target} END"
        case List(_, element):
            [child] = source.children(column)
            inner = _value("e", child, element, source)
            return f"CAST(list_transform({sql}, lambda e: {inner}) AS {target})"
        case Map(_, key, _, value):
            key_column, value_column = source.children(column)
            keys = _value("e.key", key_column, key, source)
            values = _value("e.value", value_column, value, source)
            pairs = f"list_transform(map_entries({sql}), lambda e: {{'k': {keys}, 'v': {values}}})"
            return f"CAST(map_from_entries({pairs}) AS {target})"
    raise AssertionError("a primitive always has the shape of its column")


def _member(sql: str, field: Field, source: Source) -> str:
    child = source.by_id.get(field.field_id)
    if child is None:
        return _default(field, source)
    member = f"struct_extract({sql}, {literal(child.column_name)})"
    return _value(member, child, field.type, source)


def _has_shape(column: Column, type_: Type, source: Source) -> bool:
    """Whether the column has exactly the members of the type, so that a cast by name suffices."""
    children = source.children(column)
    match type_:
        case Struct(fields):
            members = [(child.column_id, child.column_name) for child in children]
            return members == [(field.field_id, field.name) for field in fields] and all(
                _has_shape(child, field.type, source)
                for child, field in zip(children, fields, strict=True)
            )
        case List(_, element):
            return _has_shape(children[0], element, source)
        case Map(_, key, _, value):
            return _has_shape(children[0], key, source) and _has_shape(children[1], value, source)
    return True


def _target_type(type_: Type) -> str:
    match type_:
        case Primitive(name):
            return TARGET_TYPES.get(name, name)
        case Struct(fields):
            inner = [f"{quoted(field.name)} {_target_type(field.type)}" for field in fields]
            return f"STRUCT({', '.join(inner)})"
        case List(_, element):
            return f"{_target_type(element)}[]"
        case Map(_, key, _, value):
            return f"MAP({_target_type(key)}, {_target_type(value)})"
