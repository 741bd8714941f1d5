"""Tables and views of the whole lake, a page at a time, with the sums of their files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from polynya.ducklake.connection.catalog_connection import Rows, Statement
from polynya.ducklake.queries.catalog import VISIBLE
from polynya.ducklake.rows.objects import Schema


@dataclass(frozen=True, slots=True)
class Entry:
    """A table or a view, with the sums over its data files at the snapshot."""

    kind: str
    """`table` or `view`."""
    object_id: int
    namespace: str
    """All levels of its schema's name, as people write them."""
    name: str
    files: int
    rows: int
    """The rows of the data files, deleted ones included."""
    bytes: int
    changed_at: int
    """The newest snapshot that created or renamed it, or in which a data file began or ended."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all entries, not only those of one page."""

    entries: int
    files: int
    bytes: int
    most_rows: int
    """The most rows in the data files of an entry; fewer may be live."""
    most_bytes: int


ORDERS = {
    "name": "namespace, name, kind",
    "rows": "rows DESC, namespace, name, kind",
    "files": "files DESC, namespace, name, kind",
    "bytes": "bytes DESC, namespace, name, kind",
    "changed": "changed_at DESC, namespace, name, kind",
}
"""How a page is sorted."""

# The full names of schemas come from `schemas_at`, which knows those that count as dropped.
SCHEMAS = """unnest(CAST(:schema_ids AS bigint[]), CAST(:namespaces AS text[]))
  AS s(schema_id, namespace)"""

# One scan of the data files for all tables: their catalog has no index on table_id.
ENTRIES = f"""
WITH data AS (
  SELECT f.table_id, count(*) FILTER (WHERE is_live) AS files,
    sum(f.record_count) FILTER (WHERE is_live) AS rows,
    sum(f.file_size_bytes) FILTER (WHERE is_live) AS bytes,
    max(CASE WHEN is_live THEN f.begin_snapshot ELSE f.end_snapshot END) AS changed_at
  FROM ducklake_data_file AS f
  CROSS JOIN LATERAL (SELECT f.end_snapshot IS NULL OR f.end_snapshot > :snapshot_id) AS l(is_live)
  WHERE f.begin_snapshot <= :snapshot_id GROUP BY f.table_id),
named AS (
  SELECT 'table' AS kind, t.table_id AS id, s.namespace, t.table_name AS name, t.begin_snapshot
  FROM ducklake_table AS t JOIN {SCHEMAS} USING (schema_id) WHERE {VISIBLE.format("t")}
  UNION ALL
  SELECT 'view', v.view_id, s.namespace, v.view_name, v.begin_snapshot
  FROM ducklake_view AS v JOIN {SCHEMAS} USING (schema_id) WHERE {VISIBLE.format("v")}),
entry AS (
  SELECT n.kind, n.id, n.namespace, n.name, coalesce(d.files, 0) AS files,
    coalesce(d.rows, 0) AS rows, coalesce(d.bytes, 0) AS bytes,
    greatest(n.begin_snapshot, d.changed_at) AS changed_at
  FROM named AS n LEFT JOIN data AS d ON n.kind = 'table' AND d.table_id = n.id
  WHERE n.name IS NOT NULL
    AND (CAST(:namespace AS text) IS NULL OR n.namespace = :namespace)
    AND (position(lower(:search) IN lower(n.namespace || '.' || n.name)) > 0
      OR n.kind = 'table' AND n.id IN (SELECT c.table_id FROM ducklake_column AS c
        WHERE {VISIBLE.format("c")} AND position(lower(:search) IN lower(c.column_name)) > 0)))
SELECT *, count(*) OVER (), sum(files) OVER (), sum(bytes) OVER (),
  max(rows) OVER (), max(bytes) OVER ()
FROM entry ORDER BY {{order}} LIMIT :most OFFSET :first"""

NOTHING = Totals(0, 0, 0, 0, 0)


def entries(
    snapshot_id: int,
    schemas: Sequence[Schema],
    search: str,
    namespace: str | None,
    order: str,
    first: int,
    most: int,
) -> Statement[tuple[list[Entry], Totals]]:
    """A page of the tables and views of a lake, and the sums over all pages.

    Args:
        schemas: all of the snapshot.
        search: a part of `namespace.name`, or of a table's column, in any case; empty: all.
        namespace: only those directly in this schema, its full name as people write it; None:
            those of all.
        order: one of `ORDERS`.
        first: how many are on the pages before.
        most: how many are on this page.
    """

    def result(rows: Rows) -> tuple[list[Entry], Totals]:
        page = [Entry(*row[:4], *map(int, row[4:8])) for row in rows]
        return page, Totals(*map(int, rows[0][8:])) if rows else NOTHING

    parameters = {"snapshot_id": snapshot_id, "search": search, "namespace": namespace}
    parameters |= _names(schemas)
    sql = ENTRIES.format(order=ORDERS[order])
    return Statement(sql, {**parameters, "first": first, "most": most}, result)


def _names(schemas: Sequence[Schema]) -> dict[str, Any]:
    return {
        "schema_ids": [schema.schema_id for schema in schemas],
        "namespaces": [schema.full_name for schema in schemas],
    }


@dataclass(frozen=True, slots=True)
class Namespace:
    """A schema, and what is directly in it."""

    name: str
    """All of its levels, as people write them."""
    tables: int
    views: int


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The first schemas of a lake, and the numbers of tables and views in all of them."""

    first: list[Namespace]
    tables: int
    views: int


NAMESPACES = f"""
SELECT s.namespace, count(*) FILTER (WHERE e.kind = 'table'),
  count(*) FILTER (WHERE e.kind = 'view'), sum(count(*) FILTER (WHERE e.kind = 'table')) OVER (),
  sum(count(*) FILTER (WHERE e.kind = 'view')) OVER ()
FROM {SCHEMAS} LEFT JOIN (
  SELECT 'table' AS kind, t.schema_id FROM ducklake_table AS t WHERE {VISIBLE.format("t")}
  UNION ALL SELECT 'view', v.schema_id FROM ducklake_view AS v WHERE {VISIBLE.format("v")}
) AS e USING (schema_id)
GROUP BY s.namespace ORDER BY s.namespace LIMIT :most"""


def namespaces(snapshot_id: int, schemas: Sequence[Schema], most: int) -> Statement[Namespaces]:
    """The first schemas by name, with the numbers of their tables and views.

    Args:
        schemas: all of the snapshot.
    """

    def result(rows: Rows) -> Namespaces:
        first = [Namespace(*row[:3]) for row in rows]
        return Namespaces(first, *map(int, rows[0][3:])) if rows else Namespaces([], 0, 0)

    parameters = {"snapshot_id": snapshot_id, "most": most, **_names(schemas)}
    return Statement(NAMESPACES, parameters, result)
