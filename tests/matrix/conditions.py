"""The conditions for every client, and the number of rows that meet them in DuckLake.

DuckLake's answer comes from a copy of the column: its own pruning has no effect on it, nor that it
reads the default for a field of a struct that is NULL, if it reads the field alone.
"""

import json
from collections.abc import Iterator
from typing import Any

from duckdb.sqltypes import DuckDBPyType
from polynya_local.clients.duckdb import identifier
from polynya_local.clients.native import Native

from tests.matrix.condition import DUCKDB, OPERATORS, PYTHON, Condition

COPY = "memory.main.copy_of_a_column"
COLUMNS = 2  # for each table; those that it is partitioned by come first
KINDS = {
    "BOOLEAN": "boolean",
    "TINYINT": "integer",
    "SMALLINT": "integer",
    "INTEGER": "integer",
    "BIGINT": "integer",
    "UTINYINT": "integer",
    "USMALLINT": "integer",
    "UINTEGER": "integer",
    "FLOAT": "float",
    "DOUBLE": "float",
    "DECIMAL": "decimal",
    "VARCHAR": "text",
    "BLOB": "blob",
    "UUID": "uuid",
    "DATE": "date",
    "TIME": "time",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp_ns",
    "TIMESTAMP WITH TIME ZONE": "timestamptz",
}
"""By DuckDB's type, without its arguments: the kind of literal."""
TEXTS = {
    "float": "CAST(CAST({0} AS DOUBLE) AS VARCHAR)",
    "blob": "lower(hex({0}))",
    "timestamptz": "CAST({0} AT TIME ZONE 'UTC' AS VARCHAR) || '+00'",
}
"""The text of a value, if CAST does not give it."""
WITH_INFINITY = {"float", "date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}


def conditions(
    judge: Native, namespace: str, table: str, metadata: dict, snapshot_id: int | None = None
) -> Iterator[Condition]:
    """Conditions on the two most frequent values, for a few columns of a table.

    Fields of structs are columns, too. Those with a default come after those by which the table is
    partitioned, and before all others.

    Args:
        snapshot_id: ask the table as it was then.
    """
    columns = judge.columns(namespace, table, snapshot_id)
    types = {path: str(type_) for name, t in columns.items() for path, type_ in _leaves((name,), t)}
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    ids = {s["snapshot-id"]: s["schema-id"] for s in metadata["snapshots"]}
    schema = schemas[ids.get(snapshot_id, metadata["current-schema-id"])]["fields"]
    fields = {id_: (path, type_) for id_, path, type_ in _fields(schema)}
    zoned = {path: type_ for path, type_ in fields.values() if type_ == "timestamptz_ns"}
    partitioned = [
        fields[field["source-id"]][0]
        for spec in metadata["partition-specs"]
        for field in spec["fields"]
        if field["source-id"] in fields
    ]
    defaults = json.loads(metadata["properties"].get("polynya.default-columns", "[]"))
    with_default = [path for path in types if ".".join(path) in defaults]
    readable = {path for path, _ in fields.values()}
    shown = dict.fromkeys([*partitioned, *with_default, *types])
    kinds = {
        path: zoned.get(path) or KINDS.get(types.get(path, "").partition("(")[0])
        for path in shown
        if path in readable
    }
    source = judge.source(namespace, table, snapshot_id)
    for path in [path for path, kind in kinds.items() if kind][:COLUMNS]:
        column = f"SELECT {identifier(path[0])} FROM {source}"
        judge.query(f"CREATE OR REPLACE TABLE {COPY} AS {column}")
        for one in _on_column(judge, path, kinds[path]):
            yield one._replace(snapshot_id=snapshot_id)


def _leaves(path: tuple[str, ...], type_: DuckDBPyType) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The columns within a column, but for those in lists and maps."""
    if type_.id != "struct":
        yield path, type_
        return
    for name, child in type_.children:
        yield from _leaves((*path, name), child)


def _fields(fields: list[dict], above: tuple[str, ...] = ()) -> Iterator[tuple[int, Any, Any]]:
    """The id, the path and the type of each field of a schema."""
    for field in fields:
        path = (*above, field["name"])
        yield field["id"], path, field["type"]
        if isinstance(field["type"], dict) and field["type"]["type"] == "struct":
            yield from _fields(field["type"]["fields"], path)


def _on_column(judge: Native, path: tuple[str, ...], kind: str) -> Iterator[Condition]:
    column = ".".join(map(identifier, path))
    text = TEXTS.get(kind, "CAST({0} AS VARCHAR)").format(column)
    usual = f"isfinite({column})" if kind in WITH_INFINITY else f"{column} IS NOT NULL"
    found = judge.query(
        f"SELECT {text} FROM {COPY} WHERE {usual} GROUP BY {column}, 1 "
        "ORDER BY count(*) DESC, 1 DESC LIMIT 2"
    )
    values = [value for (value,) in found if _is_literal(kind, value)]
    wanted = [Condition([*path], kind, "IS NULL", [], 0)]
    if values:
        operators = [one for one in OPERATORS if one != "IS NULL"]
        if kind == "float":
            operators.remove(">=")  # whether NaN is the largest number differs by client
        wanted += [
            Condition([*path], kind, o, values[: 2 if o == "IN" else 1], 0) for o in operators
        ]
    counts = ", ".join(f"count(*) FILTER (WHERE {one.sql(DUCKDB)})" for one in wanted)
    [row] = judge.query(f"SELECT {counts} FROM {COPY}")
    for one, rows in zip(wanted, row, strict=True):
        yield one._replace(expected=rows)


def _is_literal(kind: str, value: str) -> bool:
    """Whether all clients can be asked: escaping rules and the years before 1 are not tested."""
    if kind == "text":
        return value.isprintable() and not set(value) & {"'", "\\"}
    try:
        PYTHON[kind](value)
    except ValueError:
        return False
    return True
