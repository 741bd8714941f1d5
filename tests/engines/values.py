"""Results of engines as Arrow: each value with the type of DuckDB that the engine's type equals.

The form is that of Trino's HTTP protocol, which `Queries.java` gives for Flink. Values are read as
text, which DuckDB casts, because Python's dates end with the year 9999.
"""

import base64
import re
from typing import Any, NamedTuple

import pyarrow as pa
from polynya_local.clients.duckdb import connect, identifier

TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "integer": "INTEGER",
    "bigint": "BIGINT",
    "real": "FLOAT",
    "double": "DOUBLE",
    "decimal": "DECIMAL",
    "varchar": "VARCHAR",
    "varbinary": "BLOB",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamp with time zone": "TIMESTAMPTZ",
    "uuid": "UUID",
}
DATED = {"date", "timestamp", "timestamp with time zone"}
INFINITE = {
    "+5881580-07-11": "infinity",
    "-5877641-06-24": "-infinity",
    "+294247-01-10 04:00:54.775807": "infinity",
    "-290308-12-21 19:59:05.224193": "-infinity",
    "+294247-01-10T04:00:54.775807": "infinity",
    "-290308-12-21T19:59:05.224193": "-infinity",
    "2262-04-11 23:47:16.854775807": "infinity",
    "1677-09-21 00:12:43.145224193": "-infinity",
    "2262-04-11T23:47:16.854775807": "infinity",
    "1677-09-21T00:12:43.145224193": "-infinity",
}
"""The greatest and the smallest number of days, of microseconds and of nanoseconds, as they are
written."""
SIGNED_YEAR = re.compile(r"([+-])(\d{4,})(-\d\d-\d\d)(.*)")

Signature = dict[str, Any]
"""Trino's `typeSignature`: the name of a type and its arguments."""


class Answer(NamedTuple):
    """The columns of a result, as the engine describes them, and its rows in JSON."""

    columns: list[dict[str, Any]]
    rows: list[list[Any]]


class Failed(Exception):
    """An engine's message for a statement that failed."""


def arrow_table(columns: list[dict[str, Any]], rows: list[list[Any]]) -> pa.Table:
    """The rows of a result, with the engine's names of the columns."""
    signatures = [column["typeSignature"] for column in columns]
    texts = pa.table(
        [
            pa.array([_text(row[place], one) for row in rows], _arrow_type(one))
            for place, one in enumerate(signatures)
        ],
        [f"c{place}" for place in range(len(columns))],
    )
    casts = [
        f"CAST(c{place} AS {_type(column['typeSignature'])}) AS {identifier(column['name'])}"
        for place, column in enumerate(columns)
    ]
    with connect() as con:
        con.execute("SET TimeZone = 'UTC'")
        con.register("texts", texts)
        return con.execute(f"SELECT {', '.join(casts)} FROM texts").to_arrow_table()


def _children(signature: Signature) -> list[tuple[str, Signature]]:
    """The names and types of the parts of a nested type."""
    found = []
    for argument in signature["arguments"]:
        value = argument["value"]
        if argument["kind"] == "NAMED_TYPE":
            name = value.get("fieldName", {}).get("name", "")
            found.append((name, value["typeSignature"]))
        elif argument["kind"] == "TYPE":
            found.append(("", value))
    return found


def _type(signature: Signature) -> str:
    """DuckDB's type."""
    kind, children = signature["rawType"], _children(signature)
    if kind == "row":
        fields = [f"{identifier(name)} {_type(one)}" for name, one in children]
        return f"STRUCT({', '.join(fields)})"
    if kind == "array":
        return f"{_type(children[0][1])}[]"
    if kind == "map":
        return f"MAP({', '.join(_type(one) for _, one in children)})"
    if kind == "decimal":
        return "DECIMAL({}, {})".format(*(one["value"] for one in signature["arguments"]))
    if _has_nanoseconds(signature):
        return "TIMESTAMP_NS"
    return TYPES[kind]


def _has_nanoseconds(signature: Signature) -> bool:
    return signature["rawType"].startswith("timestamp") and any(
        int(argument["value"]) == 9 for argument in signature["arguments"]
    )


def _arrow_type(signature: Signature) -> pa.DataType:
    """The same, where each value that is not nested is a text."""
    kind, children = signature["rawType"], _children(signature)
    if kind == "row":
        return pa.struct([(name, _arrow_type(one)) for name, one in children])
    if kind == "array":
        return pa.list_(_arrow_type(children[0][1]))
    if kind == "map":
        return pa.map_(*(_arrow_type(one) for _, one in children))
    return pa.binary() if kind == "varbinary" else pa.string()


def _text(value: Any, signature: Signature) -> Any:
    kind, children = signature["rawType"], _children(signature)
    if value is None:
        return None
    if kind == "row":
        return {name: _text(v, one) for v, (name, one) in zip(value, children, strict=True)}
    if kind == "array":
        return [_text(one, children[0][1]) for one in value]
    if kind == "map":
        [(_, key), (_, item)] = children
        return [(_text(k, key), _text(v, item)) for k, v in value.items()]
    if kind == "varbinary":
        return base64.b64decode(value)
    if kind == "boolean":
        return str(value).lower()
    if _has_nanoseconds(signature):  # in UTC, if they have a zone
        value = str(value).removesuffix(" UTC").removesuffix("Z")
    return _with_era(str(value)) if kind in DATED else str(value)


def _with_era(text: str) -> str:
    """`-0043-03-15 …` as DuckDB writes it: `0044-03-15 (BC) …`."""
    if text in INFINITE:
        return INFINITE[text]
    found = SIGNED_YEAR.fullmatch(text)
    if not found:
        return text
    sign, year, day, rest = found.groups()
    return f"{year}{day}{rest}" if sign == "+" else f"{int(year) + 1:04}{day} (BC){rest}"
