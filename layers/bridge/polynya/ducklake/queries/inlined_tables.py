"""The PostgreSQL tables of inlined rows, their rows, and their columns.

A row is parsed from the text that PostgreSQL writes for a whole row.

The columns of a table are those of the snapshot that made it. DuckLake creates it at CREATE TABLE
and at an ALTER, and then ducklake_schema_versions says at which snapshot. If nothing was inlined
before, it creates one at the first small INSERT, with a schema version that no other row has; and
the snapshot may have expired since. Then the other versions limit the snapshots that may have
created it, and the names of its columns decide.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pg8000.native import Connection, identifier

from ..connection.catalog_connection import Rows, Statement, constant, select
from ..faults import inlined_fault
from ..rows.lifetimes import (
    INLINED_COLUMNS,
    Inlined,
    InlinedOrigin,
    InlinedTable,
    UnservableRange,
    postgres_name,
)
from ..rows.objects import Column, Lake
from .catalog import CATALOG_SCHEMA, sql_for_version

Record = dict[str, str | bytes | None]
"""Values by their column names in PostgreSQL: text, or bytes for bytea."""

# PostgreSQL manual, 8.16.6: quotes and backslashes are doubled in quotes; an empty field is NULL.
VALUE = re.compile(r'[(,](?:"((?:[^"\\]|""|\\\\)*)"|([^,()"]*))')
DOUBLED = re.compile(r'(["\\])\1')

# DuckDB reads '0044-03-15 BC' as the year 44 AD; its own spelling is '0044-03-15 (BC)'.
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
    values = [_unquoted(*match.groups()) for match in VALUE.finditer(text)]
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


# A table that was made at an ALTER has a row of its schema version. One that was made at an INSERT,
# because nothing was inlined before, has none: it is younger than the versions below its own. The
# table of deletes is registered nowhere: it is found by its name. A version that
# begins after the newest snapshot is ignored: DuckLake does not read when versions begin.
INLINED = f"""
SELECT i.table_name IS NULL, c.relname::text, i.schema_version,
  coalesce(v.made_at, v.made_after + 1), coalesce(v.made_at, v.made_until),
  a.names, a.types
FROM pg_class AS c
LEFT JOIN ducklake_inlined_data_tables AS i ON i.table_name = c.relname AND i.table_id = :table_id
CROSS JOIN LATERAL (
  SELECT array_agg(attname::text ORDER BY attnum) AS names,
    array_agg(atttypid::regtype::text ORDER BY attnum) AS types
  FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) AS a
CROSS JOIN LATERAL (
  SELECT min(begin_snapshot) FILTER (WHERE schema_version = i.schema_version) AS made_at,
    max(begin_snapshot) FILTER (WHERE schema_version < i.schema_version) AS made_after,
    min(begin_snapshot) FILTER (WHERE schema_version > i.schema_version) AS made_until
  FROM {{schema_versions}} AS versions
  WHERE begin_snapshot <= (SELECT max(snapshot_id) FROM ducklake_snapshot)) AS v
WHERE c.relnamespace = {CATALOG_SCHEMA}
  AND (i.table_id IS NOT NULL OR c.relname = :delete_table)
ORDER BY 4, 2"""


def inlined(lake: Lake, table_id: int, begin_snapshot: int) -> Statement[Inlined]:
    """Which PostgreSQL tables hold inlined rows and deletes. Deletes are registered nowhere."""
    sql = sql_for_version(lake, INLINED)
    parameters = {"table_id": table_id, "delete_table": f"ducklake_inlined_delete_{table_id}"}
    return Statement(sql, parameters, lambda rows: _inlined(rows, begin_snapshot))


def _inlined(rows: Rows, begin_snapshot: int) -> Inlined:
    def table(
        name: str, version: int, begin: int | None, end: int | None, names: Any, types: Any
    ) -> InlinedTable:
        return InlinedTable(
            table_name=name,
            schema_version=version,
            schema_begin=max(begin or 0, begin_snapshot),
            schema_until=end,
            system_columns=tuple(names[:3]),
            user_columns=tuple(names[3:]),
            user_types=tuple(types[3:]),
        )

    tables = tuple(table(*row) for is_delete_table, *row in rows if not is_delete_table)
    deletes = [tuple(row[5][:3]) for row in rows if row[0]]
    return Inlined(tables, deletes[0] if deletes else ())


# The schema version of a snapshot never falls, so that the first snapshot with this one, or with a
# later one (a transaction may make several), is the one that made the table.
INLINED_ORIGIN = """
SELECT max(snapshot_id) FILTER (WHERE schema_version < :schema_version),
  min(snapshot_id) FILTER (WHERE schema_version = :schema_version),
  min(snapshot_id) FILTER (WHERE schema_version > :schema_version),
  (SELECT min({begin}) FROM {table}),
  (SELECT CASE WHEN bool_and({end} IS NOT NULL) THEN max({end}) END FROM {table})
