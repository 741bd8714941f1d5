"""The rows of `polynya_commits`: what Iceberg clients committed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pg8000.native import Connection

from ..connection.statements import Statement, known, select
from .copy import copy

COLUMNS = (
    *("table_uuid", "client_snapshot_id", "snapshot_id", "position", "operation", "summary"),
    *("idempotency_key", "principal", "route", "body_hash"),
)


@dataclass(frozen=True, slots=True)
class CommitRow:
    """A row of polynya_commits, without DuckLake's snapshot."""

    table_uuid: str
    client_snapshot_id: int | None
    position: int
    operation: str | None
    summary: str | None
    idempotency_key: str | None = None
    principal: str | None = None
    route: str | None = None
    body_hash: str | None = None


def add(con: Connection, snapshot_id: int, rows: Iterable[CommitRow]) -> None:
    """Record commits at a snapshot."""
    values = [
        (
            *(row.table_uuid, row.client_snapshot_id, snapshot_id, row.position),
            *(row.operation, row.summary, row.idempotency_key),
            *(row.principal, row.route, row.body_hash),
        )
        for row in rows
    ]
    copy(con, "polynya_commits", COLUMNS, values)


OF_KEY = """
SELECT c.table_uuid::text, c.client_snapshot_id, c.position, c.operation, c.summary,
  c.idempotency_key::text, c.principal, c.route, c.body_hash
FROM polynya_commits AS c WHERE c.idempotency_key = CAST(:idempotency_key AS uuid)
ORDER BY c.table_uuid, c.position"""


def of_key(idempotency_key: str) -> Statement[list[CommitRow]]:
    """The rows that a request with this key has written."""
    return select(CommitRow, OF_KEY, idempotency_key=idempotency_key)


LANDED = """
SELECT count(*) FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid)
  AND c.client_snapshot_id = ANY(CAST(:client_snapshot_ids AS bigint[]))"""

CREATED = """
SELECT count(*) FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid) AND c.position = 0"""


UUID_USED = """
SELECT EXISTS (SELECT FROM ducklake_table AS t WHERE t.table_uuid = CAST(:table_uuid AS uuid))
  OR EXISTS (SELECT FROM polynya_commits AS c WHERE c.table_uuid = CAST(:table_uuid AS uuid))"""


def uuid_was_used(table_uuid: str) -> Statement[bool]:
    """Whether a table has this uuid, or one that is gone has had it."""
    return Statement(UUID_USED, {"table_uuid": table_uuid}, lambda rows: bool(rows[0][0]))


def landed(
    table_uuid: str, client_snapshot_ids: Sequence[int], *, creates: bool
) -> Statement[bool]:
    """Whether a commit has taken place, as far as it can be recognised.

    Args:
        client_snapshot_ids: of the Iceberg snapshots that it adds.
        creates: it creates the table, under a uuid that the client has chosen.
    """
    ids = list(client_snapshot_ids)
    if ids:
        parameters = {"table_uuid": table_uuid, "client_snapshot_ids": ids}
        return Statement(LANDED, parameters, lambda rows: rows[0][0] == len(ids))
    if creates:
        return Statement(CREATED, {"table_uuid": table_uuid}, lambda rows: rows[0][0] > 0)
    return known(False)
