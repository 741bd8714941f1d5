"""Tables and views of the whole lake, a page at a time, with the sums of their files."""

from collections.abc import Sequence

from ...connection.statements import Rows, Statement, select
from ...rows.listing import Entry, NamedFrom, Namespace, Namespaces, Totals
from ..fragments import VISIBLE

ORDERS = {
    "name": "schema_name, name, kind",
    "rows": "rows DESC, schema_name, name, kind",
    "files": "files DESC, schema_name, name, kind",
    "bytes": "bytes DESC, schema_name, name, kind",
    "changed": "changed_at DESC, schema_name, name, kind",
}
"""How a page is sorted."""

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
  SELECT 'table' AS kind, t.table_id AS id, s.schema_name, t.table_name AS name, t.begin_snapshot
  FROM ducklake_table AS t JOIN ducklake_schema AS s USING (schema_id)
  WHERE {VISIBLE.format("s")} AND {VISIBLE.format("t")}
  UNION ALL
  SELECT 'view', v.view_id, s.schema_name, v.view_name, v.begin_snapshot
  FROM ducklake_view AS v JOIN ducklake_schema AS s USING (schema_id)
  WHERE {VISIBLE.format("s")} AND {VISIBLE.format("v")}),
entry AS (
  SELECT n.kind, n.id, n.schema_name, n.name, coalesce(d.files, 0) AS files,
    coalesce(d.rows, 0) AS rows, coalesce(d.bytes, 0) AS bytes,
    greatest(n.begin_snapshot, d.changed_at) AS changed_at
  FROM named AS n LEFT JOIN data AS d ON n.kind = 'table' AND d.table_id = n.id
  WHERE n.name IS NOT NULL AND n.schema_name IS NOT NULL
    AND (CAST(:namespace AS text) IS NULL OR n.schema_name = :namespace)
    AND position(lower(:search) IN lower(n.schema_name || '.' || n.name)) > 0)
SELECT *, count(*) OVER (), sum(files) OVER (), sum(bytes) OVER (),
  max(rows) OVER (), max(bytes) OVER ()
FROM entry ORDER BY {{order}} LIMIT :most OFFSET :first"""

NOTHING = Totals(0, 0, 0, 0, 0)


def entries(
    snapshot_id: int, search: str, namespace: str | None, order: str, first: int, most: int
) -> Statement[tuple[list[Entry], Totals]]:
    """A page of the tables and views of a lake, and the sums over all pages.

    Args:
        search: a part of `namespace.name`, in any case; empty: all.
        namespace: only those of this schema; None: of all.
        order: one of `ORDERS`.
        first: how many are on the pages before.
        most: how many are on this page.
    """

    def result(rows: Rows) -> tuple[list[Entry], Totals]:
        found = [Entry(*row[:4], *map(int, row[4:8])) for row in rows]
        return found, Totals(*map(int, rows[0][8:])) if rows else NOTHING

    parameters = {"snapshot_id": snapshot_id, "search": search, "namespace": namespace}
    sql = ENTRIES.format(order=ORDERS[order])
    return Statement(sql, {**parameters, "first": first, "most": most}, result)


NAMESPACES = f"""
SELECT s.schema_name, count(*) FILTER (WHERE e.kind = 'table'),
  count(*) FILTER (WHERE e.kind = 'view'), sum(count(*) FILTER (WHERE e.kind = 'table')) OVER (),
  sum(count(*) FILTER (WHERE e.kind = 'view')) OVER ()
FROM ducklake_schema AS s LEFT JOIN (
  SELECT 'table' AS kind, t.schema_id FROM ducklake_table AS t WHERE {VISIBLE.format("t")}
  UNION ALL SELECT 'view', v.schema_id FROM ducklake_view AS v WHERE {VISIBLE.format("v")}
) AS e USING (schema_id)
WHERE s.schema_name IS NOT NULL AND {VISIBLE.format("s")}
GROUP BY s.schema_name ORDER BY s.schema_name LIMIT :most"""


def namespaces(snapshot_id: int, most: int) -> Statement[Namespaces]:
    """The first schemas by name, with the numbers of their tables and views."""

    def result(rows: Rows) -> Namespaces:
        first = [Namespace(*row[:3]) for row in rows]
        return Namespaces(first, *map(int, rows[0][3:])) if rows else Namespaces([], 0, 0)

    return Statement(NAMESPACES, {"snapshot_id": snapshot_id, "most": most}, result)


NAMED = """
SELECT n.kind, n.id, s.schema_name, n.name, greatest(n.begin_snapshot, s.begin_snapshot),
  least(n.end_snapshot, s.end_snapshot)
FROM (
  SELECT 'table' AS kind, t.table_id AS id, t.schema_id, t.table_name AS name,
    t.begin_snapshot, t.end_snapshot
  FROM ducklake_table AS t
  WHERE t.table_id = ANY(CAST(:ids AS bigint[])) OR t.table_name = ANY(CAST(:names AS text[]))
  UNION ALL
  SELECT 'view', v.view_id, v.schema_id, v.view_name, v.begin_snapshot, v.end_snapshot
  FROM ducklake_view AS v
  WHERE v.view_id = ANY(CAST(:ids AS bigint[])) OR v.view_name = ANY(CAST(:names AS text[]))) AS n
JOIN ducklake_schema AS s USING (schema_id)
WHERE n.name IS NOT NULL AND s.schema_name IS NOT NULL
  AND greatest(n.begin_snapshot, s.begin_snapshot) <= :snapshot_id
ORDER BY 5, 2, 1 LIMIT :most"""

MOST_NAMED = 5000


def named(ids: Sequence[int], names: Sequence[str], snapshot_id: int) -> Statement[list[NamedFrom]]:
    """The names that tables and views had, up to a snapshot, oldest first.

    Args:
        ids: of tables and views.
        names: without their schema.
    """
    parameters = {"ids": list(ids), "names": list(names), "snapshot_id": snapshot_id}
    return select(NamedFrom, NAMED, **parameters, most=MOST_NAMED)
