"""`ingest`: writes a DataFrame into a table of a DuckLake, as one snapshot, exactly once.

from polynya_pipeline.ingest.job import ingest
ingest(frame, "main.events", database="postgresql://…", token="events of 2026-11-20")

The names of all files of a job begin with a prefix that depends on its token alone, so a run finds
the files that earlier runs have left.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import ConnectionLost
from polynya.ducklake.rows.objects import Lake
from polynya.ducklake.writes.new_files import NewDataFile
from polynya.storage.s3_locations import is_s3

from ..common import storage
from ..common.database import connect, translate_errors
from ..common.errors import BadInput, Conflict, Unavailable
from ..common.progress import Reporter
from ..common.spark import translate_task_errors
from ..common.text_values import table_name
from . import catalog, planning
from .commit import Committed, commit
from .parquet_files import (
    PARTITION,
    SPARK_ROWS,
    FilePlan,
    add_partition,
    write_files,
    written_file,
)
from .planning import IngestSpec, Plan
from .summary import Mode, Summary


def write(frame: Any, plan: FilePlan, files: int | None) -> list[NewDataFile]:
    """Write the rows of a DataFrame; returns the files in the order of their future row ids.

    Args:
        files: the approximate number of files; None: one for each partition of the DataFrame.

    Raises:
        BadInput: a value does not fit its column.
        Unavailable: a file cannot be written.
        JobError: Spark failed.
    """
    from pyspark.sql.types import StringType, StructType

    # mapInArrow looks columns up by name, and does not find those with a dot.
    frame = frame.toDF(*map(str, range(len(frame.columns))))
    if plan.partition_keys:
        schema = StructType([*frame.schema.fields]).add(PARTITION, StringType())
        frame = frame.mapInArrow(partial(add_partition, plan=plan), schema)
        frame = frame.repartition(*([files] if files else []), PARTITION)
        # A task writes one file at a time.
        frame = frame.sortWithinPartitions(PARTITION)
    elif files:
        frame = frame.repartition(files)
    with translate_task_errors():
        # Evaluated only once: a second evaluation would write all files again.
        rows = frame.mapInArrow(partial(write_files, plan=plan), SPARK_ROWS).collect()
    return [written_file(row.asDict()) for row in rows]


def check_writable(plan: FilePlan) -> None:
    """Write and remove a small file, so that a job without rights fails before its work.

    Raises:
        Unavailable: the table's directory cannot be written to.
    """
    probe = f"{plan.location}{plan.file_prefix}probe"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe"
        source.write_bytes(b"PAR1")
        storage.move(source, probe)
    storage.remove([probe])


def locations(plan: FilePlan) -> Iterator[str]:
    """The files of this job, from all of its runs.

    Raises:
        Unavailable: the table's directory cannot be listed.
    """
    below = plan.location
    if not plan.partition_keys and is_s3(below):
        below += plan.file_prefix  # S3 lists by prefix, which is fast
    for location, _ in storage.list_files(below):
        if location.rpartition("/")[2].startswith(plan.file_prefix):
            yield location


def ingest(
    frame: Any,
    table: str,
    *,
    database: str,
    metadata_schema: str = "public",
    mode: str = Mode.APPEND,
    token: str | None = None,
    create: bool = False,
    partition_by: tuple[str, ...] = (),
    comment: str | None = None,
    evolve: bool = False,
    files: int | None = None,
    author: str | None = None,
    message: str | None = None,
    allow_empty: bool = False,
    remove_orphans: bool = False,
    dry_run: bool = False,
    reporter: Reporter | None = None,
) -> Summary:
    """Write a DataFrame into a table, in one PostgreSQL transaction.

    Args:
        frame: a DataFrame; or a function that gets the table as it is (`catalog.Table`, None if it
            does not exist) and returns a DataFrame.
        table: `schema.table`, with quotes around names that contain a dot.
        database: a URL or the ARN of a secret, see `common.database.connect`.
        mode: append, overwrite, overwrite-partitions.
        token: names the job; a second run with the same token changes nothing. None: a new one.
        create: create the table if it does not exist.
        partition_by: for a table that is created: `region`, `day(at)`, `bucket(8, id)`.
        evolve: add columns, and fields of structs, that the table lacks; write NULL for those that
            the DataFrame lacks.
        files: the approximate number of files; None: one for each partition of the DataFrame.
        allow_empty: overwrite even if the DataFrame has no rows.
        remove_orphans: first delete the files that earlier runs with this token have left.

    Raises:
        BadInput: the DataFrame or the options do not fit the table; nothing is written.
        Conflict: another writer changed what the job relies on, or the job is running already;
            nothing is written.
        Unavailable: PostgreSQL or the storage does not answer; the message says what is known.
        JobError: Spark failed; nothing is written.
    """
    spec = IngestSpec(
        table_name(table),
        uuid4().hex if token is None else token,
        mode=mode,
        create=create,
        partition_by=partition_by,
        comment=comment,
        evolve=evolve,
        author=author,
        message=message,
    )
    job = _Job(
        spec=spec,
        connect=partial(connect, database, metadata_schema, needs_session=True),  # for its lock
        files=files,
        allow_empty=allow_empty,
        remove_orphans=remove_orphans,
        dry_run=dry_run,
        reporter=reporter or Reporter(quiet=True),
    )
    with closing(_JobConnection(job.connect)) as connection, translate_errors(metadata_schema):
        return job.run(connection, frame)


@dataclass(frozen=True, slots=True)
class _Job:
    """A job's options, and its steps."""

    spec: IngestSpec
    connect: Callable[[], Connection] = field(repr=False)
    """Its repr contains the URL of the database."""
    files: int | None
    allow_empty: bool
    remove_orphans: bool
    dry_run: bool
    reporter: Reporter

    def run(self, connection: "_JobConnection", frame: Any) -> Summary:
        """All steps, unless the job was done before."""
        spec = self.spec
        summary = Summary(str(spec.name), spec.mode, spec.token, "dry-run")
        summary.file_prefix = planning.file_prefix(spec.token)
        _lock(connection.con, spec.token)
        lake = catalog.lake(connection.con)
        if (snapshot_id := catalog.committed(connection.con, spec.token)) is not None:
            summary.outcome, summary.snapshot_id = "already-committed", snapshot_id
            return summary
        frame, plan, file_plan = self._plan(connection.con, lake, frame)
        summary.created = plan.table is None
        summary.added_columns = [new.path for new in plan.added_columns]
        summary.location = file_plan.location
        if self.remove_orphans or self.dry_run:
            summary.orphans = list(locations(file_plan))
        if not self.dry_run:
            if self.remove_orphans:
                summary.orphans_removed = storage.remove(summary.orphans)
            self._write(connection, frame, plan, file_plan, summary)
        return summary

    def _plan(self, con: Connection, lake: Lake, frame: Any) -> tuple[Any, Plan, FilePlan]:
        """The DataFrame, what to commit, and how to write the files."""
        name = self.spec.name
        schema = catalog.schema(con, lake, name.namespace)
        table = catalog.table(con, lake, schema, name.table_name)
        if callable(frame):
            frame = frame(table)
        plan = planning.plan(frame.schema, lake, schema, table, self.spec)
        options = catalog.options(con, schema, table.table_id if table else -1)
        file_plan = planning.file_plan(plan, frame.columns, options)
        storage.check_scheme(file_plan.location)
        return frame, plan, file_plan

    def _write(
        self,
        connection: "_JobConnection",
        frame: Any,
        plan: Plan,
        file_plan: FilePlan,
        summary: Summary,
    ) -> None:
        """Write the files, and commit them; records the result in `summary`."""
        check_writable(file_plan)
        with _removed_on_failure(connection, file_plan):
            doing = f"Writing Parquet for {self.spec.name}"
            with self.reporter.spark_stage(doing, frame.sparkSession):
                files = write(frame, file_plan, self.files)
            if self._is_nothing_to_do(plan, files):
                summary.outcome = "nothing-to-do"
                return
            with self.reporter.stage(f"Committing {len(files)} files"):
                done = commit(self.connect, plan, files, connection.handed_over())
        _record(summary, files, done)
        # The commit that was found may be this run's own, if the answer to COMMIT was lost: then
        # the snapshot names these files.
        if done.already and files and not self._is_registered(plan, files[0]):
            storage.remove(file_plan.location + file.path for file in files)

    def _is_nothing_to_do(self, plan: Plan, files: list[NewDataFile]) -> bool:
        """Whether the job has nothing to commit.

        Raises:
            BadInput: the job would delete all rows that it overwrites, without `allow_empty`.
        """
        if files:
            return False
        if plan.spec.mode != Mode.APPEND and not self.allow_empty:
            raise BadInput(
                "the DataFrame has no rows, and the job would delete all rows that it overwrites: "
                "use --allow-empty if this is intended"
            )
        return plan.spec.mode == Mode.APPEND and plan.changes.is_empty

    def _is_registered(self, plan: Plan, file: NewDataFile) -> bool:
        with closing(self.connect()) as con:
            return bool(queries.known_locations(plan.lake, [file.path]).run(con))


