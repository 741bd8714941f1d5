"""The conditions for every client, and the number of rows that meet them in DuckLake.

DuckLake's answer comes from a GROUP BY, so that its own pruning has no effect on it.
"""

from collections.abc import Iterator
from datetime import date
from typing import Any

from polynya_local.clients.duckdb_connection import identifier
from polynya_local.clients.native import Native

from tests.matrix.condition import Condition

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
    "VARCHAR": "text",
    "DATE": "date",
}
"""DuckDB's types whose values are literals in every client, and the kind of literal."""


def conditions(judge: Native, namespace: str, table: str, metadata: dict) -> Iterator[Condition]:
    """A condition on the most frequent value, for a few columns of a table."""
    names = list(judge.columns(namespace, table))
    types = {name: str(type_) for name, type_ in judge.columns(namespace, table).items()}
    schemas = {schema["schema-id"]: schema for schema in metadata["schemas"]}
    fields = {f["id"]: f["name"] for f in schemas[metadata["current-schema-id"]]["fields"]}
    partitioned = [
        fields[field["source-id"]]
        for spec in metadata["partition-specs"]
        for field in spec["fields"]
        if field["source-id"] in fields
    ]
    shown = [name for name in dict.fromkeys([*partitioned, *names]) if name in fields.values()]
    usable = [name for name in shown if types.get(name) in KINDS]
    source = f"lake.{identifier(namespace)}.{identifier(table)}"
    for name in usable[:COLUMNS]:
        column = identifier(name)
        # Not an infinite date: DuckDB's package returns it as the first or the last day that
        # Python has.
        usual = f"isfinite({column})" if types[name] == "DATE" else f"{column} IS NOT NULL"
        found = judge.query(
            f"SELECT {column}, count(*) FROM {source} WHERE {usual} "
            "GROUP BY 1 ORDER BY 2 DESC, 1 DESC LIMIT 1"
        )
        for value, rows in found:
            yield from _condition(name, KINDS[types[name]], value, rows)


def _condition(name: str, kind: str, value: Any, rows: int) -> Iterator[Condition]:
    if kind == "date":
        # DuckDB's package returns a date outside the years 1 to 9999 as a text.
        if isinstance(value, date):
            yield Condition(name, kind, value.isoformat(), rows)
    elif kind != "text" or (value.isprintable() and not set(value) & {"'", "\\"}):
        # Clients have different escaping rules, which are not tested here.
        yield Condition(name, kind, value, rows)
