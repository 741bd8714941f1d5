"""Makes one value of DuckLake's catalog wrong at a time."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection, identifier
from polynya_local.clients.native import Lake

SAVED = "intact"
"""The PostgreSQL schema with a copy of every table."""

INTEGRITY = "23"
"""The class of SQLSTATE if a key or NOT NULL forbids a value."""

VALUES = {
    "bigint": ("NULL", "9223372036854775807"),
    "character varying": ("NULL", r"""'ünk"; \x '''"""),
    "timestamp with time zone": ("NULL", "'infinity'"),
}
"""SQL of values that no column of this type should have; NULL for other types."""


INLINED = "SELECT table_name FROM ducklake_inlined_data_tables WHERE table_id = {t}"


class DamagedLake:
    """A lake whose catalog is saved, so that it can be damaged."""

    def __init__(self, lake: Lake) -> None:
        """Save the catalog of a lake that has a table `t` with inlined rows."""
        self.lake = lake
        self.con = lake.database.connect()
        self.ids = dict(self.con.run("SELECT table_name, table_id FROM ducklake_table"))
        tables = self.con.run(self.filled_in(INLINED))
        [self.ids["inlined"]] = [name for (name,) in tables if self.con.run(f"TABLE {name}")]
        save(self.con)

    def filled_in(self, text: str) -> str:
        """A text with the ids of tables, by their names in braces; `inlined`: the table's name."""
        return re.sub(r"{(\w+)}", lambda match: str(self.ids[match[1]]), text)


class Damage(NamedTuple):
    table: str
    what: str
    sql: str


def damages(con: Connection, table: str, where: str, kind: str) -> Iterator[Damage]:
    """Yield damages to one row.

    `gone` repeats the row, and removes it. `missing` sets each column in turn to NULL, `strange` to
    a value that no column of its type should have.
    """
    name = identifier(table)
    here = f"{name} WHERE ctid = (SELECT ctid FROM {name} WHERE {where} ORDER BY ctid LIMIT 1)"
    sql = """SELECT column_name, data_type FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name = :name ORDER BY ordinal_position"""
    if kind == "gone":
        yield Damage(table, "twice", f"INSERT INTO {name} SELECT * FROM {here}")
        yield Damage(table, "gone", f"DELETE FROM {here}")
        return
    for column, type_ in con.run(sql, name=table):
        if column in UNREAD:
            continue
        values = VALUES.get(type_, ("NULL",))
        if type_ == "bigint" and table in OF_FILES:
            values = (*values, "-1")
        for value in values[:1] if kind == "missing" else values[1:]:
            change = here.replace("WHERE", f"SET {identifier(column)} = {value} WHERE", 1)
            yield Damage(table, f"{column} = {value}", f"UPDATE {change}")


OF_FILES = {"ducklake_data_file", "ducklake_delete_file"}

UNREAD = {
    *("file_order", "footer_size", "row_id_start", "nulls_allowed", "default_value"),
    *("default_value_type", "default_value_dialect", "extra_stats", "next_catalog_id"),
    *("schema_uuid", "author", "commit_message", "commit_extra_info", "column_aliases"),
}
"""Columns that Polynya does not read."""


def save(con: Connection) -> None:
    """Copy every table of the catalog."""
    con.run(f"CREATE SCHEMA {SAVED}")
    for (table,) in con.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
        name = identifier(table)
        con.run(f"CREATE TABLE {SAVED}.{name} AS SELECT * FROM public.{name}")


@contextmanager
def damaged(con: Connection, damage: Damage) -> Iterator[bool]:
    """Damage the catalog within the block; yields False if the database does not allow it."""
    try:
        con.run(damage.sql)
    except DatabaseError as error:
        assert error.args[0]["C"].startswith(INTEGRITY), damage
        yield False
        return
    assert con.row_count >= 1, damage
    try:
        yield True
    finally:
        table = identifier(damage.table)
        con.run(f"DELETE FROM public.{table}")
        con.run(f"INSERT INTO public.{table} SELECT * FROM {SAVED}.{table}")
