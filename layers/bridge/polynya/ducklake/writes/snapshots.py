"""The row of a snapshot, which is the lock of all writers, and its list of changes."""

from dataclasses import dataclass

from pg8000.native import Connection

from ..connection.catalog_connection import Statement
from .rows import insert


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row of ducklake_snapshot: its id, and the next free ids after it."""

    snapshot_id: int
    schema_version: int
    next_catalog_id: int
    next_file_id: int


NEWEST = """
SELECT snapshot_id, schema_version, next_catalog_id, next_file_id
FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1"""


def newest() -> Statement[Snapshot]:
    """The row of the newest snapshot."""
    return Statement(NEWEST, {}, lambda rows: Snapshot(*rows[0]))


INSERT_SNAPSHOT = """
INSERT INTO ducklake_snapshot
  (snapshot_id, snapshot_time, schema_version, next_catalog_id, next_file_id)
VALUES (:snapshot_id, now(), :schema_version, :next_catalog_id, :next_file_id)"""


def insert_snapshot(con: Connection, snapshot: Snapshot) -> None:
    """Insert the snapshot's row.

    Its primary key is the lock: until the transaction ends, no other writer of the lake can
    commit, so what is read after it stays true.

    Raises:
        DatabaseError: another writer has committed a snapshot with this id (SQLSTATE 23505).
    """
    con.run(
        INSERT_SNAPSHOT,
        snapshot_id=snapshot.snapshot_id,
        schema_version=snapshot.schema_version,
        next_catalog_id=snapshot.next_catalog_id,
        next_file_id=snapshot.next_file_id,
    )


def changes(
    con: Connection,
    snapshot_id: int,
    changes_made: str,
    token: str | None,
    author: str | None,
    message: str | None,
) -> None:
    """Write the snapshot's row of ducklake_snapshot_changes."""
    insert(
        con,
        "ducklake_snapshot_changes",
        snapshot_id=snapshot_id,
        changes_made=changes_made,
        author=author,
        commit_message=message,
        commit_extra_info=token,
    )


# Since PostgreSQL 10; the functions of other names came with 13.
STATUS = "SELECT txid_status(CAST(:transaction_id AS bigint))"


def has_committed(transaction_id: int) -> Statement[bool | None]:
    """Whether a transaction took place; None: it has not ended, or is forgotten.

    https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-PG-SNAPSHOT
    """
    ended = {"committed": True, "aborted": False}
    return Statement(STATUS, {"transaction_id": transaction_id}, lambda rows: ended.get(rows[0][0]))
