"""`ingest`: a DataFrame into a table of a DuckLake, as one snapshot, exactly once.

from polynya_pipeline.ingest.job import ingest
ingest(frame, "main.events", database="postgresql://…", token="events of 2026-11-20")
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from pg8000.exceptions import DatabaseError
from pg8000.native import Connection
from polynya.ducklake.connection.catalog_connection import ConnectionLost

from ..common import database as databases
from ..common import storage
from ..common.database import translate_errors
from ..common.errors import BadInput, Conflict, JobError, Unavailable, spark_message
from ..common.modes import APPEND
from ..common.progress import Reporter
from . import catalog, planning
from .commit import Committed, Plan, commit
from .parquet_files import (
    PARTITION,
    SPARK_ROWS,
    FilePlan,
    WrittenFile,
    with_partition,
    written,
    written_file,
)
from .spec import IngestSpec

# What a task has raised comes back as text.
RAISED = re.compile(r"pipeline\.errors\.(BadInput|Unavailable): (.*)")
TASK_ERRORS = {"BadInput": BadInput, "Unavailable": Unavailable}


@dataclass(slots=True)
class Summary:
    """What a job has done, for a person and as JSON."""

    table: str
    mode: str
    token: str
    outcome: str
    """committed, already-committed, nothing-to-do, dry-run"""
    snapshot_id: int | None = None
    created: bool = False
    added_columns: list[str] = field(default_factory=list)
    files: int = 0
    rows: int = 0
    bytes: int = 0
    ended_files: int = 0
    ended_inlined_rows: int = 0
    retries: int = 0
    location: str = ""
    file_prefix: str = ""
    orphans: list[str] = field(default_factory=list)
    """Files of earlier runs of this job that no snapshot knows."""
    orphans_removed: int = 0

    @property
    def json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def lines(self) -> list[str]:
        """For a person."""
        lines = [f"{self.table}: {OUTCOMES[self.outcome].format(self=self)}"]
        if self.created:
            lines.append(f"The table {'would be' if self.outcome == 'dry-run' else 'was'} created.")
        if self.added_columns:
            lines.append(f"New columns: {', '.join(self.added_columns)}")
        if self.ended_files or self.ended_inlined_rows:
            lines.append(
                f"Overwritten: {self.ended_files:,} files, {self.ended_inlined_rows:,} inlined rows"
            )
        if self.orphans:
            what = "removed" if self.orphans_removed else "not removed"
            lines.append(f"Left by earlier runs, {what}: {', '.join(self.orphans)}")
        return [*lines, f"Token: {self.token}. Files are named {self.file_prefix}*"]


OUTCOMES = {
    "committed": "{self.rows:,} rows in {self.files:,} files, {self.bytes:,} bytes: "
    "snapshot {self.snapshot_id}",
    "already-committed": "this job was done already, as snapshot {self.snapshot_id}; "
    "nothing was changed",
    "nothing-to-do": "there are no rows; nothing was changed",
    "dry-run": "would {self.mode} at {self.location}; nothing was changed",
}


def ingest(
    frame: Any,
    table: str,
    *,
    database: str,
    metadata_schema: str = "public",
    mode: str = APPEND,
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
        frame: a DataFrame, or a function from the table as it is (None: not there) to one.
        token: names the job; a second run with the same token changes nothing. None: a new one.
        partition_by: for a table that is created: `day(at)`, `bucket(8, id)`, `region`.
        evolve: add columns, and fields of structs, that the table lacks; write NULL for those that
            the DataFrame lacks.
        files: write that many files; None: one for each partition of the DataFrame.
        remove_orphans: delete what earlier runs with the same token have left behind.

    Raises:
        BadInput, Conflict: nothing is written. Unavailable: the message says what is known.
    """
    spec = IngestSpec(
        catalog.table_name(table),
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
        connect=partial(databases.connect, database, metadata_schema),
        files=files,
        allow_empty=allow_empty,
        remove_orphans=remove_orphans,
        dry_run=dry_run,
        reporter=reporter or Reporter(quiet=True),
    )
    with closing(_Session(job.connect)) as session, translate_errors(metadata_schema):
        return job.run(session, frame)


