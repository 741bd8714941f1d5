"""The snapshots that touched a table."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ..changes import MOST_CHARACTERS, changes_of
from ..connection.statements import Rows, Statement, select
from ..rows.lake import Lake, Snapshot
from ..rows.named_objects import Table
from .commits import has_commits

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Python and Iceberg have neither infinite times nor all years of PostgreSQL.
IS_TIME = "s.snapshot_time BETWEEN '1970-01-01' AND '9999-12-31'"

# A number is read ten times as fast as a timestamp.
# 0 becomes the time of the snapshot before.
MICROS = f"""CASE WHEN {IS_TIME}
  THEN (extract(epoch FROM s.snapshot_time) * 1000000)::bigint ELSE 0 END"""

# One character more than is accepted: a text that was cut off is refused.
CHANGES_MADE = f"coalesce(left(c.changes_made, {MOST_CHARACTERS + 1}), '')"

# The snapshot before, and the ids of the files that were made since.
PREVIOUS = "coalesce(p.snapshot_id, s.snapshot_id - 1), p.next_file_id, s.next_file_id"
PREVIOUS_OF = """LEFT JOIN LATERAL (
  SELECT p.snapshot_id, p.next_file_id FROM ducklake_snapshot AS p
  WHERE p.snapshot_id < {0}.snapshot_id ORDER BY p.snapshot_id DESC LIMIT 1) AS p ON TRUE"""

# LIKE and the pattern are only a first filter: a name may contain the same characters.
# `changes.changes_of` decides. A creation or a renaming contains the table's name, not its id.
# Changes are filtered before the join: a lake has a million of them, the table a thousand.
SNAPSHOTS = f"""
WITH touched AS (
  SELECT begin_snapshot AS snapshot_id FROM ducklake_table WHERE table_id = :table_id
  UNION
  SELECT snapshot_id FROM ducklake_snapshot_changes
  WHERE snapshot_id >= :since AND changes_made LIKE '%:' || CAST(:table_id AS text) || '%'
    AND changes_made ~ (':' || CAST(:table_id AS text) || '(,|$)'){{or_committed}})
SELECT s.snapshot_id, {MICROS}, {CHANGES_MADE}, {PREVIOUS},
  EXISTS (SELECT FROM ducklake_table AS t
    WHERE t.table_id = :table_id AND t.begin_snapshot = s.snapshot_id){{is_commit}}
FROM touched JOIN ducklake_snapshot AS s USING (snapshot_id)
LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id)
{PREVIOUS_OF.format("s")}
WHERE s.snapshot_id >= greatest(:since, 1) AND s.snapshot_id <= :snapshot_id
ORDER BY s.snapshot_id DESC LIMIT :most"""

# An Iceberg commit without any change is a snapshot of the table too.
COMMITS_OF = "polynya_commits AS p WHERE p.table_uuid = CAST(:table_uuid AS uuid)"
WITH_COMMITS = {
    "or_committed": f"""
  UNION
  SELECT p.snapshot_id FROM {COMMITS_OF} AND p.snapshot_id >= :since""",
    "is_commit": f"""
  OR EXISTS (SELECT FROM {COMMITS_OF} AND p.snapshot_id = s.snapshot_id)""",
}
WITHOUT_COMMITS = dict.fromkeys(WITH_COMMITS, "")


def snapshots(
    lake: Lake, table: Table, snapshot_id: int, since: int, limit: int | None
) -> Statement[tuple[list[Snapshot], int]]:
    """Snapshots from `since` up to `snapshot_id` that touched the table, oldest first.

    Never snapshot 0: it only makes the schema `main`, and PyIceberg takes id 0 for "the newest".

    With a `limit` the newest so many, and one more, which is their parent; beside them the id of
    the oldest, or 0 if the list is complete.
    """
    most = None if limit is None else limit + 1

    def result(rows: Rows) -> tuple[list[Snapshot], int]:
        is_cut = most is not None and len(rows) == most
        found = [
            _snapshot(*row[:6]) for row in rows if row[6] or changes_of(row[2], table.table_id)
        ]
        return found[::-1], rows[-1][0] if is_cut else 0

    parameters: dict[str, Any] = {
        "table_id": table.table_id,
        "snapshot_id": snapshot_id,
        "since": since,
        "most": most,
    }
    if not has_commits(lake):
        return Statement(SNAPSHOTS.format(**WITHOUT_COMMITS), parameters, result)
    parameters |= {"table_uuid": table.table_uuid}
    return Statement(SNAPSHOTS.format(**WITH_COMMITS), parameters, result)


def _snapshot(
    snapshot_id: int,
    micros: int,
    changes_made: str,
    previous_id: int,
    first_file_id: int | None,
    end_file_id: int | None,
) -> Snapshot:
    time = EPOCH + timedelta(microseconds=micros)
    # Without both numbers nothing is known of the files that it made.
    ids = (first_file_id or 0, end_file_id or 0) if first_file_id is not None else (0, 0)
    return Snapshot(snapshot_id, time, changes_made, previous_id, *ids)


PREVIOUS_SNAPSHOT = """
SELECT coalesce(max(snapshot_id), CAST(:since AS bigint) - 1) FROM ducklake_snapshot
WHERE snapshot_id < :since"""


def previous_snapshot(snapshot_id: int) -> Statement[int]:
    """The newest snapshot before another one that has not expired; one less if there is none."""
    return Statement(PREVIOUS_SNAPSHOT, {"since": snapshot_id}, lambda rows: int(rows[0][0]))


NEXT_SNAPSHOTS = f"""
SELECT DISTINCT s.snapshot_id, s.micros, {CHANGES_MADE}, {PREVIOUS}
FROM unnest(CAST(:snapshot_ids AS bigint[])) AS wanted(snapshot_id)
CROSS JOIN LATERAL (
  SELECT s.snapshot_id, {MICROS} AS micros, s.next_file_id FROM ducklake_snapshot AS s
  WHERE s.snapshot_id >= wanted.snapshot_id AND s.snapshot_id <= :newest
  ORDER BY s.snapshot_id LIMIT 1) AS s
LEFT JOIN ducklake_snapshot_changes AS c ON c.snapshot_id = s.snapshot_id
{PREVIOUS_OF.format("s")}"""


def next_snapshots(snapshot_ids: list[int], newest: int) -> Statement[list[Snapshot]]:
    """For each id the first snapshot from it on that has not expired, up to `newest`."""
    return select(_snapshot, NEXT_SNAPSHOTS, snapshot_ids=snapshot_ids, newest=newest)
