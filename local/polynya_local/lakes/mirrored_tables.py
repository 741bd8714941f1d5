"""How each table of a catalog is mirrored.

DuckLake stores the catalog in different types in each kind of database: SQLite has no booleans and
no timestamps, and PostgreSQL cannot hold all of DuckDB's values (a text with a NUL, a date in the
year 290000), so some inlined values are texts there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from polynya.types.names import DUCKLAKE, UNORDERED

from ..clients.duckdb import identifier, literal

BOOLEANS = (
    *("path_is_relative", "nulls_allowed", "contains_null", "contains_nan", "is_partition"),
    *("min_is_exact", "max_is_exact"),
)
METADATA_TYPES = {
    **dict.fromkeys(BOOLEANS, "BOOLEAN"),
    **dict.fromkeys(("snapshot_time", "schedule_start"), "TIMESTAMPTZ"),
    **dict.fromkeys(("schema_uuid", "table_uuid", "view_uuid", "idempotency_key"), "UUID"),
}
"""The types of DuckLake's own columns that are neither BIGINT nor VARCHAR, in all versions."""

MAY_HAVE_NUL = frozenset(("min_value", "max_value"))
"""Bounds, which may be absent. DuckLake leaves them out if a text in PostgreSQL cannot hold
them."""

NUL = "a text with a NUL character"

NOT_READ = frozenset(
    (
        *("schedule_start", "schema_uuid", "file_order"),
        *("author", "commit_message", "commit_extra_info"),
    )
)
"""Columns that are not read, or only shown to people, so that a wrong value does no harm."""

TABLES_NOT_READ = re.compile("ducklake_macro.*|ducklake_files_scheduled_for_deletion")
"""Tables whose rows are only counted."""

POSTGRES_TYPES = {"BLOB": "BYTEA", "DOUBLE": "DOUBLE PRECISION"}
"""PostgreSQL's names of types, where DuckDB has others."""

DUCKDB_TYPES = {postgres.lower(): duckdb for duckdb, postgres in POSTGRES_TYPES.items()}
INLINED_TYPES = {
    **{
        type_.duckdb: DUCKDB_TYPES.get(type_.postgres, type_.postgres.upper())
        for type_ in DUCKLAKE.values()
        if type_.duckdb
    },
    "JSON": "BLOB",  # bytea, like VARCHAR: PostgreSQL's text cannot hold a NUL
    "TIME WITH TIME ZONE": "TIMETZ",
}
"""DuckDB's type of an inlined column, and the type of the mirror; the others are there as text."""

READ_AS = {
    type_.duckdb: type_.read_by
    for type_ in DUCKLAKE.values()
    if INLINED_TYPES.get(type_.duckdb) == "VARCHAR" and type_.name not in UNORDERED
}
"""DuckDB's type of an inlined column that is there as text, and the type that texts are read as."""

SCHEMA = "public"
"""Where the tables of a mirror are."""

COMMITS = "polynya_commits"
"""Polynya's own table, which records what Iceberg clients committed."""

REFUSED = "polynya_refused"
"""The table of a mirror with what is refused because the mirror cannot hold a value."""

INLINED_ROWS = re.compile(r"ducklake_inlined_data_(?P<table_id>\d+)_\d+")
INLINED = re.compile(r"ducklake_inlined_(?:data|delete)_(?P<table_id>\d+)(?:_\d+)?")
SYSTEM_COLUMNS = 3
"""The columns of an inlined table that are not the user's: row id, begin, end."""

KEYS = ("data_file_id", "delete_file_id", "snapshot_id", "mapping_id", "table_id")
"""The first of these columns that a table has divides it into ranges."""

SHIFT = 8
SPAN = 1 << SHIFT
"""How many values of the key are in one range."""

