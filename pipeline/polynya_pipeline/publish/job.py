"""`publish`: generates the files that Iceberg clients read, before they request them.

The files go into the store that the functions read, so that no client waits for the first list of a
large table; or they become standalone Iceberg tables (`export`) that any catalog can register.

from polynya_pipeline.publish.job import publish
publish(database="postgresql://…", export="s3://bucket/exported")
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.mapping.tables import check_lake
from polynya.runtime.errors import BadRequest, Misconfigured, NoSuchKey, PolynyaError, Refused

from ..common.errors import BadInput, ChangedMeanwhile, Unavailable
from ..common.progress import Reporter
from ..common.text_values import TableName, table_name
from . import steps
from .destinations import (
    Destination,
    PublishSettings,
    check_directory,
    directory,
    settings,
    table_directory,
)
from .report import Report
from .steps import (
    Registrar,
    Selected,
    build_in_executor,
    copy_data_files,
    find_missing_lists,
    plan_in_driver,
    plan_in_executor,
    record_plans,
    registrar,
    select_schemas,
    select_tables,
    write_lists,
)
from .table import PublishedTable, SharedSnapshot, exported
from .tasks import Answer, Executors, Part, Task

TABLES_TOGETHER = 50
"""The greatest number of tables whose histories the driver holds at once."""


def publish(
    *,
    database: str,
    metadata_schema: str = "public",
    tables: Iterable[str] = (),
    namespaces: Iterable[str] = (),
    export: str | None = None,
    snapshots: int | None = None,
    register: str | None = None,
    deregister: bool = False,
    environ: Mapping[str, str] = os.environ,
    spark: Any | None = None,
    dry_run: bool = False,
    reporter: Reporter | None = None,
) -> Report:
    """Publish tables of a lake, as of its newest snapshot.

    Args:
        database: a URL or the ARN of a secret, see `common.database.connect`.
        tables, namespaces: which tables; without both, all tables of the lake.
        export: a folder, or s3://bucket/prefix: each table becomes a standalone table below it.
        snapshots: how many of each table, newest first; None: as many as are listed.
        register: `glue:DATABASE`: register the published tables in AWS's Glue catalog.
        deregister: remove the Glue tables that this lake registered and no longer has.
        environ: the settings of the functions.
        spark: its executors build the manifests; None: this process builds them.

    Raises:
        BadInput: the options are invalid, or a table that `tables` names cannot be served.
        Conflict: another export was faster; or tables of the catalog were dropped while they were
            read, twice (`ChangedMeanwhile`).
        Unavailable: PostgreSQL or the storage does not answer, or denies access.

    After an error, no list, document or pointer refers to an incomplete file.
    """
    started = time.monotonic()
    try:
        publish_settings = settings(environ, bool(export), snapshots)
    except Misconfigured as error:
        raise BadInput(str(error)) from None
    reporter = reporter or Reporter(quiet=True)
    tables = tuple(tables)
    try:
        job = _Publication(
            settings=publish_settings,
            export=directory(export) if export else "",
            snapshots=snapshots,
            tables=tuple(table_name(name) for name in tables),
            namespaces=tuple(namespaces),
            registrar=registrar(register, deregister, publish_settings, export, tables),
            executors=Executors(spark, reporter),
            writes=not dry_run,
            reporter=reporter,
        )
        try:
            report = job.run(database, metadata_schema)
        except ChangedMeanwhile:
            # A flush drops tables of inlined rows, and no transaction prevents it. What the first
            # run has stored is not built again.
            report = job.run(database, metadata_schema)
    except (BadRequest, NoSuchKey) as error:
        raise BadInput(str(error)) from None
    except PolynyaError as error:
        raise Unavailable(str(error)) from None
    report.seconds = round(time.monotonic() - started, 2)
    return report


@dataclass(frozen=True, slots=True)
class _Publication:
    """A run, in batches of tables: each step handles a batch, so that executors share the work."""

    settings: PublishSettings
    export: str
    """The directory of all exported tables; empty: the functions' store."""
    snapshots: int | None
    tables: tuple[TableName, ...]
    namespaces: tuple[str, ...]
    registrar: Registrar | None
    executors: Executors
    writes: bool
    reporter: Reporter

    def run(self, database: str, metadata_schema: str) -> Report:
        """Publish as of one snapshot of PostgreSQL.

        Raises:
            ChangedMeanwhile: a table of inlined rows was dropped; the run has to be repeated.
        """
        with exported(database, metadata_schema) as (con, snapshot):
            lake = queries.lake().run(con)
            check_lake(lake)
            if self.export:
                check_directory(self.export, lake.data_path)
            report = Report(lake.snapshot_id, not self.writes, snapshot.exported is not None)
            if not report.is_snapshot_shared:
                self.reporter.say("The database exports no snapshot: the driver plans manifests")
            selected = select_tables(con, lake, self.tables, self.namespaces)
            for start in range(0, len(selected), TABLES_TOGETHER):
                batch = selected[start : start + TABLES_TOGETHER]
                published = self._publish(con, lake, snapshot, batch)
                self._register(published, selected)
                report.tables += [table.result for table in published]
            if self.registrar and self.writes:
                schemas = select_schemas(con, lake, self.namespaces) if self.namespaces else ()
                report.deregistered = self.registrar.deregister(lake, schemas, selected)
        return report

    def _publish(
        self, con: Connection, lake: Lake, snapshot: SharedSnapshot, selected: Sequence[Selected]
    ) -> list[PublishedTable]:
        """All steps for some tables."""
        with self.reporter.stage(f"Examining {_names(selected)}"):
            tables = [self._open(con, lake, schema, table) for schema, table in selected]
            self._run_for_each(find_missing_lists, tables)
        work = self._tasks(snapshot, tables, steps.plan_parts)
        self._plan_manifests(work, tables)
        work = self._tasks(snapshot, tables, steps.build_parts)
        if self.writes:
            self._build_manifests(work, tables)
            if self.settings.copies_data_files:
                with self.reporter.stage("Copying data files"):
                    self._run_for_each(copy_data_files, tables)
            with self.reporter.stage("Writing lists and metadata"):
                self._run_for_each(write_lists, tables)
        return tables

    def _register(self, tables: list[PublishedTable], selected: Sequence[Selected]) -> None:
        """Register tables in Glue, if the options say so."""
        if not (self.registrar and self.writes):
            return
        with self.reporter.stage("Registering in Glue"):
            for _, table in _served(tables):
                self.registrar.register(table, selected)
                if reason := table.result.not_registered:
                    if self.tables:
                        raise BadInput(f"{table.result.name} is not registered: {reason}")
                    self.reporter.say(f"{table.result.name} is not registered: {reason}")

    def _open(self, con: Connection, lake: Lake, schema: Schema, table: Table) -> PublishedTable:
        folder = self.export and table_directory(self.export, schema, table)
        destination = Destination(self.settings.files, self.settings.storage, folder)
        return PublishedTable.open(
            con, lake, schema, table, destination, self.snapshots, writes=self.writes
        )

    def _tasks(
        self,
        snapshot: SharedSnapshot,
        tables: list[PublishedTable],
        parts: Callable[[int, PublishedTable], Iterator[Part]],
    ) -> list[Task]:
        work = (part for number, table in _served(tables) for part in parts(number, table))
        return self.executors.tasks(snapshot, work)

    def _plan_manifests(self, work: Sequence[Task], tables: list[PublishedTable]) -> None:
        with self.executors.stage("Planning manifests", work):
            for number, answer in self._run(plan_in_executor, work, tables):
                record_plans(tables[number], answer)
            self._run_for_each(plan_in_driver, tables)

    def _build_manifests(self, work: Sequence[Task], tables: list[PublishedTable]) -> None:
        count = sum(table.result.manifests_built for _, table in _served(tables))
        with self.executors.stage(f"Building {count:,} manifests", work):
            for number, (files, size) in self._run(build_in_executor, work, tables):
                tables[number].result.add_files(files, size)

    def _run_for_each(
        self, step: Callable[[PublishedTable], None], tables: list[PublishedTable]
    ) -> None:
        """Do a step for each table that has not been refused."""
        for _, table in _served(tables):
            with self._refusing(table):
                step(table)

    def _run(
        self,
        work: Callable[[Task], list[Answer]],
        tasks: Sequence[Task],
        tables: list[PublishedTable],
    ) -> Iterator[tuple[int, Any]]:
        """The number of a table and the result of the work, for each part of the tasks."""
        for number, is_done, result in self.executors.run(work, tasks):
            if is_done:
                yield number, result
            else:
                self._refuse(tables[number], result)

    @contextmanager
    def _refusing(self, table: PublishedTable) -> Iterator[None]:
        try:
            yield
        except (Refused, NoSuchKey) as error:
            self._refuse(table, str(error))

    def _refuse(self, table: PublishedTable, reason: str) -> None:
        """Leave a table out; a table that the user named fails the run."""
        if self.tables:
            raise BadInput(reason)
        table.result.refused = reason
        self.reporter.say(f"{table.result.name} is not published: {reason}")


def _served(tables: Sequence[PublishedTable]) -> list[tuple[int, PublishedTable]]:
    """The tables that have not been refused, with their positions."""
    return [(n, table) for n, table in enumerate(tables) if table.result.refused is None]


def _names(selected: Sequence[Selected]) -> str:
    if len(selected) != 1:
        return f"{len(selected):,} tables"
    [(schema, table)] = selected
    return schema.name_of(table.table_name)
