"""One job as one DuckLake snapshot, in one PostgreSQL transaction.

The order matters. First the new snapshot's id is claimed: every DuckLake writer has to insert that
row, so until our transaction ends nobody else commits, and all that is read after it stays true.
Then come the questions: has this job been here before, is the table still what the job planned
with, has anybody touched what an overwrite is to end. Only then is anything else written.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.ducklake.connection.catalog_connection import ConnectionLost

from ..common.columns import Added, Column, added, leaves
from ..common.database import sqlstate
from ..common.errors import BadInput, Conflict, Unavailable
from ..common.modes import APPEND, OVERWRITE_PARTITIONS
from . import catalog, writes
from .catalog import LiveFile, Schema, Table, TableName
from .parquet_files import WrittenFile
from .partitions import PartitionKey
from .spec import IngestSpec
from .statistics import widened
from .writes.snapshots import Snapshot

TRIES = 60
LONGEST_PAUSE = 2.0
RETRYABLE_SQLSTATES = {"23505", "40001", "40P01"}
"""unique_violation (another writer had the snapshot's id), serialization_failure, deadlock."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job is going to commit, but for the files."""

    spec: IngestSpec
    base_snapshot: int
    schema: Schema
    table: Table | None
    """As it was found; None: it is to be created."""
    columns: tuple[Column, ...]
    """As they will be."""
    partition_keys: tuple[PartitionKey, ...]
    table_uuid: str
    """Of a table that is to be created."""
    path: str
    """Likewise."""

    @property
    def name(self) -> TableName:
        return self.spec.name

    @property
    def new_columns(self) -> list[Added]:
        """Those that the table does not have yet: all when it is not there."""
        return list(added(self.columns, self.table.last_column_id if self.table else 0))


@dataclass(frozen=True, slots=True)
class Committed:
    snapshot_id: int
    already: bool
    """An earlier run with the same token has made it; this one has written nothing."""
    retries: int = 0
    ended_files: int = 0
    ended_inlined_rows: int = 0


def commit(
    connect: Callable[[], Connection],
    plan: Plan,
    files: list[WrittenFile],
    con: Connection | None = None,
) -> Committed:
    """Commit, with new ids as often as another writer was quicker.

    Args:
        connect: opens a connection, for when the one that was used is lost.

    Raises:
        Conflict: somebody has changed what the job relied on; nothing is written.
        Unavailable: the database cannot be reached; nobody knows whether the commit took place.
    """
    for retries in range(TRIES):
        try:
            con = con or connect()
            return replace(_transaction(con, plan, files), retries=retries)
        except DatabaseError as error:
            if sqlstate(error) not in RETRYABLE_SQLSTATES:
                raise
        except (ConnectionLost, Unavailable):
            # Perhaps after the COMMIT: the next try finds the token then.
            con = None
        time.sleep(random.uniform(0.5, 1) * min(LONGEST_PAUSE, 0.05 * 1.5**retries))
    raise Unavailable(
        f"no commit within {TRIES} tries: other writers were quicker each time, or the database is "
        "away; run the job again, with its token"
    )


def _transaction(con: Connection, plan: Plan, files: list[WrittenFile]) -> Committed:
    con.run("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        done = _within(con, plan, files)
        con.run("ROLLBACK" if done.already else "COMMIT")
        return done
    except BaseException:
        with suppress(DatabaseError, ConnectionLost):
            con.run("ROLLBACK")
        raise


def _within(con: Connection, plan: Plan, files: list[WrittenFile]) -> Committed:
    before = writes.snapshots.newest(con)
    snapshot = _next(before, plan, files)
    writes.snapshots.claim(con, snapshot)
    if (done := catalog.committed(con, plan.spec.token)) is not None:
        return Committed(done, already=True)
    _check_unchanged(con, plan)
    table_id = plan.table.table_id if plan.table else before.next_catalog_id
    partition_id = plan.table.partition_id if plan.table else None
    if plan.partition_keys and plan.table is None:
        partition_id = table_id + 1
    if plan.table is None:
        _create(con, snapshot, plan, table_id, partition_id)
    elif plan.new_columns:
        writes.tables.add_columns(con, snapshot.snapshot_id, table_id, plan.new_columns)
        writes.tables.add_schema_version(con, snapshot, table_id)
        for newest in catalog.inlined_tables(con, table_id)[-1:]:
            writes.inlined.add_table(con, snapshot, table_id, newest, plan.columns)
    ended_files, ended_rows = _end(con, snapshot, plan, table_id, files)
    if files:
        _register(con, before, snapshot, plan, table_id, partition_id, files)
    made = _changes(plan, table_id, files, ended_files, ended_rows)
    spec = plan.spec
    writes.snapshots.changes(con, snapshot.snapshot_id, made, spec.token, spec.author, spec.message)
    return Committed(
        snapshot.snapshot_id,
        already=False,
        ended_files=ended_files,
        ended_inlined_rows=ended_rows,
    )


def _next(before: Snapshot, plan: Plan, files: list[WrittenFile]) -> Snapshot:
    created = 0 if plan.table else 1 + bool(plan.partition_keys)
    return Snapshot(
        before.snapshot_id + 1,
        before.schema_version + bool(created or plan.new_columns),
        before.next_catalog_id + created,
        before.next_file_id + len(files),
    )


def _check_unchanged(con: Connection, plan: Plan) -> None:
    """More exact than DuckLake's own rule, which knows only that a table was altered: here a
    comment or a sort order conflicts with nothing."""
    try:
        schema = catalog.schema(con, catalog.lake(con), plan.schema.schema_name)
    except BadInput as error:
        raise Conflict(f"while the job ran: {error}") from None
    if schema != plan.schema:
        raise Conflict(f"the schema {plan.schema.schema_name} was made anew while the job ran")
    table = catalog.table(con, schema, plan.name.table_name)
    if table == plan.table:
        return
    if plan.table is None:
        raise Conflict(f"the table {plan.name} was created by somebody else while the job ran")
    what = "dropped or renamed" if table is None else "altered"
    raise Conflict(f"the table {plan.name} was {what} while the job ran; run it again")


def _create(
    con: Connection, snapshot: Snapshot, plan: Plan, table_id: int, partition_id: int | None
) -> None:
    at = snapshot.snapshot_id
    schema_id, name = plan.schema.schema_id, plan.name.table_name
    writes.tables.add(con, at, schema_id, table_id, plan.table_uuid, name, plan.path)
    writes.tables.add_columns(con, at, table_id, plan.new_columns)
    writes.tables.add_comments(con, at, table_id, plan.spec.comment, plan.columns)
    writes.tables.add_schema_version(con, snapshot, table_id)
    if partition_id is not None:
        writes.tables.add_partitioning(con, at, table_id, partition_id, plan.partition_keys)


def _end(
    con: Connection, snapshot: Snapshot, plan: Plan, table_id: int, files: list[WrittenFile]
) -> tuple[int, int]:
    """End what is overwritten; gives the number of files and of inlined rows."""
    if plan.spec.mode == APPEND or plan.table is None:
        return 0, 0
    inlined = catalog.inlined_begins(con, table_id)
    live = catalog.live_files(con, table_id)
    if plan.spec.mode == OVERWRITE_PARTITIONS:
        live = _of_partitions(plan, live, inlined, files)
        inlined = []
    ids = [file.data_file_id for file in live]
    newest = max([*inlined, *(file.newest for file in live)], default=0)
    if ids:
        newest = max(newest, catalog.newest_inlined_delete(con, table_id, ids))
    if newest > plan.base_snapshot:
        raise Conflict(
            f"rows of {plan.name} that were to be overwritten were changed while the job ran "
            f"(snapshot {newest}; the job began at {plan.base_snapshot}); run it again"
        )
    writes.files.end(con, snapshot.snapshot_id, ids)
    rows = 0
    if inlined:
        names = catalog.inlined_tables(con, table_id)
        rows = writes.inlined.end_rows(con, snapshot.snapshot_id, names)
    return len(ids), rows


def _of_partitions(
    plan: Plan, live: list[LiveFile], inlined: list[int], files: list[WrittenFile]
) -> list[LiveFile]:
    """The live files of the partitions that `files` are of."""
    assert plan.table is not None
    if inlined:
        raise BadInput(
            f"{plan.name} has inlined rows, whose partitions stand nowhere: "
            "CALL ducklake_flush_inlined_data first"
        )
    if any(file.partition_id != plan.table.partition_id for file in live):
        raise BadInput(
            f"{plan.name} has files that are partitioned otherwise than the table is now: their "
            "partitions cannot be overwritten; use the mode overwrite"
        )
    partitions = {file.partition_values for file in files}
    return [file for file in live if file.partition_values in partitions]


def _register(
    con: Connection,
    before: Snapshot,
    snapshot: Snapshot,
    plan: Plan,
    table_id: int,
    partition_id: int | None,
    files: list[WrittenFile],
) -> None:
    stats = writes.stats.of_table(con, table_id)
    records, next_row_id, size = stats or (0, 0, 0)
    writes.files.add(
        con, snapshot.snapshot_id, table_id, partition_id, before.next_file_id, next_row_id, files
    )
    rows = sum(file.record_count for file in files)
    size += sum(file.file_size_bytes for file in files)
    sums = (records + rows, next_row_id + rows, size)
    writes.stats.set_of_table(con, table_id, sums, is_new=stats is None)
    known = writes.stats.of_columns(con, table_id)
    of_files = list(zip(*(file.stats for file in files), strict=True))  # by leaf
    news = zip(leaves(plan.columns), of_files, strict=True)
    new_ids = {leaf.column_id for leaf in leaves(new.column for new in plan.new_columns)}
    covering = []
    for leaf, found in news:
        # Rows that were there before a column was have a NULL in it, and no more is to be known.
        is_late = leaf.column_id in new_ids and records > 0
        row = widened(known.get(leaf.column_id), leaf, list(found), records > 0 and not is_late)
        covering.append(replace(row, contains_null=True) if is_late else row)
    writes.stats.set_of_columns(con, table_id, covering)


def _changes(
    plan: Plan, table_id: int, files: list[WrittenFile], ended_files: int, ended_rows: int
) -> str:
    """`changes_made`, as DuckLake's own writers say it: their conflict rules go by it."""
    quoted = ".".join('"' + n.replace('"', '""') + '"' for n in _names(plan))
    made = [
        (plan.table is None, f"created_table:{quoted}"),
        (plan.table is not None and plan.new_columns, f"altered_table:{table_id}"),
        (files, f"inserted_into_table:{table_id}"),
        (ended_files, f"deleted_from_table:{table_id}"),
        (ended_rows, f"inlined_delete:{table_id}"),
    ]
    return ",".join(text for is_so, text in made if is_so)


def _names(plan: Plan) -> tuple[str, str]:
    return plan.schema.schema_name, plan.name.table_name
