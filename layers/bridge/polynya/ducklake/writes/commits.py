"""The rows of `polynya_commits`: what Iceberg clients committed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pg8000.native import Connection

from ..connection.statements import Statement, known
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


LANDED = """
SELECT count(*) FROM polynya_commits AS c
WHERE c.table_uuid = CAST(:table_uuid AS uuid)
  AND c.client_snapshot_id = ANY(CAST(:client_snapshot_ids AS bigint[]))"""


def landed(table_uuid: str, client_snapshot_ids: Sequence[int]) -> Statement[bool]:
    """Whether the commit with these Iceberg snapshots has taken place."""
    if not client_snapshot_ids:
        return known(False)
    parameters = {"table_uuid": table_uuid, "client_snapshot_ids": list(client_snapshot_ids)}
    return Statement(LANDED, parameters, lambda rows: rows[0][0] == len(client_snapshot_ids))
