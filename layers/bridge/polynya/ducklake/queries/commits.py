"""What Iceberg clients committed to a table."""

from ..connection.statements import Statement, known, select
from ..rows.commits import ClientSnapshot
from ..rows.lake import Lake

COMMITS = """
SELECT c.snapshot_id, c.position, c.client_snapshot_id,
  CASE WHEN c.snapshot_id >= :since THEN c.operation END,
  CASE WHEN c.snapshot_id >= :since THEN c.summary END
FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid) AND c.snapshot_id <= :snapshot_id
ORDER BY c.snapshot_id, c.position"""


def has_commits(lake: Lake) -> bool:
    """Whether the catalog has the table of commits."""
    return "polynya_commits.table_uuid" in lake.layout


def client_snapshots(
    lake: Lake, table_uuid: str, snapshot_id: int, since: int
) -> Statement[list[ClientSnapshot]]:
    """The commits to a table up to a snapshot, in order.

    Args:
        since: the first snapshot whose operation and summary are read.
    """
    if not has_commits(lake):
        return known([])
    parameters = {"table_uuid": table_uuid, "snapshot_id": snapshot_id, "since": since}
    return select(ClientSnapshot, COMMITS, **parameters)
