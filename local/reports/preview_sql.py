"""SQL of DuckDB for one side of a preview: its names are quoted, its values are parameters."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from duckdb import DuckDBPyConnection
from duckdb.sqltypes import DuckDBPyType

from ...clients.canonical import Columns, columns_of, missing_or_surplus, text
from ...clients.duckdb_connection import identifier
from .filters import FLOATS, ORDER, PREFIX, UNARY, Condition

VALUES = {"blob": "from_hex({value})", "json": "CAST({value} AS VARCHAR)"}
COLUMNS = {"json": "CAST({name} AS VARCHAR)"}
"""What a column of this type is compared as, if not as itself."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How a value of a type is shown; `{0}` stands for it."""

    text: str
    length: str
    """In the unit of the value: characters, or bytes."""
    digits: int = 1
    """The characters of one unit."""


BINARY = Shown("lower(hex({0}[1:{limit}]))", "octet_length({0})", 2)
NESTED_TEXT = Shown("CAST(to_json({0}) AS VARCHAR)", "length(CAST(to_json({0}) AS VARCHAR))")
PLAIN_TEXT = Shown("CAST({0} AS VARCHAR)", "length(CAST({0} AS VARCHAR))")
NESTED = frozenset(("struct", "list", "map"))


class DifferentColumns(Exception):
    """Both sides have different columns; the message says which."""


@dataclass(frozen=True, slots=True)
class Side:
    """A table in DuckDB."""

    source: str
    """What follows FROM."""
    columns: Columns


def side(con: DuckDBPyConnection, source: str) -> Side:
    """The table that a FROM clause names."""
    return Side(source, columns_of(con, source))


def where(
    conditions: Iterable[Condition], columns: Columns, native: Columns
) -> tuple[str, list[str]]:
    """The WHERE clause of a filter, and its parameters.

    Args:
        columns: of the table that is read.
        native: DuckLake's types, in which values are understood.
    """
    words, parameters = ["true"], []
    for one in conditions:
        name = identifier(one.column)
        if one.operator in UNARY:
            words.append(f"{name} {UNARY[one.operator]}")
            continue
        parameters.append(one.value or "")
        if one.operator == PREFIX:
            words.append(f"starts_with({name}, CAST(? AS VARCHAR))")
            continue
        value = value_of(one, str(native[one.column]))
        if one.type not in VALUES:
            value = f"CAST({value} AS {columns[one.column]})"
        compared = COLUMNS.get(one.type, "{name}").format(name=name)
        words.append(f"{compared} {ORDER[one.operator]} {value}")
        if one.type in FLOATS:
            words.append(f"NOT isnan({name})")
    return " AND ".join(words), parameters


def value_of(condition: Condition, native: str) -> str:
    """A parameter in DuckLake's type."""
    return VALUES.get(condition.type, "CAST({value} AS {native})").format(value="?", native=native)


FINITE = "SELECT CASE WHEN isfinite({value}) THEN {value} END"
PYTHON = {
    **dict.fromkeys(("float32", "float64", "date", "timestamp"), FINITE),
    # A TIMESTAMPTZ would need pytz.
    "timestamptz": "SELECT CASE WHEN isfinite({value}) THEN CAST({value} AT TIME ZONE 'UTC' AS "
    "TIMESTAMP) END",
}
"""The statement that gives a value in Python's types, by DuckLake's; NULL if it is infinite."""


def python_value(condition: Condition, native: str) -> str:
    """A statement with the value of a condition as its parameters."""
    return PYTHON.get(condition.type, "SELECT {value}").format(value=value_of(condition, native))


def cells(names: Iterable[str], columns: Columns, characters: int) -> str:
    """A select list with two columns for each: the begin of its text, and its length if cut."""
    return ", ".join(_cell(identifier(name), columns[name], characters) for name in names)


def _cell(name: str, type_: DuckDBPyType, characters: int) -> str:
    shown = BINARY if str(type_) == "BLOB" else NESTED_TEXT if type_.id in NESTED else PLAIN_TEXT
    limit = characters // shown.digits
    begin, length = shown.text.format(name, limit=limit), shown.length.format(name)
    return f"left({begin}, {characters}), CASE WHEN {length} > {limit} THEN {length} END"


def checksum(of: Side, native: Columns, hidden: Collection[str]) -> str:
    """A select list: the number of rows, and a sum of hashes of their canonical texts.

    Raises:
        DifferentColumns: the sides cannot be compared.
    """
    shown = [name for name in native if name not in hidden]
    if different := missing_or_surplus(shown, of.columns, hidden):
        names = ", ".join(sorted(different))
        raise DifferentColumns(f"only one of the two has the columns {names}")
    texts = (
        text(identifier(name), native[name], of.columns[name], (name,), hidden) for name in shown
    )
    return f"count(*), coalesce(sum(hash({', '.join(texts)})), 0)"
