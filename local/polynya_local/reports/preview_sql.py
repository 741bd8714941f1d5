"""SQL of DuckDB for one side of a preview: its names are quoted, its values are parameters.

A filter is a list of conditions, joined by AND; it is never a visitor's own SQL. It means the same
for every client: neither NULL nor NaN satisfies a comparison.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duckdb import DuckDBPyConnection
from duckdb.sqltypes import DuckDBPyType
from polynya.runtime.errors import BadRequest
from polynya.types.names import FLOATS, INTEGERS, equivalent

from ..clients.canonical import Columns, columns_of, missing_or_surplus, text
from ..clients.duckdb import identifier

MOST_CONDITIONS = 8
LONGEST_VALUE = 1000
"""Characters."""

UNARY = {"is null": "IS NULL", "is not null": "IS NOT NULL"}
ORDER = {"=": "=", "≠": "<>", "<": "<", "≤": "<=", ">": ">", "≥": ">="}
PREFIX = "starts with"
OPERATORS = (*ORDER, PREFIX, *UNARY)
"""All operators, in the order in which a form lists them."""

ALIASES = {"!=": "≠", "<>": "≠", "<=": "≤", ">=": "≥", "==": "="}
"""Other spellings, for visitors who type a URL."""

INTEGER = re.compile(r"\s*[+-]?[0-9]{1,40}\s*")
HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")
EQUALITY_ONLY = frozenset(("boolean", "json", "blob", "uuid"))
"""Types that clients sort in different orders, or not at all."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a filter."""

    column: str
    type: str
    """DuckLake's."""
    operator: str
    """One of OPERATORS."""
    value: str | None
    """None for operators without one."""

    def __str__(self) -> str:
        return " ".join(
            [self.column, self.operator, *([self.value] if self.value is not None else [])]
        )


def parse(
    columns: Sequence[str],
    operators: Sequence[str],
    values: Sequence[str],
    types: Mapping[str, str],
    hidden: Mapping[str, str],
) -> tuple[Condition, ...]:
    """The conditions of a form's lines; a line without a column is left out.

    Args:
        types: DuckLake's type of each top-level column that clients see.
        hidden: why clients do not see the others.

    Raises:
        BadRequest: a line is not valid; with a sentence.
    """
    if not len(columns) == len(operators) == len(values):
        raise BadRequest(
            "a filter has as many columns as operators and values: column=…&operator=…&value=…"
        )
    lines = [line for line in zip(columns, operators, values, strict=True) if line[0]]
    if len(lines) > MOST_CONDITIONS:
        raise BadRequest(f"a filter has at most {MOST_CONDITIONS} conditions, not {len(lines)}")
    return tuple(_condition(*line, types, hidden) for line in lines)


def operators_of(type_: str) -> tuple[str, ...]:
    """The operators for columns of a type of DuckLake."""
    if equivalent(type_) is None:
        return tuple(UNARY)
    compared = ("=", "≠") if type_ in EQUALITY_ONLY else tuple(ORDER)
    prefix = (PREFIX,) if type_ == "varchar" else ()
    return (*compared, *prefix, *UNARY)


def sorted_by(column: str, types: Mapping[str, str]) -> str:
    """The column of a sort, which may be empty.

    Raises:
        BadRequest: rows cannot be sorted by it.
    """
    if column and column not in types:
        raise BadRequest(f"there is no column {shortened(column)} to sort by")
    if column and "<" not in operators_of(types[column]):
        raise BadRequest(
            f"rows cannot be sorted by the column {shortened(column)}: it is a {types[column]}"
        )
    return column


WRITTEN = {
    **dict.fromkeys(INTEGERS, "a whole number: 42"),
    **dict.fromkeys(FLOATS, "a number: 1.5"),
    "varchar": "the text as it is; A and a differ",
    "boolean": "true or false",
    "date": "2026-11-20",
    "time": "14:30:00",
    "blob": "hexadecimal digits: 00ff",
    "uuid": "00000000-0000-0000-0000-000000000001",
    "json": "the text as it is stored",
}
TIMESTAMPS = "2026-11-20 14:30:00"


def written(type_: str) -> str:
    """How a value of a type of DuckLake is written in a filter."""
    if equivalent(type_) is None or type_ in NESTED:
        return "no value: only is null, is not null"
    if type_.startswith("decimal"):
        return "a number: 1.50"
    if type_.startswith("timestamptz"):
        return f"{TIMESTAMPS}, in UTC"
    return TIMESTAMPS if type_.startswith("timestamp") else WRITTEN.get(type_, "its text")


