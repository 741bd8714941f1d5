"""The conditions for every client, and the number of rows that meet them in DuckLake.

DuckLake's answer comes from counts with FILTER, so that its own pruning has no effect on it.
"""

from collections.abc import Iterator

from polynya_local.clients.duckdb import identifier
from polynya_local.clients.native import Native

from tests.matrix.condition import DUCKDB, OPERATORS, PYTHON, Condition

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


def conditions(judge: Native, namespace: str, table: str, metadata: dict) -> Iterator[Condition]:
    """Conditions on the two most frequent values, for a few columns of a table."""
    types = {n: str(t) for n, t in judge.columns(namespace, table).items()}
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    schema = schemas[metadata["current-schema-id"]]["fields"]
    fields = {f["id"]: f["name"] for f in schema}
    zoned = {f["name"]: f["type"] for f in schema if f["type"] == "timestamptz_ns"}
    partitioned = [
        fields[field["source-id"]]
        for spec in metadata["partition-specs"]
        for field in spec["fields"]
        if field["source-id"] in fields
    ]
    shown = [name for name in dict.fromkeys([*partitioned, *types]) if name in fields.values()]
    kinds = {name: KINDS.get(types.get(name, "").partition("(")[0]) for name in shown} | zoned
    source = f"lake.{identifier(namespace)}.{identifier(table)}"
    for name in [name for name in shown if kinds[name]][:COLUMNS]:
        yield from _on_column(judge, source, name, kinds[name])


def _on_column(judge: Native, source: str, name: str, kind: str) -> Iterator[Condition]:
    column = identifier(name)
    text = TEXTS.get(kind, "CAST({0} AS VARCHAR)").format(column)
    usual = f"isfinite({column})" if kind in WITH_INFINITY else f"{column} IS NOT NULL"
    found = judge.query(
        f"SELECT {text} FROM {source} WHERE {usual} GROUP BY {column}, 1 "
        "ORDER BY count(*) DESC, 1 DESC LIMIT 2"
    )
    values = [value for (value,) in found if _is_literal(kind, value)]
    wanted = [Condition(name, kind, "IS NULL", [], 0)]
    if values:
        operators = [one for one in OPERATORS if one != "IS NULL"]
        if kind == "float":
            operators.remove(">=")  # whether NaN is the largest number differs by client
        wanted += [Condition(name, kind, o, values[: 2 if o == "IN" else 1], 0) for o in operators]
    counts = ", ".join(f"count(*) FILTER (WHERE {one.sql(DUCKDB)})" for one in wanted)
    [row] = judge.query(f"SELECT {counts} FROM {source}")
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
