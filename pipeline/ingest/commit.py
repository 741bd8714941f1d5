"""Commits one job as one DuckLake snapshot, in one PostgreSQL transaction.

The order of the steps matters. First the id of the new snapshot is claimed: every DuckLake writer
inserts that row, so until this transaction ends no other writer commits, and what is read after it
stays true. Then the checks: whether the job has been committed before, whether the table is still
as planned, whether the rows to be overwritten have changed. Everything else is written after them.
"""

import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.ducklake import queries, writes
from polynya.ducklake.column_tree import leaves
from polynya.ducklake.connection.catalog_connection import ConnectionLost, run_batched
from polynya.ducklake.rows.objects import Layout, quoted
from polynya.ducklake.writes.files import NewDataFile
from polynya.ducklake.writes.snapshots import Snapshot
from polynya.ducklake.writes.stats import widened
from polynya.runtime.namespaces import dotted

from ..common.database import sqlstate
from ..common.errors import BadInput, Conflict, Unavailable
from . import catalog
from .catalog import LiveFile
from .planning import Plan
from .summary import Mode

TRIES = 60
LONGEST_PAUSE = 2.0
"""The seconds between two tries, at most."""
RETRYABLE_SQLSTATES = {"23505", "40001", "40P01", "42703"}
"""unique_violation (another writer claimed the snapshot's id), serialization_failure, deadlock,
undefined_column (the catalog was migrated)."""


@dataclass(frozen=True, slots=True)
class Committed:
    """The result of a commit."""

    snapshot_id: int
    already: bool
    """An earlier run with the same token committed this snapshot; this run has written nothing."""
    retries: int = 0
    ended_files: int = 0
    ended_inlined_rows: int = 0


def commit(
    connect: Callable[[], Connection],
    plan: Plan,
    files: list[NewDataFile],
    con: Connection | None = None,
) -> Committed:
    """Commit; retries with new ids if another writer was faster.

    Args:
        connect: opens a connection, if there is none or it was lost.

    Raises:
        Conflict: another writer changed what the job relies on; nothing is written.
        BadInput: partitions of the table cannot be overwritten; nothing is written.
        Unavailable: the database does not answer; it is unknown whether the commit took place.
        DatabaseError: the database refuses a statement; nothing is written.
    """
    for retries in range(TRIES):
        try:
            con = con or connect()
            return replace(_transaction(con, plan, files), retries=retries)
        except DatabaseError as error:
            if sqlstate(error) not in RETRYABLE_SQLSTATES:
                raise
        except (ConnectionLost, Unavailable):
            # The connection may have been lost after COMMIT: then the next try finds the token.
            con = None
        time.sleep(random.uniform(0.5, 1) * min(LONGEST_PAUSE, 0.05 * 1.5**retries))
    raise Unavailable(
        f"no commit within {TRIES} tries: other writers were faster each time, or the database is "
        "unavailable; run the job again with the same token"
    )


