"""Snapshots of the whole lake, newest first, with what their writers said of them."""

from datetime import timedelta

from ...connection.statements import Statement, select
from ...rows.lake import Lake
from ...rows.listing import Change
from ..fragments import fragment
from ..table_snapshots import EPOCH, MICROS

LONGEST_TEXT = 10_000
"""Characters of a text of the catalog that are read; a person reads less."""

CHANGES = f"""
SELECT s.snapshot_id, {MICROS},
  coalesce(left(c.changes_made, {LONGEST_TEXT}), ''),
  left({{author}}, {LONGEST_TEXT}), left({{commit_message}}, {LONGEST_TEXT})
FROM ducklake_snapshot AS s LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
WHERE {{condition}}
ORDER BY s.snapshot_id DESC LIMIT :most"""


def changes(lake: Lake, snapshot_id: int, most: int) -> Statement[list[Change]]:
    """The newest snapshots up to this one."""
    sql = _sql(lake, "s.snapshot_id <= :snapshot_id")
    return select(_change, sql, snapshot_id=snapshot_id, most=most)


def changes_at(lake: Lake, snapshot_ids: list[int]) -> Statement[list[Change]]:
    """These snapshots, as far as they have not expired."""
    sql = _sql(lake, "s.snapshot_id = ANY(CAST(:snapshot_ids AS bigint[]))")
    return select(_change, sql, snapshot_ids=snapshot_ids, most=len(snapshot_ids))


def _sql(lake: Lake, condition: str) -> str:
    names = {name: fragment(lake, name) for name in ("author", "commit_message")}
    return CHANGES.format(condition=condition, **names)


def _change(
    snapshot_id: int, micros: int, changes_made: str, author: str | None, message: str | None
) -> Change:
    time = EPOCH + timedelta(microseconds=micros)
    return Change(snapshot_id, time, changes_made, author, message)
