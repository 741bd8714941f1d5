"""Commits one job as one DuckLake snapshot, in the way of an Iceberg client's commit.

The order of the steps matters: the id of the new snapshot is claimed, then it is checked whether
the job has been committed before, whether the table is still as planned, and whether the rows to be
overwritten have changed. Everything else is written after these checks (decision 17).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.commits import attempts
from polynya.commits.plan.table_plan import RowDeletes
from polynya.commits.write.plans import write_plans
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import ConnectionLost, sqlstate, transaction
from polynya.ducklake.connection.database import OVERTAKEN
from polynya.ducklake.writes.new_files import NewDataFile
from polynya.ducklake.writes.new_snapshot import NewSnapshot, claim_snapshot_id
from polynya.runtime.errors import CommitFailed, ConcurrentCommit, Refused

from ..common.errors import BadInput, Conflict, Unavailable
from . import catalog
from .catalog import LiveFile
from .planning import Plan
from .summary import Mode

LONGEST_PAUSE = 2.0
"""The longest pause between two tries, in seconds."""

# What is read after the claim must be newer than the claim.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"


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
    tries = 0

    def attempt() -> Committed:
        nonlocal con, tries
        tries += 1
        try:
            con = con or connect()
            return _transaction(con, plan, files)
        except DatabaseError as error:
            if sqlstate(error) not in OVERTAKEN:
                raise
        except (ConnectionLost, Unavailable):
            # The connection may have been lost after COMMIT: then the next try finds the token.
            con = None
        raise ConcurrentCommit("another writer was faster, or the database does not answer")

    try:
        return replace(attempts.commit(attempt, LONGEST_PAUSE), retries=tries - 1)
    except CommitFailed:
        raise Unavailable(
            f"no commit within {tries} tries: other writers were faster each time, or the database "
            "is unavailable; run the job again with the same token"
        ) from None


def _transaction(con: Connection, plan: Plan, files: list[NewDataFile]) -> Committed:
    with transaction(con, BEGIN):
        # The claim is first: every DuckLake writer inserts this row, so no other writer commits
        # until this transaction ends, and what is read from here on stays true.
        try:
            # The job's role may have grants only; it then owns the tables that it creates.
            snapshot = claim_snapshot_id(con, needs_owner=False)
        except Refused as error:  # the catalog has been migrated since the job was planned
            raise Conflict(f"while the job ran: {error}") from None
        if (done := catalog.committed(con, plan.spec.token)) is not None:
            # The claimed row is rolled back too: nothing is committed.
            con.run("ROLLBACK")
            return Committed(done, already=True)
        return _write(snapshot, plan, files)


def _write(snapshot: NewSnapshot, plan: Plan, files: list[NewDataFile]) -> Committed:
    con, spec = snapshot.con, plan.spec
    _check_unchanged(con, plan)
    ended_files, ended_rows = _overwritten(con, plan, files)
    deletes = RowDeletes(files=ended_files)
    write_plans(snapshot, [replace(plan.changes, added=files, deletes=deletes)])
    snapshot.finish(spec.author, spec.message, spec.token)
    return Committed(
        snapshot.snapshot_id,
        already=False,
        ended_files=len(ended_files),
        ended_inlined_rows=ended_rows,
    )


def _check_unchanged(con: Connection, plan: Plan) -> None:
    """Compare the table with the one that the job was planned with.

    Raises:
        Conflict: schema, table, columns or partitioning have changed.
    """
    try:
        lake = catalog.lake(con)
        schema = catalog.schema(con, lake, plan.schema.namespace)
    except BadInput as error:
        raise Conflict(f"while the job ran: {error}") from None
    if (lake.data_path, schema) != (plan.lake.data_path, plan.schema):
        raise Conflict(f"the schema {plan.schema.full_name} was recreated while the job ran")
    table = catalog.table(con, lake, schema, plan.name.table_name)
    # DuckLake's own writers conflict with any ALTER of the table; here a comment or a sort order,
    # which `Table` does not have, conflicts with nothing.
    if table == plan.table:
        return
    if plan.table is None:
        raise Conflict(f"the table {plan.name} was created by another writer while the job ran")
    what = "dropped or renamed" if table is None else "altered"
    raise Conflict(f"the table {plan.name} was {what} while the job ran; run it again")


def _overwritten(con: Connection, plan: Plan, files: list[NewDataFile]) -> tuple[list[int], int]:
    """The ids of the data files that end, and the number of inlined rows that end.

    Raises:
        BadInput: as `_partition_files`.
        Conflict: some of them were changed while the job ran.
    """
    if plan.spec.mode == Mode.APPEND or plan.table is None:
        return [], 0
    table_id = plan.table.table_id
    stored = queries.inlined(plan.lake, table_id, 0).run(con)
    inlined = catalog.live_inlined_rows(con, stored)
    live = catalog.live_files(con, table_id)
    if plan.spec.mode == Mode.OVERWRITE_PARTITIONS:
        live = _partition_files(plan, live, inlined.count, files)
    ids = [file.data_file_id for file in live]
    newest = max([inlined.newest, *(file.newest for file in live)])
    if ids:
        newest = max(newest, catalog.newest_inlined_delete(con, stored, table_id, ids))
    # The job replaces the rows of that snapshot: it would delete later ones unknown to it.
    if newest > plan.lake.snapshot_id:
        raise Conflict(
            f"rows of {plan.name} that were to be overwritten were changed while the job ran "
            f"(snapshot {newest}; the job began at {plan.lake.snapshot_id}); run it again"
        )
    return ids, inlined.count


def _partition_files(
    plan: Plan, live: list[LiveFile], inlined_rows: int, files: list[NewDataFile]
) -> list[LiveFile]:
    """The live files of the partitions that the new `files` belong to.

    Raises:
        BadInput: the table has inlined rows, or files of an older partitioning.
    """
    if inlined_rows:
        raise BadInput(
            f"{plan.name} has inlined rows, for which the catalog has no partition values: "
            "CALL ducklake_flush_inlined_data first"
        )
    keys = plan.table.partition_keys if plan.table is not None else ()
    if any(file.partition_keys != keys for file in live):
        raise BadInput(
            f"{plan.name} has files of an older partitioning, whose partitions cannot be "
            "overwritten: use the mode overwrite"
        )
    partitions = {file.partition_values for file in files}
    return [file for file in live if file.partition_values in partitions]