def _transaction(con: Connection, plan: Plan, files: list[NewDataFile]) -> Committed:
    con.run("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        done = _write_snapshot(con, plan, files)
        con.run("ROLLBACK" if done.already else "COMMIT")
        return done
    except BaseException:
        with suppress(DatabaseError, ConnectionLost):
            con.run("ROLLBACK")
        raise


@dataclass(frozen=True, slots=True)
class _Target:
    """The snapshot that is being written, and the ids of its table."""

    before: Snapshot
    snapshot: Snapshot
    table_id: int
    partition_id: int | None
    layout: Layout
    """The columns that DuckLake's tables have in this version of the catalog."""


def _write_snapshot(con: Connection, plan: Plan, files: list[NewDataFile]) -> Committed:
    before, lake = run_batched(con, writes.snapshots.newest(), queries.lake())
    target = _target(before, plan, files, lake.layout)
    writes.snapshots.insert_snapshot(con, target.snapshot)
    if (done := catalog.committed(con, plan.spec.token)) is not None:
        return Committed(done, already=True)
    _check_unchanged(con, plan)
    if plan.table is None:
        _create(con, target, plan)
    elif plan.new_columns:
        _evolve(con, target, plan)
    ended_files, ended_rows = _end(con, target, plan, files)
    if files:
        _register(con, target, plan, files)
    snapshot_id, spec = target.snapshot.snapshot_id, plan.spec
    changes = _changes_made(plan, target.table_id, files, ended_files, ended_rows)
    writes.snapshots.changes(con, snapshot_id, changes, spec.token, spec.author, spec.message)
    return Committed(
        snapshot_id, already=False, ended_files=ended_files, ended_inlined_rows=ended_rows
    )


def _target(before: Snapshot, plan: Plan, files: list[NewDataFile], layout: Layout) -> _Target:
    created = 0 if plan.table else 1 + bool(plan.partition_keys)
    snapshot = Snapshot(
        before.snapshot_id + 1,
        before.schema_version + bool(created or plan.new_columns),
        before.next_catalog_id + created,
        before.next_file_id + len(files),
    )
    if plan.table is not None:
        ids = plan.table.table_id, plan.table.partition_id
        return _Target(before, snapshot, *ids, layout)
    table_id = before.next_catalog_id
    partition_id = table_id + 1 if plan.partition_keys else None
    return _Target(before, snapshot, table_id, partition_id, layout)


def _check_unchanged(con: Connection, plan: Plan) -> None:
    """Compare the table with the one that the job was planned with.

    DuckLake's own writers conflict with any ALTER of the table; here a comment or a sort order
    conflicts with nothing.

    Raises:
        Conflict: schema, table, columns or partitioning have changed.
    """
    try:
        schema = catalog.schema(con, catalog.lake(con), plan.schema.namespace)
    except BadInput as error:
        raise Conflict(f"while the job ran: {error}") from None
    if schema != plan.schema:
        raise Conflict(
            f"the schema {dotted(*plan.schema.namespace)} was recreated while the job ran"
        )
    table = catalog.table(con, schema, plan.name.table_name)
    if table == plan.table:
        return
    if plan.table is None:
        raise Conflict(f"the table {plan.name} was created by another writer while the job ran")
    what = "dropped or renamed" if table is None else "altered"
    raise Conflict(f"the table {plan.name} was {what} while the job ran; run it again")


def _create(con: Connection, target: _Target, plan: Plan) -> None:
    snapshot_id, table_id = target.snapshot.snapshot_id, target.table_id
    schema_id, name = plan.schema.schema_id, plan.name.table_name
    writes.tables.add(con, snapshot_id, schema_id, table_id, plan.table_uuid, name, plan.path)
    writes.tables.add_columns(con, snapshot_id, table_id, plan.new_columns)
    writes.tables.add_comments(con, snapshot_id, table_id, plan.spec.comment, plan.columns)
    writes.tables.add_schema_version(con, target.snapshot, table_id)
    if target.partition_id is not None:
        keys = plan.partition_keys
        writes.tables.add_partitioning(con, snapshot_id, table_id, target.partition_id, keys)


def _evolve(con: Connection, target: _Target, plan: Plan) -> None:
    snapshot, table_id = target.snapshot, target.table_id
    writes.tables.add_columns(con, snapshot.snapshot_id, table_id, plan.new_columns)
    writes.tables.add_schema_version(con, snapshot, table_id)
    for newest in catalog.inlined_tables(con, table_id)[-1:]:
        writes.inlined.add_table(con, snapshot, table_id, newest, plan.columns, target.layout)


def _end(con: Connection, target: _Target, plan: Plan, files: list[NewDataFile]) -> tuple[int, int]:
    """End what is overwritten; gives the numbers of ended files and of ended inlined rows."""
    if plan.spec.mode == Mode.APPEND or plan.table is None:
        return 0, 0
    table_id, snapshot_id = target.table_id, target.snapshot.snapshot_id
    inlined = catalog.inlined_begins(con, table_id)
    live = catalog.live_files(con, table_id)
    if plan.spec.mode == Mode.OVERWRITE_PARTITIONS:
        live = _in_partitions(plan, live, inlined, files)
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
    writes.files.end(con, snapshot_id, ids)
    names = catalog.inlined_tables(con, table_id) if inlined else []
    return len(ids), writes.inlined.end_rows(con, snapshot_id, names)


def _in_partitions(
    plan: Plan, live: list[LiveFile], inlined: list[int], files: list[NewDataFile]
) -> list[LiveFile]:
    """The live files of the partitions that the new `files` belong to."""
    assert plan.table is not None
    if inlined:
        raise BadInput(
            f"{plan.name} has inlined rows, for which the catalog has no partition values: "
            "CALL ducklake_flush_inlined_data first"
        )
    if any(file.partition_id != plan.table.partition_id for file in live):
        raise BadInput(
            f"{plan.name} has files of an older partitioning, whose partitions cannot be "
            "overwritten: use the mode overwrite"
        )
    partitions = {file.partition_values for file in files}
    return [file for file in live if file.partition_values in partitions]


def _register(con: Connection, target: _Target, plan: Plan, files: list[NewDataFile]) -> None:
    table_id, first_file_id = target.table_id, target.before.next_file_id
    stats = writes.stats.of_table(table_id).run(con)
    next_row_id = stats[1] if stats else 0
    ids = (target.snapshot.snapshot_id, table_id, target.partition_id, first_file_id, next_row_id)
    writes.files.add(con, *ids, files, target.layout)
    rows = sum(file.record_count for file in files)
    sums = writes.stats.wider(stats, rows, rows, sum(file.file_size_bytes for file in files))
    writes.stats.set_of_table(con, table_id, sums, is_new=stats is None)
    before = queries.table_column_stats(table_id).run(con)
    new_ids = {leaf.column_id for leaf in leaves(new.column for new in plan.new_columns)}
    covering = widened(before, plan.columns, files, had_rows=next_row_id > 0, new_ids=new_ids)
    writes.stats.set_of_columns(con, table_id, covering, target.layout)


def _changes_made(
    plan: Plan, table_id: int, files: list[NewDataFile], ended_files: int, ended_rows: int
) -> str:
    """`changes_made` as DuckLake's own writers write it: their conflict checks read it."""
    name = quoted(*plan.schema.namespace, plan.name.table_name)
    changes = [
        (plan.table is None, f"created_table:{name}"),
        (plan.table is not None and plan.new_columns, f"altered_table:{table_id}"),
        (files, f"inserted_into_table:{table_id}"),
        (ended_files, f"deleted_from_table:{table_id}"),
        (ended_rows, f"inlined_delete:{table_id}"),
    ]
    return ",".join(text for has_change, text in changes if has_change)
