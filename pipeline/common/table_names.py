"""What several jobs read from DuckLake's catalog: names, columns and statistics of a table."""

from dataclasses import dataclass

from pg8000.native import Connection

from .columns import Column, column_tree
from .errors import BadInput


@dataclass(frozen=True, slots=True)
class TableName:
    schema_name: str
    table_name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.table_name}"


def table_name(text: str) -> TableName:
    """Parse `t`, `s.t`, or with quotes around names that contain a dot: `"my.schema"."t"`.

    Raises:
        BadInput: the text is not a table name.
    """
    parts, rest = [], text
    while rest:
        if rest.startswith('"'):
            part, rest = _quoted_part(rest, text)
        else:
            part, dot, after = rest.partition(".")
            rest = dot + after
        parts.append(part)
        if rest and not rest.startswith("."):
            raise BadInput(f"{text} is not a table name")
        if rest == ".":
            parts.append("")
        rest = rest[1:]
    if not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
        raise BadInput(
            f'{text or "an empty text"} is not a table name: write schema.table, and "a.b"."c" if '
            "a name contains a dot"
        )
    return TableName(*(["main", *parts][-2:]))


def _quoted_part(rest: str, text: str) -> tuple[str, str]:
    """The name that a text begins with, without its quotes, and what follows it."""
    end = 1
    while (end := rest.find('"', end)) >= 0 and rest[end + 1 : end + 2] == '"':
        end += 2
    if end < 0:
        raise BadInput(f"the table name {text} has a quote that is not closed")
    return rest[1:end].replace('""', '"'), rest[end + 1 :]


COLUMNS = """
SELECT column_id, column_name, column_type, nulls_allowed, nullif(default_value, 'NULL'),
  parent_column
FROM ducklake_column WHERE table_id = :table_id AND end_snapshot IS NULL ORDER BY column_order"""


def columns(con: Connection, table_id: int) -> tuple[Column, ...]:
    """The top-level columns of a table at the newest snapshot, with their nested columns."""
    rows = con.run(COLUMNS, table_id=table_id)
    return column_tree((Column(*row[:5]), row[5]) for row in rows)


@dataclass(frozen=True, slots=True)
class TableColumnStats:
    """A row of ducklake_table_column_stats.

    DuckDB's optimizer relies on it: a bound that is too narrow silently loses rows.
    """

    column_id: int
    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None


TABLE_COLUMN_STATS = """
SELECT column_id, contains_null, contains_nan, min_value, max_value
FROM ducklake_table_column_stats WHERE table_id = :table_id"""


def table_column_stats(con: Connection, table_id: int) -> dict[int, TableColumnStats]:
    """The statistics of a whole table, by column id."""
    rows = con.run(TABLE_COLUMN_STATS, table_id=table_id)
    return {row[0]: TableColumnStats(*row) for row in rows}