@dataclass(frozen=True, slots=True)
class _Job:
    """An order, and how it is carried out."""

    spec: IngestSpec
    connect: Callable[[], Connection]
    files: int | None
    allow_empty: bool
    remove_orphans: bool
    dry_run: bool
    reporter: Reporter

    def run(self, session: "_Session", frame: Any) -> Summary:
        spec = self.spec
        summary = Summary(str(spec.name), spec.mode, spec.token, "dry-run")
        summary.file_prefix = planning.file_prefix(spec.token)
        _lock(session.con, spec.token)
        lake = catalog.lake(session.con)
        if (snapshot_id := catalog.committed(session.con, spec.token)) is not None:
            summary.outcome, summary.snapshot_id = "already-committed", snapshot_id
            return summary
        frame, plan, file_plan = self._planned(session.con, lake, frame)
        summary.created = plan.table is None
        summary.added_columns = [new.path for new in plan.new_columns] if plan.table else []
        summary.location = file_plan.location
        if self.remove_orphans or self.dry_run:
            summary.orphans = list(_files_of_job(file_plan))
        if self.dry_run:
            return summary
        if self.remove_orphans:
            summary.orphans_removed = storage.remove(summary.orphans)
        _check_writable(file_plan)
        with _swept_on_failure(session, file_plan):
            with self.reporter.spark_stage(f"Writing Parquet for {spec.name}", frame.sparkSession):
                rows = _write(frame, file_plan, self.files)
            if self._is_nothing(plan, rows):
                summary.outcome = "nothing-to-do"
                return summary
            with self.reporter.stage(f"Committing {len(rows)} files"):
                done = commit(self.connect, plan, rows, session.handed_over())
        _account(summary, rows, done)
        if done.already and rows and not _is_registered(self.connect, rows[0]):
            storage.remove(file_plan.location + file.path for file in rows)
        return summary

    def _planned(
        self, con: Connection, lake: catalog.Lake, frame: Any
    ) -> tuple[Any, Plan, FilePlan]:
        """The DataFrame, what is to be committed, and how its files are written."""
        name = self.spec.name
        schema = catalog.schema(con, lake, name.schema_name)
        table = catalog.table(con, schema, name.table_name)
        if callable(frame):
            frame = frame(table)
        plan = planning.plan(frame.schema, lake, schema, table, self.spec)
        options = catalog.options(con, lake, schema, table.table_id if table else -1)
        file_plan = planning.file_plan(plan, frame.columns, options)
        storage.check(file_plan.location)
        return frame, plan, file_plan

    def _is_nothing(self, plan: Plan, rows: list[WrittenFile]) -> bool:
        """Raises:
        BadInput: it would empty what it overwrites, and nobody said that this is meant.
        """
        if rows:
            return False
        if plan.spec.mode != APPEND and not self.allow_empty:
            raise BadInput(
                "the DataFrame has no rows, and would empty what it overwrites: --allow-empty "
                "if that is meant"
            )
        return plan.spec.mode == APPEND and plan.table is not None and not plan.new_columns


class _Session:
    """The connection that holds the job's lock; a commit may take it over, and lose it."""

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self.con = connect()

    def handed_over(self) -> Connection | None:
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


LOCK = "SELECT pg_try_advisory_lock(hashtextextended('polynya ' || current_schema() || :token, 0))"


def _lock(con: Connection, token: str) -> None:
    """One run of a job at a time: so what an earlier run has left is nobody's any more."""
    if not con.run(LOCK, token=token)[0][0]:
        raise Conflict("a job with this token is running just now")


def _check_writable(plan: FilePlan) -> None:
    """Better now than after an hour of work."""
    probe = f"{plan.location}{plan.file_prefix}probe"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe"
        source.write_bytes(b"PAR1")
        storage.put(source, probe)
    storage.remove([probe])


def _write(frame: Any, plan: FilePlan, files: int | None) -> list[WrittenFile]:
    from pyspark.sql.types import StringType, StructType

    # mapInArrow looks columns up by name, and does not find those with a dot.
    frame = frame.toDF(*map(str, range(len(frame.columns))))
    if plan.partition_keys:
        schema = StructType([*frame.schema.fields]).add(PARTITION, StringType())
        frame = frame.mapInArrow(partial(with_partition, plan=plan), schema)
        frame = frame.repartition(*([files] if files else []), PARTITION)
        frame = frame.sortWithinPartitions(PARTITION)
    elif files:
        frame = frame.repartition(files)
    try:
        # Consumed once: a second look at it would write everything again.
        rows = frame.mapInArrow(partial(written, plan=plan), SPARK_ROWS).collect()
    except Exception as error:
        if found := RAISED.search(str(error)):
            raise TASK_ERRORS[found[1]](found[2].strip()) from None
        raise JobError(f"Spark has failed: {spark_message(error)}") from error
    return [
        written_file(tuple(row)) for row in rows
    ]  # in the DataFrame's order, as row ids will be


def _files_of_job(plan: FilePlan) -> Iterator[str]:
    below = plan.location
    if not plan.partition_keys and storage.is_s3(below):
        below += plan.file_prefix  # a prefix is enough for S3, and quick
    for location, _ in storage.sizes(below):
        if location.rpartition("/")[2].startswith(plan.file_prefix):
            yield location


@contextmanager
def _swept_on_failure(session: _Session, plan: FilePlan) -> Iterator[None]:
    """A job that fails takes its files away, where it is certain that no snapshot knows them."""
    try:
        yield
    except Unavailable:
        raise  # perhaps it is committed
    except Exception:
        if session.is_alive:  # with the lock: no other run of the job can have begun
            with suppress(Unavailable):
                storage.remove(_files_of_job(plan))
        raise


def _is_registered(connect: Callable[[], Connection], file: WrittenFile) -> bool:
    sql = "SELECT 1 FROM ducklake_data_file WHERE path = :path"
    with closing(connect()) as con:
        return bool(con.run(sql, path=file.path))


def _account(summary: Summary, rows: list[WrittenFile], done: Committed) -> None:
    summary.outcome = "already-committed" if done.already else "committed"
    summary.snapshot_id, summary.retries = done.snapshot_id, done.retries
    summary.ended_files, summary.ended_inlined_rows = done.ended_files, done.ended_inlined_rows
    summary.files = len(rows)
    summary.rows = sum(file.record_count for file in rows)
    summary.bytes = sum(file.file_size_bytes for file in rows)