NO_ID = -1
"""The range of rows without an id."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the mirror."""

    name: str
    type: str
    """DuckDB's name of its type in PostgreSQL, or PostgreSQL's own."""
    value: str
    """SQL of its value, from the columns of the original."""
    wrong: str = ""
    """Describes a value of the original that the mirror cannot hold; empty: it can hold all."""

    @property
    def is_wrong(self) -> str:
        """SQL of the condition that the mirror cannot hold the value of the original."""
        return f"({identifier(self.name)} IS NOT NULL AND {self.value} IS NULL)"


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the mirror."""

    name: str
    columns: tuple[Column, ...]
    range_number: str
    """SQL of the number of a row's range."""
    key: str | None
    """The column that the ranges divide; None: there is one range."""

    @property
    def shape(self) -> tuple[tuple[str, str], ...]:
        """Names and types of the columns; if they change, the table is created again."""
        return tuple((column.name, column.type) for column in self.columns)

    def ranges_condition(self, ranges: Sequence[int]) -> str:
        """SQL of a condition that all rows of these ranges meet; other rows may meet it, too."""
        if self.key is None or min(ranges) < 0:
            return "true"
        first, last = min(ranges) * SPAN, max(ranges) * SPAN + SPAN - 1
        return f"{identifier(self.key)} BETWEEN {first} AND {last}"

    @property
    def checked(self) -> list[Column]:
        """The columns that may have values which the mirror cannot hold."""
        return [column for column in self.columns if column.wrong]

    @property
    def table_id(self) -> str | None:
        """SQL of the id of the table that a row belongs to; None: rows do not say it."""
        if match := INLINED.fullmatch(self.name):
            return match["table_id"]
        return "table_id" if any(c.name == "table_id" for c in self.columns) else None

    @property
    def select(self) -> str:
        """The columns of a SELECT that gives a row of the mirror."""
        return ", ".join(f"{column.value} AS {identifier(column.name)}" for column in self.columns)

    @property
    def digest(self) -> str:
        """SQL of a row's hash."""
        # Floats are hashed as text: 0.0 and -0.0 are equal as numbers.
        values = (
            f"CAST({column.value} AS VARCHAR)"
            if column.type in {"REAL", "DOUBLE"}
            else column.value
            for column in self.columns
        )
        # A NULL that replaces another value must differ from an original NULL.
        originals = (identifier(column.name) for column in self.checked)
        return f"hash({', '.join((*values, *originals))})"


@dataclass(frozen=True, slots=True)
class Renamed:
    """How locations below a path are rewritten: those of a local folder become S3's."""

    old: tuple[str, ...]
    """Spellings of the old path, each with a slash at its end, the longest first."""
    new: str
    data_path: str
    """The value of the option `data_path`."""
    absolute: str = ""
    """The old path, absolute, with a slash at its end."""

    def location(self, path: str) -> str:
        """SQL of a location that replaces what `path`, the SQL of a text, gives."""
        # To a file system `//` and `/./` are `/`; in S3 they are part of a key. Where `/../` leads
        # depends on symbolic links: such a path stays, and is not one of the folder.
        plain = f"regexp_replace({path}, '/([.]?/)+', '/', 'g')"
        cases = (
            f"WHEN starts_with({plain}, {literal(old)}) "
            f"AND strpos(substr({plain}, {len(old)}), '/../') = 0 "
            f"THEN {literal(self.new)} || substr({plain}, {len(old) + 1})"
            for old in self.old
        )
        return f"CASE {' '.join(cases)} ELSE {path} END" if self.old else path


def metadata_table(name: str, columns: Sequence[tuple[str, str]], renamed: Renamed | None) -> Table:
    """A table of DuckLake's own.

    Args:
        columns: their names and types in the original.
        renamed: how locations are rewritten; None: they stay.
    """
    names = [column for column, _ in columns]
    mirror_columns = tuple(_metadata_column(*column) for column in columns)
    if renamed is not None:
        mirror_columns = tuple(relocated(name, names, column, renamed) for column in mirror_columns)
    return table(name, mirror_columns, key_of(names))


def inlined_table(name: str, columns: Sequence[tuple[str, str]], types: Mapping[str, str]) -> Table:
    """A table of inlined rows.

    Args:
        columns: their names and types in the original.
        types: DuckDB's types of the user's columns, by their names.
    """
    mirror_columns = [Column(c, "BIGINT", identifier(c)) for c, _ in columns[:SYSTEM_COLUMNS]]
    mirror_columns += [_inlined_column(c, types[c], type_) for c, type_ in columns[SYSTEM_COLUMNS:]]
    return table(name, tuple(mirror_columns), columns[0][0])


