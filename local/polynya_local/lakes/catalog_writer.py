"""Writes the changes of a transaction in a mirror to the file that is mirrored.

Triggers in the mirror record each row that a commit inserts, changes or deletes. Right before
PostgreSQL commits, `write_back` makes the same changes in the file, and commits them there: the
file has the old state or the new one, even if a process ends. Nobody else writes to the file
meanwhile.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

import duckdb
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.rows.lifetimes import INLINED_COLUMNS
from polynya.ducklake.rows.objects import PREFIX
from polynya.ducklake.writes import changed_uploads, new_snapshot
from polynya.runtime.errors import ServiceUnavailable
from polynya.types import nested
from polynya.types.names import ducklake_type

from ..clients.duckdb import identifier
from .catalog_source import Row, WritableState
from .mirrored_tables import COMMITS, INLINED_ROWS, MAY_HAVE_NUL, SCHEMA, SYSTEM_COLUMNS, qualified

RECORDING = (
    "CREATE SCHEMA polynya_mirror",
    """CREATE UNLOGGED TABLE polynya_mirror.changes (
  number bigint GENERATED ALWAYS AS IDENTITY, table_name text, old jsonb, new jsonb)""",
    """CREATE FUNCTION polynya_mirror.record() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO polynya_mirror.changes (table_name, old, new)
    VALUES (TG_TABLE_NAME, to_jsonb(OLD), to_jsonb(NEW));
  RETURN NULL;
END $$""",
    changed_uploads.TABLE.strip(),
)
"""Sets up the recording of changes, once for a mirror; uploads are recorded in no file."""

TRIGGER = """CREATE TRIGGER recorded AFTER INSERT OR UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION polynya_mirror.record()"""

NOT_RECORDED = "SET session_replication_role = replica"
"""Set in the session that makes the mirror: what it writes is in the file already."""

CHANGES = "SELECT table_name, old, new FROM polynya_mirror.changes ORDER BY number"
CLEAR = "DELETE FROM polynya_mirror.changes"

NEW_TABLES = f"""
SELECT c.relname::text FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = '{SCHEMA}' AND c.relkind = 'r' AND starts_with(c.relname::text, 'ducklake_')
  AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_trigger AS t WHERE t.tgrelid = c.oid AND t.tgname = 'recorded')
ORDER BY 1"""

ROWS = "SELECT to_jsonb(t) FROM {table} AS t"

COLUMNS = """
SELECT a.attname::text FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = CAST(:table AS regclass) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum"""

TIMES = ("snapshot_time", "schedule_start")
"""Columns whose text differs between the kinds of database."""

NOT_COMPARED = MAY_HAVE_NUL | {"path", *TIMES}
"""Columns whose value in the mirror may differ from that in the file."""

COLUMNS_OF_COMMITS = dict.fromkeys(new_snapshot.COLUMNS, "VARCHAR") | {
    **dict.fromkeys(("table_uuid", "idempotency_key"), "UUID"),
    **dict.fromkeys(("client_snapshot_id", "snapshot_id", "position"), "BIGINT"),
}
"""The columns of polynya_commits, with DuckDB's types."""


SNAPSHOT_TABLES = ("ducklake_snapshot", "ducklake_snapshot_changes")
"""Each commit writes a row to each of them. No other commit writes the same: they have the number
of the snapshot, its time in microseconds, and who made it."""


class NotAnswered(Exception):
    """COMMIT of the file has failed, but may have taken place.

    SQLite, for example, has written all pages when it cannot remove its journal.
    """

    def __init__(self, rows: Mapping[str, Row]) -> None:
        super().__init__("COMMIT has failed")
        self.rows = rows
        """The rows of the commit in `SNAPSHOT_TABLES`; the file has them if it took place."""


class RowChange(NamedTuple):
    """A row that was inserted (`old` is None), deleted (`new` is None) or changed."""

    table: str
    old: Row | None
    new: Row | None


def net(changes: Iterable[RowChange]) -> list[RowChange]:
    """The net changes of one transaction: at most one for each row before or after it."""
    result: list[RowChange] = []
    positions: dict[tuple[str, str], list[int]] = defaultdict(list)
    for change in changes:
        position = len(result)
        if change.old is not None and (earlier := positions[change.table, _text(change.old)]):
            position = earlier.pop()
            result[position] = result[position]._replace(new=change.new)
        else:
            result.append(change)
        if change.new is not None:
            positions[change.table, _text(change.new)].append(position)
    return [change for change in result if change.old != change.new]


def _text(row: Row) -> str:
    return json.dumps(row, sort_keys=True)


