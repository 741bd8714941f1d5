"""`verify`: checks that a lake agrees with its catalog. Nothing is changed.

from polynya_pipeline.verify.job import verify
report = verify(database="postgresql://…", footers=True)
"""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.connection.database import BEGIN
from polynya.ducklake.rows.objects import Lake

from ..common.database import connect, translate_errors
from ..common.errors import BadInput
from ..common.progress import Reporter
from ..common.spark import map_in_spark
from ..common.text_values import table_name
from . import catalog
from .catalog import CatalogFile, CatalogTable, Fragments
from .findings import Level, Problem, Report
from .invariants import INVARIANTS, violations
from .statistics import FileRange, check_range
from .stored_files import FooterTask, check_footers, check_presence

FILES_PER_TASK = 500
STATS_FILES_PER_TASK = 20_000
LISTED_ORPHANS = 20
"""The number of orphans of a table that are noted one by one."""


def verify(
    *,
    database: str,
    metadata_schema: str = "public",
    levels: Iterable[str] = (Level.CATALOG, Level.STORAGE),
    table: str | None = None,
    footers: bool = False,
    catalog_uri: str | None = None,
    bridge_s3_endpoint: str | None = None,
    warehouse: str = "lake",
    spark: Any | None = None,
    reporter: Reporter | None = None,
) -> Report:
    """Check a lake, or one table of it, in one REPEATABLE READ transaction.

    Args:
        database: a URL or the ARN of a secret, see `common.database.connect`.
        levels: catalog, storage, metadata, client.
        table: `schema.table`; None: all tables.
        footers: the level storage also reads the footer of every Parquet file.
        catalog_uri: for metadata and client, the Iceberg REST catalog that serves the lake.
        bridge_s3_endpoint: the S3 that this catalog's files are in; None: AWS.
        spark: its executors check statistics and footers; the level client needs it.

    Raises:
        BadInput: the options are invalid, or there is no such lake or table.
        Unavailable: PostgreSQL, the storage or the catalog does not answer.
    """
    levels = tuple(levels)
    _check_options(levels, catalog_uri, spark)
    with closing(connect(database, metadata_schema)) as con, translate_errors(metadata_schema):
        con.run(BEGIN)
        lake, fragments = catalog.lake(con)
        tables = _tables(con, lake, table)
        report = Report(lake.snapshot_id, list(levels), len(tables))
        address = (database, metadata_schema)
        progress = reporter or Reporter(quiet=True)
        job = _Verification(con, address, lake, fragments, tables, spark, progress, report)
        if Level.CATALOG in levels:
            job.check_invariants()
            job.check_statistics()
        if Level.STORAGE in levels:
            job.check_storage(footers)
        if catalog_uri and {Level.METADATA, Level.CLIENT} & set(levels):
            job.check_served(catalog_uri, bridge_s3_endpoint, warehouse)
    return report


def _check_options(levels: tuple[str, ...], catalog_uri: str | None, spark: Any | None) -> None:
    if wrong := set(levels) - set(Level):
        raise BadInput(f"no level {', '.join(sorted(wrong))}: {', '.join(Level)}")
    if {Level.METADATA, Level.CLIENT} & set(levels) and not catalog_uri:
        raise BadInput(
            "the levels metadata and client need --catalog-uri, the catalog that serves the lake"
        )
    if Level.CLIENT in levels and spark is None:
        raise BadInput("the level client needs Spark, with Iceberg's runtime on its class path")


def _tables(con: Connection, lake: Lake, table: str | None) -> list[CatalogTable]:
    tables = catalog.tables(con, lake)
    if table is None:
        return tables
    name = str(table_name(table))
    matching = [candidate for candidate in tables if candidate.name.casefold() == name.casefold()]
    if not matching:
        raise BadInput(f"no table {name}")
    return matching


