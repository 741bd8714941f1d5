"""The texts that a view had."""

from ...connection.statements import Statement, select
from ...rows.named_objects import VIEW_VERSION, ViewText
from ..table_snapshots import IS_TIME

VIEW_TEXTS = f"""
SELECT v.begin_snapshot, CASE WHEN {IS_TIME} THEN s.snapshot_time END, v.sql,
  (SELECT t.value FROM ducklake_tag AS t
   WHERE t.object_id = v.view_id AND t.key = :key AND t.begin_snapshot <= v.begin_snapshot
     AND (t.end_snapshot IS NULL OR t.end_snapshot > v.begin_snapshot) LIMIT 1)
FROM ducklake_view AS v LEFT JOIN ducklake_snapshot AS s ON s.snapshot_id = v.begin_snapshot
WHERE v.view_id = :view_id AND v.begin_snapshot <= :snapshot_id
ORDER BY v.begin_snapshot"""


def view_texts(snapshot_id: int, view_id: int) -> Statement[list[ViewText]]:
    """The texts that a view had up to a snapshot, oldest first; a name has a row of its own."""
    return select(ViewText, VIEW_TEXTS, snapshot_id=snapshot_id, view_id=view_id, key=VIEW_VERSION)
