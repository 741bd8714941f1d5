"""DuckLake as DuckDB's own extension reads it: the rows that every Iceberg client must give.

`write_lake` writes a DuckLake from an SQL script with placeholders; `Native` reads one.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from ..processes.postgres import Database
from .canonical import Canonical, Columns, canonical, columns_of
from .duckdb import LAKE, connect, identifier, literal

REPEAT = re.compile(r"^-- @repeat (\d+)\n(.*)$", re.MULTILINE)
METADATA_SCHEMA = re.compile(r"\bMETADATA_SCHEMA '((?:[^']|'')*)'")


@dataclass(frozen=True, slots=True)
class Lake:
    """Where a DuckLake is."""

    name: str
    database: Database
    data_path: str
    metadata_schema: str = "public"
    native: Database | None = None
    """What DuckDB's extension reads instead, if it does not know the version of `database`."""


def write_lake(
    name: str, script: str, database: Database, data_path: str, s3_endpoint: str | None
) -> Lake:
    """Run the text of a script on an empty database and an empty data path.

    The script may have the placeholders `{{CATALOG}}` and `{{DATA_PATH}}`, and lines after
    `-- @repeat N`, which are run N times with the numbers 1 to N for `{{i}}`.

    Args:
        name: of the lake.
        data_path: without a slash at its end.
    """
    with connect(LAKE, s3_endpoint) as con:
        for statement in con.extract_statements(
            filled_in(script, f"postgres:{database.libpq}", data_path)
        ):
            con.execute(statement)
    match = METADATA_SCHEMA.search(script)
    schema = match.group(1).replace("''", "'") if match else "public"
    return Lake(name, database, data_path, schema)


def attach(con: DuckDBPyConnection, lake: Lake, *, read_only: bool = True) -> None:
    """Attach an existing lake as `lake`."""
    options = [f"METADATA_SCHEMA {literal(lake.metadata_schema)}"]
    if read_only:
        options.append("READ_ONLY")
    source = literal(f"ducklake:postgres:{(lake.native or lake.database).libpq}")
    con.execute(f"ATTACH {source} AS {identifier('lake')} ({', '.join(options)})")


def filled_in(text: str, catalog: str, data_path: str) -> str:
    """Fill in the placeholders of a script.

    Args:
        catalog: what follows `ducklake:` in ATTACH.
    """
    text = REPEAT.sub(lambda match: "\n".join(_repeated(*match.groups())), text)
    text = text.replace("{{CATALOG}}", catalog.replace("'", "''"))
    return text.replace("{{DATA_PATH}}", data_path.replace("'", "''"))


def _repeated(times: str, line: str) -> Iterator[str]:
    return (line.replace("{{i}}", str(i)) for i in range(1, int(times) + 1))


NAME = "DuckLake"
CATALOG = identifier("__ducklake_metadata_lake")


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the lake; `table_id` stays when it is renamed."""

    table_id: int
    namespace: str
    name: str


class Native:
    """Reads a lake with DuckDB's extension ducklake."""

    name = NAME

    def __init__(self, lake: Lake, s3_endpoint: str) -> None:
        self._con = connect(LAKE, s3_endpoint)
        attach(self._con, lake)
        self._catalog = f"{CATALOG}.{identifier(lake.metadata_schema)}"

    def tables(self, snapshot_id: int | None = None) -> list[Table]:
        """The tables at a snapshot; without one, at the newest."""
        visible = _visible_at("t", snapshot_id), _visible_at("s", snapshot_id)
        rows = self._con.execute(f"""
            SELECT t.table_id, s.schema_name, t.table_name
            FROM {self._catalog}.ducklake_table AS t
            JOIN {self._catalog}.ducklake_schema AS s USING (schema_id)
            WHERE {" AND ".join(visible)}
            ORDER BY 1""").fetchall()
        return [Table(*row) for row in rows]

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """All rows of a table, by its name now, at a snapshot or the newest."""
        source = self.source(namespace, table, snapshot_id)
        return self._con.execute(f"SELECT * FROM {source}").to_arrow_table()

    def canonical(
        self,
        namespace: str,
        table: str,
        snapshot_id: int | None = None,
        hidden: Collection[str] = (),
    ) -> Canonical:
        """`rows` as text, without Arrow, which lacks some of DuckLake's types."""
        source = self.source(namespace, table, snapshot_id)
        return canonical(self._con, source, columns_of(self._con, source), hidden)

    def columns(self, namespace: str, table: str, snapshot_id: int | None = None) -> Columns:
        """The names and types of a table's columns."""
        return columns_of(self._con, self.source(namespace, table, snapshot_id))

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Run any SQL; the lake is attached as `lake`."""
        rows: list[tuple[Any, ...]] = self._con.execute(sql).fetchall()
        return rows

    def close(self) -> None:
        self._con.close()

    def source(self, namespace: str, table: str, snapshot_id: int | None = None) -> str:
        """What follows FROM for a table, by its name now, at a snapshot or the newest."""
        if snapshot_id is None:
            return f"lake.{identifier(namespace)}.{identifier(table)}"
        table_then = self._name_at(namespace, table, snapshot_id)
        name = f"lake.{identifier(table_then.namespace)}.{identifier(table_then.name)}"
        return f"{name} AT (VERSION => {int(snapshot_id)})"

    def _name_at(self, namespace: str, table: str, snapshot_id: int) -> Table:
        """Find the name that a table, which may have been renamed since, had at a snapshot."""
        names = {(t.namespace, t.name): t.table_id for t in self.tables()}
        table_id = names[namespace, table]
        return next(t for t in self.tables(snapshot_id) if t.table_id == table_id)


open = Native


def _visible_at(alias: str, snapshot_id: int | None) -> str:
    if snapshot_id is None:
        return f"{alias}.end_snapshot IS NULL"
    n = int(snapshot_id)
    return (
        f"{n} >= {alias}.begin_snapshot AND "
        f"({n} < {alias}.end_snapshot OR {alias}.end_snapshot IS NULL)"
    )
