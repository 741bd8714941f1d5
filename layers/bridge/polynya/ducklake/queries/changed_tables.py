"""Inlined rows, deletes and changed columns of several tables at once."""

from collections.abc import Sequence

from pg8000.native import Connection, identifier

from ..connection.catalog_connection import Statement, select
from ..rows.listing import Changed, InlinedNames
from .catalog import CATALOG_SCHEMA

# The tables of deletes are registered nowhere: they are found by their names.
INLINED_NAMES = f"""
SELECT w.table_id, c.relname::text, i.table_name IS NULL,
  (SELECT array_agg(attname::text ORDER BY attnum) FROM (
    SELECT attname, attnum FROM pg_attribute
    WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped ORDER BY attnum LIMIT 3) AS a)
FROM unnest(CAST(:table_ids AS bigint[])) AS w(table_id)
CROSS JOIN LATERAL (
  SELECT table_name::text FROM ducklake_inlined_data_tables AS d WHERE d.table_id = w.table_id
  UNION SELECT 'ducklake_inlined_delete_' || w.table_id) AS named(relname)
JOIN pg_class AS c ON c.relname = named.relname AND c.relnamespace = {CATALOG_SCHEMA}
LEFT JOIN ducklake_inlined_data_tables AS i
  ON i.table_id = w.table_id AND i.table_name = c.relname
ORDER BY 1, 2"""


def inlined_names(table_ids: Sequence[int]) -> Statement[list[InlinedNames]]:
    """Which PostgreSQL tables hold the inlined rows and deletes of these tables."""

    def row(table_id: int, name: str, is_deletes: bool, columns: list[str]) -> InlinedNames:
        first, second, third = columns
        return InlinedNames(table_id, name, is_deletes, (first, second, third))

    return select(row, INLINED_NAMES, table_ids=list(table_ids))


# A delete file often keeps end_snapshot NULL after its data file ended: the data file decides.
DELETE_FILES = """
SELECT d.table_id, 0 AS inlined, CASE WHEN l.is_live THEN d.delete_count ELSE 0 END AS deleted,
  d.begin_snapshot AS changed_at
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
CROSS JOIN LATERAL (
  SELECT least(d.end_snapshot, f.end_snapshot) IS NULL
    OR least(d.end_snapshot, f.end_snapshot) > :snapshot_id) AS l(is_live)
WHERE d.table_id = ANY(CAST(:table_ids AS bigint[])) AND d.begin_snapshot <= :snapshot_id"""

COLUMNS = """
SELECT c.table_id, 0, 0,
  CASE WHEN c.end_snapshot <= :snapshot_id THEN c.end_snapshot ELSE c.begin_snapshot END
FROM ducklake_column AS c
WHERE c.table_id = ANY(CAST(:table_ids AS bigint[])) AND c.begin_snapshot <= :snapshot_id"""

INLINED_ROWS = """
SELECT {table_id}, count(*) FILTER (WHERE r.{end} IS NULL OR r.{end} > :snapshot_id), 0,
  max(CASE WHEN r.{end} <= :snapshot_id THEN r.{end} ELSE r.{begin} END)
FROM {table} AS r WHERE r.{begin} <= :snapshot_id"""

INLINED_DELETES = """
SELECT {table_id}, 0, count(*), max(r.{begin})
FROM (SELECT DISTINCT d.{file}, d.{position}, d.{begin} FROM {table} AS d
  JOIN ducklake_data_file AS f ON f.data_file_id = d.{file}
  WHERE d.{begin} <= :snapshot_id
    AND (f.end_snapshot IS NULL OR f.end_snapshot > :snapshot_id)) AS r"""

CHANGED = """
SELECT table_id, sum(inlined), sum(deleted), coalesce(max(changed_at), 0) FROM ({parts}) AS part
GROUP BY table_id"""


def changed_rows(
    con: Connection, table_ids: Sequence[int], names: Sequence[InlinedNames], snapshot_id: int
) -> dict[int, Changed]:
    """Inlined rows, deletes and changed columns of these tables, by table_id.

    Args:
        names: the tables of their inlined rows and deletes.
    """
    parts = [DELETE_FILES, COLUMNS, *map(_inlined_part, names)]
    sql = CHANGED.format(parts="\nUNION ALL".join(parts))
    statement = select(_changed, sql, table_ids=list(table_ids), snapshot_id=snapshot_id)
    return {table.table_id: table for table in statement.run(con)}


def _inlined_part(names: InlinedNames) -> str:
    table = {"table_id": int(names.table_id), "table": identifier(names.table_name)}
    first, second, third = map(identifier, names.system_columns)
    if names.is_deletes:
        return INLINED_DELETES.format(file=first, position=second, begin=third, **table)
    return INLINED_ROWS.format(begin=second, end=third, **table)


def _changed(table_id: int, inlined: int, deleted: int, changed_at: int) -> Changed:
    return Changed(table_id, int(inlined), int(deleted), changed_at)
