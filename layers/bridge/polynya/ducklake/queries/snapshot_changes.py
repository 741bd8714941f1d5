"""The changes of snapshots in a lake, their messages, and the names of what they changed."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from ..connection.catalog_connection import Rows, Statement, select
from ..rows.listing import Change, NamedFrom
from ..rows.objects import Lake
from .catalog import EPOCH, MICROS, PARENTS, sql_for_version

LONGEST_TEXT = 10_000
"""The most characters that are read of a text of the catalog; a person reads fewer."""

CHANGES = f"""
SELECT s.snapshot_id, {MICROS},
  coalesce(left(c.changes_made, {{longest}}), ''),
  left({{author}}, {LONGEST_TEXT}), left({{commit_message}}, {LONGEST_TEXT})
FROM ducklake_snapshot AS s LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
WHERE {{condition}}
ORDER BY s.snapshot_id {{order}} LIMIT :most"""

MOST_CHANGES = 1_000_000
"""The longest `changes_made` that `changes_after` reads: about 40,000 changes."""


def changes_after(lake: Lake, since: int, until: int, most: int) -> Statement[list[Change]]:
    """The oldest snapshots after one and up to another, with all that they changed."""
    condition = "s.snapshot_id > :since AND s.snapshot_id <= :until"
    return select_changes(lake, condition, MOST_CHANGES, "ASC", since=since, until=until, most=most)


def select_changes(
    lake: Lake, condition: str, longest: int = LONGEST_TEXT, order: str = "DESC", **parameters: Any
) -> Statement[list[Change]]:
    """The snapshots `s` with changes `c` for which a condition holds.

    Args:
        longest: how many characters of `changes_made` are read.
        parameters: those of the condition, and `most`.
    """
    sql = sql_for_version(lake, CHANGES, condition=condition, longest=str(longest), order=order)
    return select(_change, sql, **parameters)


def _change(
    snapshot_id: int, micros: int, changes_made: str, author: str | None, message: str | None
) -> Change:
    time = EPOCH + timedelta(microseconds=micros)
    return Change(snapshot_id, time, changes_made, author, message)


NAMED = f"""
SELECT n.kind, n.id, s.schema_name, n.name, greatest(n.begin_snapshot, s.begin_snapshot),
  least(n.end_snapshot, s.end_snapshot), {PARENTS.format("s")}
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

    A name is absent if no row is left of a schema that its schema is in.

    Args:
        ids: of tables and views.
        names: without their schema.
    """

    def result(rows: Rows) -> list[NamedFrom]:
        return [
            replace(NamedFrom(*row[:6]), parents=tuple(row[6]))
            for row in rows
            if row[6] is not None
        ]

    parameters = {"ids": list(ids), "names": list(names), "snapshot_id": snapshot_id}
    return Statement(NAMED, parameters | {"most": MOST_NAMED}, result)
