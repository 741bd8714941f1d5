"""Texts with a NUL character, which PostgreSQL cannot hold and DuckDB can."""

import re
from collections.abc import Callable
from functools import partial

from duckdb import DuckDBPyConnection
from polynya.errors import Misconfigured

from ...clients.duckdb_connection import identifier
from .tables import INLINED_ROWS, MAY_HAVE_NUL, Table, qualified

OWNER = """
SELECT s.schema_name || '.' || t.table_name FROM {tables} AS t JOIN {schemas} AS s USING (schema_id)
WHERE t.table_id = ? ORDER BY t.begin_snapshot DESC, s.begin_snapshot DESC LIMIT 1"""


def check(con: DuckDBPyConnection, database: str, schema: str, table: Table, staged: str) -> None:
    """Raise if rows that are about to be written hold such a text.

    Args:
        database: under which name the catalog is attached.
        schema: where its tables are.
        staged: the name of the table with the rows.

    Raises:
        Misconfigured: they do; the message names table and column, and never the value.
    """
    names = [c.name for c in table.columns if c.type == "VARCHAR" and c.name not in MAY_HAVE_NUL]
    if not names:
        return
    found = (f"bool_or(contains({identifier(name)}, chr(0)))" for name in names)
    [has_nul] = con.execute(f"SELECT {', '.join(found)} FROM {staged}").fetchall()
    for name, has in zip(names, has_nul, strict=True):
        if has:
            owner = partial(_owner, con, database, schema)
            raise Misconfigured(_sentence(con, owner, table, name, staged))


def _sentence(
    con: DuckDBPyConnection, owner: Callable[[int], str], table: Table, column: str, staged: str
) -> str:
    if INLINED_ROWS.fullmatch(table.name):
        table_id = int(re.findall(r"\d+", table.name)[0])
        return (
            f"the table {owner(table_id)} has a text with a NUL character in its "
            f"column {column}, among the rows that DuckLake keeps in the catalog, where PostgreSQL "
            "cannot hold it: write these rows to a file with ducklake_flush_inlined_data"
        )
    of = ""
    if "table_id" in [c.name for c in table.columns]:
        sql = f"SELECT table_id FROM {staged} WHERE contains({identifier(column)}, chr(0)) LIMIT 1"
        [[table_id]] = con.execute(sql).fetchall()
        of = f" of the table {owner(table_id)}"
    return (
        f"a text{of} has a NUL character, which PostgreSQL cannot hold: {column} in "
        f"{table.name} of the catalog"
    )


def _owner(con: DuckDBPyConnection, database: str, schema: str, table_id: int) -> str:
    """The newest full name of a table."""
    tables = qualified(database, schema, "ducklake_table")
    schemas = qualified(database, schema, "ducklake_schema")
    rows = con.execute(OWNER.format(tables=tables, schemas=schemas), [table_id]).fetchall()
    return str(rows[0][0]) if rows else f"with the id {table_id}"