def table(name: str, columns: tuple[Column, ...], key: str | None) -> Table:
    """A table whose rows a key divides into ranges; None: they are in one range."""
    if key is None:
        return Table(name, columns, "0", None)
    id_ = identifier(key)
    return Table(name, columns, f"CASE WHEN {id_} >= 0 THEN {id_} >> {SHIFT} ELSE {NO_ID} END", key)


def _metadata_column(name: str, type_: str) -> Column:
    is_number = type_.endswith("INT") or type_ == "INTEGER"
    target = METADATA_TYPES.get(name, "BIGINT" if is_number else "VARCHAR")
    value = f"TRY_CAST({identifier(name)} AS {target})"
    if name in MAY_HAVE_NUL:
        return Column(name, target, _null_if_nul(value))
    if target == "VARCHAR":
        return _text_column(name, value)
    is_certain = type_ == target or (is_number and target == "BOOLEAN") or name in NOT_READ
    return Column(name, target, value, "" if is_certain else _no(target))


def _text_column(name: str, value: str) -> Column:
    return Column(name, "VARCHAR", _null_if_nul(value), NUL)


def _null_if_nul(text: str) -> str:
    return f"CASE WHEN NOT contains({text}, chr(0)) THEN {text} END"


def _no(type_: str) -> str:
    return f"a value that is no {type_}"


def relocated(table: str, names: Sequence[str], column: Column, renamed: Renamed) -> Column:
    """Rewrite the locations in a column of one of DuckLake's own tables.

    Args:
        names: those of all columns of the table.
    """
    value = column.value
    if table == "ducklake_metadata" and column.name == "value":
        is_path = f"{identifier('key')} = 'data_path'"
        value = f"CASE WHEN {is_path} THEN {literal(renamed.data_path)} ELSE {value} END"
    elif column.name == "path" and "path_is_relative" in names:
        relative = f"CAST({identifier('path_is_relative')} AS BOOLEAN)"
        value = f"CASE WHEN {relative} THEN {value} ELSE {renamed.location(value)} END"
    return replace(column, value=value)


def key_of(names: Sequence[str]) -> str | None:
    """The column that divides a table of DuckLake's own; None: there is none."""
    return next((key for key in KEYS if key in names), None)


def _inlined_column(name: str, type_: str, stored: str) -> Column:
    """A user's column, whose values DuckLake keeps in PostgreSQL in a type or as text.

    Args:
        type_: DuckDB's type of the values.
        stored: the type in which the original has them.
    """
    target = type_ if type_.startswith("DECIMAL") else INLINED_TYPES.get(type_, "VARCHAR")
    if type_ == "BLOB":
        return Column(name, target, identifier(name))
    text = f"CAST({identifier(name)} AS VARCHAR)"
    if target == "BLOB":
        return Column(name, target, f"encode({text})")
    if target == "VARCHAR" and (stored == type_ or type_ not in READ_AS):
        return _text_column(name, text)
    if target == "VARCHAR":
        is_readable = f"TRY_CAST({text} AS {READ_AS[type_]}) IS NOT NULL"
        return Column(name, target, f"CASE WHEN {is_readable} THEN {text} END", _no(type_))
    if stored == type_:
        return Column(name, target, f"CAST({identifier(name)} AS {target})")
    of_type = f"TRY_CAST({identifier(name)} AS {type_})"
    return Column(name, target, f"TRY_CAST({of_type} AS {target})", _no(type_))


def postgres_text(column: Column) -> str:
    """SQL for DuckDB of the text from which PostgreSQL's COPY reads a value of the mirror.

    https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2
    """
    text = identifier(column.name)
    if column.type == "BLOB":
        text = f"'\\\\x' || hex({text})"
    elif column.type == "VARCHAR":
        for character, letter in ESCAPES.items():
            text = f"replace({text}, {character}, '\\{letter}')"
    else:
        text = f"CAST({text} AS VARCHAR)"
    return f"coalesce({text}, '\\N')"


ESCAPES = {"chr(92)": "\\", "chr(9)": "t", "chr(10)": "n", "chr(13)": "r"}
"""SQL of the characters that a text must not have as they are, and the letters after a backslash.
The backslash comes first, because the others add new ones."""


def qualified(*names: str) -> str:
    """The name of a table with those of its schema and database, quoted for SQL."""
    return ".".join(map(identifier, names))