class _JobConnection:
    """The connection that holds the job's lock; `commit` takes it over, and may lose it."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self.con = connect()

    def handed_over(self) -> Connection | None:
        """The connection, for `commit`; None: it was lost."""
        return self.con if self.is_alive else None

    @property
    def is_alive(self) -> bool:
        try:
            self.con.run("SELECT 1")
        except (DatabaseError, ConnectionLost):
            return False
        return True

    def close(self) -> None:
        with suppress(DatabaseError, ConnectionLost):
            self.con.close()


# Advisory locks belong to the whole database; the schema tells the lakes in it apart.
LOCK = "SELECT pg_try_advisory_lock(hashtextextended('polynya ' || current_schema() || :token, 0))"


def _lock(con: Connection, token: str) -> None:
    """Permit one run of a job at a time, so that the files of earlier runs are not in use.

    Raises:
        Conflict: another run of the job holds the lock.
    """
    if not con.run(LOCK, token=token)[0][0]:
        raise Conflict("a job with this token is running at the moment")


@contextmanager
def _removed_on_failure(connection: _JobConnection, plan: FilePlan) -> Iterator[None]:
    """Remove the job's files if it fails, and it is certain that no snapshot names them."""
    try:
        yield
    except Unavailable:
        raise  # the commit may have taken place
    except Exception:
        if connection.is_alive:  # it still holds the lock: no other run of the job has begun
            with suppress(Unavailable):
                storage.remove(locations(plan))
        raise


def _record(summary: Summary, files: list[NewDataFile], done: Committed) -> None:
    summary.outcome = "already-committed" if done.already else "committed"
    summary.snapshot_id, summary.retries = done.snapshot_id, done.retries
    summary.ended_files, summary.ended_inlined_rows = done.ended_files, done.ended_inlined_rows
    summary.files = len(files)
    summary.rows = sum(file.record_count for file in files)
    summary.bytes = sum(file.file_size_bytes for file in files)