def write_back(con: Connection, state: WritableState, original: Callable[[str], str]) -> bool:
    """Make the changes of a transaction in the file and commit; returns whether there are any.

    Args:
        con: the transaction, which is about to be committed.
        state: the file, with the state that the transaction began with.
        original: gives the location in the file for one that clients see.

    Raises:
        ServiceUnavailable: the file does not have the rows that were changed.
        NotAnswered: COMMIT has failed; only the file shows whether it took place.
        duckdb.Error, sqlite3.Error: the file cannot be written.
    """
    recorded = [RowChange(*row) for row in con.run(CHANGES)]
    created = new_tables(con)
    # A staged creation has rolled the transaction back, and without one this connection only reads.
    if not (recorded or created):
        return False
    con.run(CLEAR)
    for name in created:
        _create(con, state, name)
    changes = [
        *net(recorded),
        *(RowChange(name, None, row) for name, row in _rows(con, created)),
    ]
    for change in changes:
        if change.old is not None:
            _change(state, change, original)
    inserted = [change for change in changes if change.old is None]
    for table, of_table in groupby(sorted(inserted, key=_table), key=_table):
        rows = [_file_row(change.new, original) for change in of_table if change.new is not None]
        state.insert(table, list(rows[0]), [list(row.values()) for row in rows])
    try:
        state.commit()
    except (duckdb.Error, sqlite3.Error, OSError) as error:
        rows_of_snapshot = {
            change.table: _file_row(change.new, original)
            for change in inserted
            if change.table in SNAPSHOT_TABLES and change.new is not None
        }
        raise NotAnswered(rows_of_snapshot) from error
    return True


def new_tables(con: Connection) -> list[str]:
    """The tables that commits have created in the mirror since the file was copied to it."""
    return [name for [name] in con.run(NEW_TABLES)]


def _table(change: RowChange) -> str:
    return change.table


def _rows(con: Connection, tables: Iterable[str]) -> Iterator[tuple[str, Row]]:
    for table in tables:
        for [row] in con.run(ROWS.format(table=qualified(SCHEMA, table))):
            yield table, row


def _create(con: Connection, state: WritableState, name: str) -> None:
    """Create a table of inlined rows or deletes that the transaction has created in the mirror."""
    # In the mirror's order, because DuckLake inserts by position.
    names = [column for [column] in con.run(COLUMNS, table=qualified(SCHEMA, name))]
    types = dict.fromkeys(names, "BIGINT")
    if match := INLINED_ROWS.fullmatch(name):
        columns = queries.columns_now(int(match["table_id"])).run(con)
        of_user = {column.column_name.casefold(): duckdb_type(column) for column in columns}
        types |= {n: of_user[n.casefold()] for n in names[SYSTEM_COLUMNS:]}
    state.create(name, types)


def duckdb_type(column: ColumnNode) -> str:
    """DuckDB's type of a column with its nested columns."""
    # Not `Source.sql_type` of mapping/rows_files.py, the type that texts are read with: JSON is a
    # text there, and so is a type that Polynya does not know. The file gets DuckLake's own types.
    inner = [duckdb_type(child) for child in column.children]
    match column.column_type:
        case nested.STRUCT:
            names = [identifier(child.column_name) for child in column.children]
            return f"STRUCT({', '.join(map(' '.join, zip(names, inner, strict=True)))})"
        case nested.LIST:
            return f"{inner[0]}[]"
        case nested.MAP:
            return f"MAP({inner[0]}, {inner[1]})"
        case "json":
            return "JSON"
    return ducklake_type(column.column_type).duckdb or column.column_type.upper()


def set_up_commits(state: WritableState, tables: Iterable[str]) -> bool:
    """Create the table polynya_commits in the file if it is missing; returns whether it was.

    Args:
        tables: those that the file has.
    """
    if COMMITS in tables:
        return False
    state.create(COMMITS, COLUMNS_OF_COMMITS)
    state.commit()
    return True


def _change(state: WritableState, change: RowChange, original: Callable[[str], str]) -> None:
    """Change or delete one row.

    Raises:
        ServiceUnavailable: the file does not have exactly one such row.
    """
    row = change.old or {}
    if INLINED_ROWS.fullmatch(change.table):
        # These identify the row. The user's values are not compared: the mirror has some as text.
        prefix = PREFIX if f"{PREFIX}row_id" in row else ""
        old = {name: row[name] for name in (prefix + name for name in INLINED_COLUMNS)}
    else:
        old = {name: value for name, value in row.items() if name not in NOT_COMPARED}
    new = change.new and {
        name: value
        for name, value in _file_row(change.new, original).items()
        if change.new[name] != row[name]
    }
    # The row is found by its values: if several have them, or none, the file is not as expected.
    if (count := state.change(change.table, old, new)) != 1:
        raise ServiceUnavailable(
            f"the commit did not take place: the catalog has {count} rows in {change.table} where "
            "it changes one; was it changed by hand?"
        )


def _file_row(row: Row, original: Callable[[str], str]) -> dict[str, object]:
    """The row of a mirror as the file stores it."""
    stored = dict(row)
    for name in TIMES:
        if stored.get(name) is not None:
            stored[name] = str(stored[name]).replace("T", " ").replace("+00:00", "+00")
    if stored.get("path") is not None and not stored.get("path_is_relative"):
        stored["path"] = original(str(stored["path"]))
    return stored
