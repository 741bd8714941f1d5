"""Rows of inlined tables, parsed from the text that PostgreSQL writes for a whole row."""

import re
from collections.abc import Callable

from .rows.inlined_tables import InlinedTable

Record = dict[str, str | bytes | None]
"""Values by their column names in PostgreSQL: text, or bytes for bytea."""

# PostgreSQL manual, 8.16.6: quotes and backslashes are doubled in quotes; an empty field is NULL.
VALUE = re.compile(r'[(,](?:"((?:[^"\\]|""|\\\\)*)"|([^,()"]*))')
DOUBLED = re.compile(r'(["\\])\1')

# DuckDB reads '0044-03-15 BC' as the year 44 AD, and means '0044-03-15 (BC)'.
BEFORE_CHRIST = re.compile(r"^(\S+)(.*) BC$")


def _date(text: str) -> str:
    return BEFORE_CHRIST.sub(r"\1 (BC)\2", text)


VALUES: dict[str, Callable[[str], str | bytes]] = {
    "bytea": lambda text: bytes.fromhex(text.removeprefix("\\x")),
    "boolean": {"t": "true", "f": "false"}.__getitem__,
    # Only DuckDB 1.4 (catalog 0.3) keeps them in PostgreSQL's own types.
    "date": _date,
    "timestamp without time zone": _date,
    "timestamp with time zone": _date,
}
"""Conversions of PostgreSQL's texts, by its types; other texts stay as they are."""


def record(table: InlinedTable, text: str) -> Record:
    """A row of the table, without the system columns.

    Args:
        text: the row as PostgreSQL's text.
    """
    values = [_unquoted(*found.groups()) for found in VALUE.finditer(text)]
    user_values = values[len(table.system_columns) :]
    named = zip(table.user_columns, table.user_types, user_values, strict=True)
    return {name: _value(type_, text) for name, type_, text in named}


def _unquoted(quoted: str | None, bare: str | None) -> str | None:
    if quoted is not None:
        return DOUBLED.sub(r"\1", quoted)
    return bare or None


def _value(type_: str, text: str | None) -> str | bytes | None:
    make = VALUES.get(type_)
    return text if text is None or make is None else make(text)
