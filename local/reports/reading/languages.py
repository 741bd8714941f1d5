"""How the languages of snippets quote texts and names, whatever these contain."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from ...clients.duckdb_connection import identifier, literal


@dataclass(frozen=True, slots=True)
class Language:
    """A language that a snippet is written in."""

    name: str
    """Of the code block: `sql`, `python`, `properties`."""
    text: Callable[[str], str]
    """Writes a text as a literal."""


def python_literal(text: str) -> str:
    """A text as a literal of Python, in double quotes and without invisible characters."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else _escape(one) for one in quoted)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def backticked(name: str) -> str:
    """A name for Spark SQL and Flink SQL."""
    return "`" + name.replace("`", "``") + "`"


def clickhouse_name(name: str) -> str:
    """A name for ClickHouse, which has escapes within backticks."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def clickhouse_literal(text: str) -> str:
    """A text as a literal of ClickHouse, which has escapes within quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def property_value(text: str) -> str:
    """A value in a file of Java's properties, which is ASCII."""
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    units = escaped.encode("utf-16-be")
    codes = (units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
    return "".join(chr(code) if 0x20 <= code < 0x7F else f"\\u{code:04x}" for code in codes)


PYTHON = Language("python", python_literal)
SQL = Language("sql", literal)
CLICKHOUSE_SQL = Language("sql", clickhouse_literal)
PROPERTIES = Language("properties", property_value)

__all__ = [
    "CLICKHOUSE_SQL",
    "PROPERTIES",
    "PYTHON",
    "SQL",
    "Language",
    "backticked",
    "clickhouse_literal",
    "clickhouse_name",
    "identifier",
    "literal",
    "property_value",
    "python_literal",
]