FROM ducklake_snapshot"""


def inlined_origin(table: InlinedTable) -> Statement[InlinedOrigin]:
    """The snapshots and rows that limit which snapshot has created a table of inlined rows."""
    _, begin, end = map(identifier, table.system_columns)
    sql = INLINED_ORIGIN.format(table=identifier(table.table_name), begin=begin, end=end)
    parameters = {"schema_version": table.schema_version}
    return Statement(sql, parameters, lambda rows: InlinedOrigin(*rows[0]))


# A table that is registered and does not exist, or is registered twice: rows are missing or double.
# A table that DuckLake drops at a flush disappears from both places within one transaction.
UNSERVABLE_INLINED_TABLES = f"""
SELECT i.table_name::text, count(c.oid) = 0
FROM ducklake_inlined_data_tables AS i
LEFT JOIN pg_class AS c ON c.relname = i.table_name AND c.relnamespace = {CATALOG_SCHEMA}
WHERE i.table_id = :table_id
GROUP BY i.table_name HAVING count(c.oid) <> 1 ORDER BY 1"""


def unservable_inlined_tables(
    table_id: int, begin_snapshot: int
) -> Statement[list[UnservableRange]]:
    """Why inlined rows cannot be read. Their snapshots are unknown, so all are affected."""

    def row(name: str | None, is_missing: bool) -> UnservableRange:
        return UnservableRange(begin_snapshot, None, inlined_fault(name, is_missing=is_missing))

    return select(row, UNSERVABLE_INLINED_TABLES, table_id=table_id)


# `polynya serve` makes this table in its copy of a catalog in a file.
REFUSED = """
SELECT begin_snapshot, end_snapshot, reason FROM polynya_refused
WHERE table_id = :table_id ORDER BY catalog_table, number"""


def uncopied_rows(lake: Lake, table_id: int) -> Statement[list[UnservableRange]]:
    """Why rows of the original could not be copied to this catalog."""
    if "polynya_refused.table_id" not in lake.layout:
        return constant([])
    return select(UnservableRange, REFUSED, table_id=table_id)


INLINED_TABLE_NAMES = f"""
SELECT i.table_name::text FROM ducklake_inlined_data_tables AS i
JOIN pg_class AS c ON c.relname = i.table_name AND c.relnamespace = {CATALOG_SCHEMA}
WHERE i.table_id = :table_id ORDER BY 1"""


def inlined_table_names(table_id: int) -> Statement[list[str]]:
    """The names of the PostgreSQL tables of inlined rows that exist."""
    return select(str, INLINED_TABLE_NAMES, table_id=table_id)


SYSTEM_COLUMNS = f"""
SELECT array_agg(a.attname::text ORDER BY a.attnum)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relname = CAST(:table_name AS text) AND c.relnamespace = {CATALOG_SCHEMA}
  AND a.attnum > 0 AND NOT a.attisdropped"""


def system_columns(table_name: str) -> Statement[tuple[str, ...]]:
    """The names of row_id, begin_snapshot and end_snapshot in a PostgreSQL table of inlined rows.

    They are the first ones, and have a prefix since version 1.1.
    """

    def result(rows: Rows) -> tuple[str, ...]:
        return tuple((rows[0][0] or INLINED_COLUMNS)[:3])  # NULL if the table is gone

    return Statement(SYSTEM_COLUMNS, {"table_name": table_name}, result)


class InlinedRecords(NamedTuple):
    """Rows of one table, in the order of their ids."""

    table: InlinedTable
    row_ids: list[int]
    begin_snapshots: list[int]
    records: list[Record]


# As text, because pg8000 cannot read PostgreSQL's time '24:00:00', and DuckDB reads its own
# literals better than any other reader. Whole rows, because a statement that names each column
# grows with the number of tables times their columns. `(r.*)` and not `r`: a column may be called
# r.
INLINED_ROWS_AT = """
SELECT {number} AS number, r.{row_id} AS row_id, r.{begin} AS begun, (r.*)::text FROM {table} AS r
WHERE r.{begin} >= :since AND r.{begin} < :until
  AND r.{begin} <= :snapshot_id AND (r.{end} > :snapshot_id OR r.{end} IS NULL)"""


def inlined_rows_at(
    tables: Sequence[InlinedTable], snapshot_id: int, since: int, until: int
) -> Statement[list[InlinedRecords]]:
    """The visible rows that began in [since, until), by table."""
    if not tables:
        return constant([])
    selects = []
    for number, table in enumerate(tables):
        row_id, begin, end = map(identifier, table.system_columns)
        name = identifier(table.table_name)
        selects.append(
            INLINED_ROWS_AT.format(number=number, table=name, row_id=row_id, begin=begin, end=end)
        )
    sql = "\nUNION ALL".join(selects) + "\nORDER BY number, row_id, begun"

    def result(rows: Rows) -> list[InlinedRecords]:
        by_table: dict[int, InlinedRecords] = {}
        for number, row_id, begun, text in rows:
            table = tables[number]
            of_table = by_table.setdefault(number, InlinedRecords(table, [], [], []))
            of_table.row_ids.append(row_id)
            of_table.begin_snapshots.append(begun)
            of_table.records.append(record(table, text))
        return list(by_table.values())

    return Statement(sql, {"snapshot_id": snapshot_id, "since": since, "until": until}, result)


INLINED_TEXT_BYTES = """
SELECT coalesce(sum(octet_length((r.*)::text)), 0) FROM {table} AS r
WHERE r.{begin} <= :snapshot_id AND (r.{end} > :snapshot_id OR r.{end} IS NULL)"""


def inlined_text_bytes(tables: Sequence[InlinedTable], snapshot_id: int) -> Statement[int]:
    """The length of all visible rows as text."""
    if not tables:
        return constant(0)
    selects = []
    for table in tables:
        _, begin, end = map(identifier, table.system_columns)
        name = identifier(table.table_name)
        selects.append(INLINED_TEXT_BYTES.format(table=name, begin=begin, end=end))
    sql = "\nUNION ALL".join(selects)
    return Statement(sql, {"snapshot_id": snapshot_id}, lambda rows: sum(int(n) for [n] in rows))


Shape = tuple[int, str, str, int | None]
"""What determines how a column is read; its default does not."""

UNCERTAIN = (
    "it is not certain which columns the rows in {} have: snapshots have expired since they were "
    "inlined, or that table was changed by hand"
)


def tables_with_columns(
    con: Connection, inlined: Inlined, columns: Sequence[Column], snapshot_id: int
) -> tuple[Inlined, list[UnservableRange]]:
    """The tables that a reader at `snapshot_id` needs, each with the snapshot of its columns.

    If that is not certain, the snapshots that show rows of the table are unservable.
    """
    tables, unservable = [], []
    for table in inlined.tables:
        if table.schema_begin > snapshot_id:
            continue
        # The rows are read only if the names do not decide, because that takes a scan.
        created_at = made_by(table, columns, snapshot_id)
        if created_at is None:
            origin = inlined_origin(table).run(con)
            # The columns of a table without rows do not matter.
            if origin.first_row is None:
                continue
            created_at = made_by(narrowed(table, origin), columns, snapshot_id)
            if created_at is None:
                reason = UNCERTAIN.format(table.table_name)
                unservable.append(UnservableRange(origin.first_row, origin.last_row, reason))
                continue
        tables.append(replace(table, schema_begin=created_at, schema_until=created_at))
    return Inlined(tuple(tables), inlined.delete_columns), unservable


def made_by(table: InlinedTable, columns: Sequence[Column], snapshot_id: int) -> int | None:
    """A snapshot at which the table's columns are visible; None if these are not certain."""
    names = set(table.user_columns)
    shapes: dict[tuple[Shape, ...], int] = {}
    for candidate in _candidates(table, columns, snapshot_id):
        visible = [column for column in columns if column.visible_at(candidate)]
        if {postgres_name(c.column_name) for c in visible if c.parent_column is None} == names:
            shapes.setdefault(tuple(map(_shape, visible)), candidate)
    # Two shapes with the same names differ in ids or types: then a value could be read as another
    # column's.
    return next(iter(shapes.values())) if len(shapes) == 1 else None


def narrowed(table: InlinedTable, origin: InlinedOrigin) -> InlinedTable:
    """The table, with a narrower range of snapshots that may have made it."""
    if origin.same is not None:
        return replace(table, schema_begin=origin.same, schema_until=origin.same)
    begin = table.schema_begin if origin.before is None else origin.before + 1
    ends = (table.schema_until, origin.after, origin.first_row)
    return replace(
        table,
        schema_begin=max(table.schema_begin, begin),
        schema_until=min((end for end in ends if end is not None), default=None),
    )


def _candidates(table: InlinedTable, columns: Iterable[Column], snapshot_id: int) -> Iterator[int]:
    """The first snapshot that may have made the table, and those at which columns changed."""
    begin, until = table.schema_begin, table.schema_until
    yield begin
    if until == begin:
        return
    until = snapshot_id if until is None else min(until, snapshot_id)
    edges = {edge for c in columns for edge in (c.begin_snapshot, c.end_snapshot) if edge}
    yield from sorted(edge for edge in edges if begin < edge <= until)


def _shape(column: Column) -> Shape:
    return column.column_id, column.column_name, column.column_type, column.parent_column
