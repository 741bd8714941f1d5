"""Rows of DuckLake's tables: inserted, copied, and ended at a snapshot.

The row of a snapshot is the lock of all writers; another one lists what it changed.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass

from pg8000.native import Connection, identifier

from ..connection.catalog_connection import Statement
from ..rows.objects import ALL, Layout

ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def copy(
    con: Connection,
    table_name: str,
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    layout: Layout = ALL,
) -> None:
    """Insert rows, in the order of the columns `names`.

    Args:
        layout: what the catalog has; columns that it lacks are left out.

    Raises:
        DatabaseError: the database refuses them.
    """
    if not rows:
        return
    names, rows = layout.rows(table_name, names, rows)
    # Most values are numbers, which need no call.
    lines = (
        "\t".join([str(value) if type(value) is int else _text(value) for value in row]) + "\n"
        for row in rows
    )
    columns = ", ".join(map(identifier, names))
    stream = io.BytesIO("".join(lines).encode())
    # 10,000 files with their statistics take half a second with COPY, and a minute with INSERT.
    con.run(f"COPY {identifier(table_name)} ({columns}) FROM STDIN", stream=stream)


def _text(value: object) -> str:
    if value is None:
        return r"\N"
    if isinstance(value, bool):
        return "t" if value else "f"
    text = value if isinstance(value, str) else str(value)
    # Most texts need no escapes, and looking for them is quicker than translating.
    is_plain = text.isprintable() and "\\" not in text
    return text if is_plain else text.translate(ESCAPES)


def insert(con: Connection, table_name: str, /, **values: object) -> None:
    """Insert one row, whose columns have these values."""
    # With a prefix, because `run` has parameters of its own: ducklake_view has a column `sql`.
    parameters = {f"new_{name}": value for name, value in values.items()}
    columns = f"({', '.join(values)}) VALUES (:{', :'.join(parameters)})"
    con.run(f"INSERT INTO {table_name} {columns}", **parameters)


def end_live(con: Connection, snapshot_id: int, table_name: str, /, **keys: object) -> int:
    """End the live rows of a table at a snapshot; return their number.

    Args:
        keys: the columns by which they are selected, each with a value or a list of values.
    """
    conditions = [
        f"{name} = ANY(:{name})" if isinstance(value, list) else f"{name} = :{name}"
        for name, value in keys.items()
    ]
    # A row that has ended keeps its end, which older snapshots need.
    where = " AND ".join([*conditions, "end_snapshot IS NULL"])
    con.run(
        f"UPDATE {table_name} SET end_snapshot = :snapshot_id WHERE {where}",
        snapshot_id=snapshot_id,
        **keys,
    )
    count: int = con.row_count
    return count


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


def newest_snapshot() -> Statement[Snapshot]:
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


def insert_changes(
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