def _condition(
    column: str, operator: str, value: str, types: Mapping[str, str], hidden: Mapping[str, str]
) -> Condition:
    name, operator = shortened(column), ALIASES.get(operator.strip(), operator.strip().lower())
    if column in hidden:
        raise BadRequest(f"Iceberg clients do not see the column {name}: {hidden[column]}")
    if column not in types:
        raise BadRequest(f"there is no column {name} at this snapshot")
    if operator not in OPERATORS:
        raise BadRequest(
            f"{shortened(operator)} is not an operator of a filter; these are: "
            f"{', '.join(OPERATORS)}"
        )
    type_ = types[column]
    if operator not in operators_of(type_):
        raise BadRequest(
            f"the column {name} is a {type_}, for which a filter has only "
            f"{', '.join(operators_of(type_))}"
        )
    if operator in UNARY:
        return Condition(column, type_, operator, None)
    if len(value) > LONGEST_VALUE:
        raise BadRequest(
            f"the value for {name} has {len(value):,} characters; at most {LONGEST_VALUE:,} are "
            "allowed"
        )
    if (reason := _unfit(type_, value)) is not None:
        raise BadRequest(f"the column {name} is a {type_}: {shortened(value)} {reason}")
    return Condition(column, type_, operator, value)


def _unfit(type_: str, value: str) -> str | None:
    """Why a value is not of this type; None: it may be, and DuckDB decides."""
    if "\x00" in value:
        return "has a character 0, which no text of PostgreSQL can have"
    if type_ in INTEGERS and not INTEGER.fullmatch(value):
        return "is not a whole number"
    if type_ == "blob" and not HEX.fullmatch(value):
        return "is not an even number of hexadecimal digits"
    if type_ in FLOATS and value.strip().lower().lstrip("+-") == "nan":
        return "is not equal to anything, not even to itself"
    return None


def shortened(text: str, length: int = 80) -> str:
    """The beginning of a visitor's text, for a message."""
    return text if len(text) <= length else f"{text[:length]}…"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as text: binary as hexadecimal digits, nested ones as JSON."""

    text: str | None
    """None: NULL."""
    length: int | None = None
    """The characters of the whole text, if this is only its beginning; of binary: its bytes."""


VALUES = {"blob": "from_hex({value})", "json": "CAST({value} AS VARCHAR)"}
COLUMNS = {"json": "CAST({name} AS VARCHAR)"}
"""The expression that takes the place of a column of this type in comparisons."""


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
    """The columns cannot be compared; the message says why."""


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
        native: DuckLake's types, as which values are parsed.
    """
    words, parameters = ["true"], []
    for condition in conditions:
        name = identifier(condition.column)
        if condition.operator in UNARY:
            words.append(f"{name} {UNARY[condition.operator]}")
            continue
        parameters.append(condition.value or "")
        if condition.operator == PREFIX:
            words.append(f"starts_with({name}, CAST(? AS VARCHAR))")
            continue
        value = value_of(condition, str(native[condition.column]))
        if condition.type not in VALUES:
            value = f"CAST({value} AS {columns[condition.column]})"
        compared = COLUMNS.get(condition.type, "{name}").format(name=name)
        words.append(f"{compared} {ORDER[condition.operator]} {value}")
        if condition.type in FLOATS:
            # DuckDB and Iceberg sort NaN differently.
            words.append(f"NOT isnan({name})")
    return " AND ".join(words), parameters


def value_of(condition: Condition, native: str) -> str:
    """The expression for a parameter in DuckLake's type."""
    return VALUES.get(condition.type, "CAST({value} AS {native})").format(value="?", native=native)


FINITE = "SELECT CASE WHEN isfinite({value}) THEN {value} END"
PYTHON = {
    **dict.fromkeys(("float32", "float64", "date", "timestamp"), FINITE),
    # A TIMESTAMPTZ would need pytz.
    "timestamptz": "SELECT CASE WHEN isfinite({value}) THEN CAST({value} AT TIME ZONE 'UTC' AS "
    "TIMESTAMP) END",
}
"""The statement that reads a value as a Python type, by DuckLake's; NULL if it is infinite."""


def python_value(condition: Condition, native: str) -> str:
    """A statement that returns the value of a condition, with that value as its parameters."""
    return PYTHON.get(condition.type, "SELECT {value}").format(value=value_of(condition, native))


def cells(names: Iterable[str], columns: Columns, characters: int) -> str:
    """A select list with two columns for each: the beginning of its text, and its length if cut."""
    return ", ".join(cell(identifier(name), columns[name], characters) for name in names)


def cell(name: str, type_: DuckDBPyType, characters: int) -> str:
    """The two columns for one; `name` is an expression of SQL."""
    shown = BINARY if str(type_) == "BLOB" else NESTED_TEXT if type_.id in NESTED else PLAIN_TEXT
    limit = characters // shown.digits
    begin, length = shown.text.format(name, limit=limit), shown.length.format(name)
    return f"left({begin}, {characters}), CASE WHEN {length} > {limit} THEN {length} END"


def row_of(values: Sequence[Any]) -> tuple[Cell, ...]:
    """The cells of a row of two columns for each, as `cells` selects them."""
    return tuple(Cell(*pair) for pair in zip(values[::2], values[1::2], strict=True))


def ordered(sort: str, *, is_descending: bool) -> str:
    """The ORDER BY clause of a sort; rows with the same value are in the order of the files."""
    if not sort:
        return ""
    direction = "DESC" if is_descending else "ASC"
    return f" ORDER BY {identifier(sort)} {direction} NULLS LAST, filename, file_row_number"


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