@dataclass(frozen=True, slots=True)
class _Verification:
    """The checks of a run, by level."""

    con: Connection
    address: tuple[str, str] = field(repr=False)
    """Database and PostgreSQL schema, for the connections of executors."""
    lake: Lake
    fragments: Fragments
    tables: list[CatalogTable]
    spark: Any | None
    reporter: Reporter
    report: Report

    def check_invariants(self) -> None:
        """Level catalog: the invariants in SQL."""
        names = {table.table_id: table.name for table in self.tables}
        with self.reporter.stage(f"Level catalog: {len(INVARIANTS)} invariants"):
            for invariant in INVARIANTS:
                for table_id, what in violations(self.con, invariant, self.fragments):
                    about = "the lake" if table_id is None else names.get(table_id, str(table_id))
                    problem = invariant.name, invariant.sentence.format(what)
                    self.report.add(Level.CATALOG, about, [problem])
                self.report.count("invariants", 1)

    def check_statistics(self) -> None:
        """Level catalog: the statistics of every data file."""
        for table in self.tables:
            with self.reporter.stage(f"Level catalog: statistics of {table.name}"):
                files = catalog.files(self.con, table)
                ids = sorted(file.file_id for file in files if file.kind == "data")
                self.report.count("files with statistics", len(ids))
                ranges = self._ranges(table.table_id, ids)
                problems = map_in_spark(self.spark, check_range, ranges)
                self.report.add(Level.CATALOG, table.name, problems)

    def _ranges(self, table_id: int, ids: list[int]) -> list[FileRange]:
        """The data files of a table, in ranges for tasks."""
        # Few and large: without an index, each range scans all statistics.
        firsts = ids[::STATS_FILES_PER_TASK]
        ends = [*firsts[1:], ids[-1] + 1] if ids else []
        return [
            FileRange(*self.address, table_id, first, end, dict(self.fragments))
            for first, end in zip(firsts, ends, strict=True)
        ]

    def check_storage(self, footers: bool) -> None:
        """Level storage: files and sizes, and with `footers` what is in the files."""
        referenced = queries.known_locations(self.lake).run(self.con)
        for table in self.tables:
            files = catalog.files(self.con, table)
            with self.reporter.stage(f"Level storage: {len(files):,} files of {table.name}"):
                presence = check_presence(table, files, referenced)
                self.report.count("files in storage", len(files))
                problems = [*presence.problems, *_orphan_notes(presence.orphans)]
                self.report.add(Level.STORAGE, table.name, problems)
            if footers:
                intact = [file for file in files if file.location not in presence.faulty]
                self._check_footers(table, intact)

    def _check_footers(self, table: CatalogTable, files: list[CatalogFile]) -> None:
        with self.reporter.stage(f"Level storage: footers of {table.name}"):
            readable = [file for file in files if file.kind in {"data", "delete"}]
            self.report.count("footers", len(readable))
            tasks = self._footer_tasks(table, readable)
            problems = map_in_spark(self.spark, check_footers, tasks)
            self.report.add(Level.STORAGE, table.name, problems)

    def _footer_tasks(self, table: CatalogTable, files: list[CatalogFile]) -> list[FooterTask]:
        bounds: dict[int, dict[int, tuple[str | None, str | None]]] = {}
        nan: dict[int, dict[int, bool | None]] = {}
        for row in self._statistics(table, files):
            bounds.setdefault(row.data_file_id, {})[row.column_id] = (row.min_value, row.max_value)
            nan.setdefault(row.data_file_id, {})[row.column_id] = row.contains_nan
        return [
            FooterTask(
                table,
                tuple(batch),
                {file.file_id: bounds.get(file.file_id, {}) for file in batch},
                {file.file_id: nan.get(file.file_id, {}) for file in batch},
            )
            for start in range(0, len(files), FILES_PER_TASK)
            for batch in [files[start : start + FILES_PER_TASK]]
        ]

    def _statistics(
        self, table: CatalogTable, files: list[CatalogFile]
    ) -> list[catalog.CatalogStats]:
        last = max((file.file_id for file in files), default=-1)
        return catalog.stats(self.con, self.fragments, table.table_id, 0, last + 1)

    def check_served(self, catalog_uri: str, s3_endpoint: str | None, warehouse: str) -> None:
        """Levels metadata and client: what a served catalog gives Iceberg clients."""
        from . import metadata  # imports fastavro

        served = metadata.ServedCatalog(catalog_uri, s3_endpoint, warehouse, self.lake.snapshot_id)
        if Level.CLIENT in self.report.levels:
            metadata.connect(self.spark, served)
        for table in self.tables:
            with self.reporter.stage(f"Served metadata of {table.name}"):
                try:
                    document = served.table_metadata(table)
                except metadata.NotServed as error:
                    self.report.add(Level.METADATA, table.name, [("not-served", str(error))])
                    continue
                files = catalog.files(self.con, table)
                rows, all_in_files = catalog.row_count(self.con, self.lake, table)
                if Level.METADATA in self.report.levels:
                    self.report.count("tables with metadata", 1)
                    problems = metadata.check(served, document, files, rows)
                    self.report.add(Level.METADATA, table.name, problems)
                if Level.CLIENT in self.report.levels:
                    counts = self._value_counts(table, files) if all_in_files else None
                    problems = metadata.check_client(self.spark, served, table, rows, counts)
                    self.report.add(Level.CLIENT, table.name, self._count(problems))

    def _count(self, problems: Iterable[Problem]) -> list[Problem]:
        """Count a table that Spark has read, with or without a problem."""
        problems = list(problems)
        is_read = not {check for check, _ in problems} & {"client-type", "client-fails"}
        self.report.count("tables read by Spark", is_read)
        return problems

    def _value_counts(self, table: CatalogTable, files: list[CatalogFile]) -> dict[int, int]:
        """The number of values, by column id, of the columns that every file counts."""
        values: dict[int, int] = {}
        counting_files: dict[int, int] = {}
        for row in self._statistics(table, files):
            is_counted = row.value_count is not None
            values[row.column_id] = values.get(row.column_id, 0) + (row.value_count or 0)
            counting_files[row.column_id] = counting_files.get(row.column_id, 0) + is_counted
        return {column: n for column, n in values.items() if counting_files[column] == len(files)}


def _orphan_notes(orphans: list[str]) -> list[Problem]:
    sentences = [
        f"{location} is in no snapshot; ducklake_delete_orphaned_files removes it"
        for location in orphans[:LISTED_ORPHANS]
    ]
    if len(orphans) > LISTED_ORPHANS:
        sentences.append(f"{len(orphans) - LISTED_ORPHANS} more files are in no snapshot")
    return [("orphan", sentence) for sentence in sentences]
