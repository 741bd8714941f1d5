"""`verify`: is all of a lake as its catalog says? Nothing is changed."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

from pg8000.native import Connection
from polynya.ducklake.connection.database import BEGIN
from polynya.ducklake.rows import Lake

from ..common.database import connect, translate_errors
from ..common.errors import BadInput
from ..common.map_in_spark import map_in_spark
from ..common.modes import LEVELS
from ..common.progress import Reporter
from ..ingest import catalog as target
from . import catalog as audited
from . import files as verify_storage
from . import invariants, statistics
from .catalog import CatalogFile, CatalogTable, Fragments
from .files import Chunk
from .findings import Finding, Report

FILES_PER_TASK = 500
STATS_FILES_PER_TASK = 20_000
NOTED_ORPHANS = 20


def verify(
    *,
    database: str,
    metadata_schema: str = "public",
    levels: Iterable[str] = ("catalog", "storage"),
    table: str | None = None,
    footers: bool = False,
    catalog_uri: str | None = None,
    bridge_s3_endpoint: str | None = None,
    warehouse: str = "lake",
    spark: Any | None = None,
    reporter: Reporter | None = None,
) -> Report:
    """Check a lake, or one table of it.

    Args:
        levels: catalog, storage, metadata, client.
        footers: storage reads the footer of every Parquet file too.
        catalog_uri, bridge_s3_endpoint: for metadata and client, where the lake is served.
        spark: spreads statistics and footers over its executors; client needs one.

    Raises:
        BadInput, Unavailable: it could not be checked.
    """
    job = _Verification(
        database, metadata_schema, tuple(levels), spark, reporter or Reporter(quiet=True)
    )
    if wrong := set(job.levels) - set(LEVELS):
        raise BadInput(f"no level {', '.join(sorted(wrong))}: {', '.join(LEVELS)}")
    if {"metadata", "client"} & set(job.levels) and not catalog_uri:
        raise BadInput(
            "the levels metadata and client need --catalog-uri: where the lake is served"
        )
    if "client" in job.levels and spark is None:
        raise BadInput("the level client needs Spark, with Iceberg's runtime on its class path")
    with closing(connect(database, metadata_schema)) as con, translate_errors(metadata_schema):
        con.run(BEGIN)
        job.open(con, table)
        if "catalog" in job.levels:
            job.catalog(con)
        if "storage" in job.levels:
            job.storage(con, footers)
        if catalog_uri and {"metadata", "client"} & set(job.levels):
            job.served(con, catalog_uri, bridge_s3_endpoint, warehouse)
    return job.report


class _Verification:
    def __init__(
        self,
        database: str,
        metadata_schema: str,
        levels: tuple[str, ...],
        spark: Any | None,
        reporter: Reporter,
    ) -> None:
        self._where = (database, metadata_schema)
        self.levels = levels
        self._spark = spark
        self._reporter = reporter
        self.report = Report(levels=list(levels))
        self._lake: Lake
        self._fragments: Fragments
        self._tables: list[CatalogTable] = []

    def open(self, con: Connection, table: str | None) -> None:
        self._lake, self._fragments = audited.lake(con)
        self._tables = audited.tables(con, self._lake)
        if table is not None:
            wanted = str(target.table_name(table)).casefold()
            self._tables = [one for one in self._tables if one.name.casefold() == wanted]
            if not self._tables:
                raise BadInput(f"no table {target.table_name(table)}")
        self.report.snapshot_id = self._lake.snapshot_id
        self.report.tables = len(self._tables)

    def catalog(self, con: Connection) -> None:
        with self._reporter.stage(f"Level catalog: {len(invariants.INVARIANTS)} invariants"):
            names = {table.table_id: table.name for table in self._tables}
            for invariant in invariants.INVARIANTS:
                for table_id, words in invariants.violations(con, invariant, self._fragments):
                    about = "the lake" if table_id is None else names.get(table_id, str(table_id))
                    sentence = invariant.sentence.format(words)
                    found = Finding("catalog", invariant.name, about, sentence)
                    self._tell(invariant.is_note, found)
                self._count("invariants", 1)
        for table in self._tables:
            with self._reporter.stage(f"Level catalog: statistics of {table.name}"):
                ids = [f.file_id for f in audited.files(con, table) if f.kind == "data"]
                ranges = self._ranges(table.table_id, ids)
                self._count("files with statistics", len(ids))
                for check, words in map_in_spark(self._spark, statistics.check_range, ranges):
                    self._find("catalog", check, table.name, words)

    def _ranges(self, table_id: int, ids: list[int]) -> list[statistics.Range]:
        """Without an index every range is a scan of all statistics: few large ones."""
        ids = sorted(ids)
        firsts = ids[::STATS_FILES_PER_TASK]
        ends = [*firsts[1:], ids[-1] + 1] if ids else []
        return [
            statistics.Range(*self._where, table_id, first, end, dict(self._fragments))
            for first, end in zip(firsts, ends, strict=True)
        ]

    def storage(self, con: Connection, footers: bool) -> None:
        known = audited.known_locations(con, self._lake)
        for table in self._tables:
            files = audited.files(con, table)
            with self._reporter.stage(f"Level storage: {len(files):,} files of {table.name}"):
                found, unknown = verify_storage.check_presence(table, files, known)
                self._count("files in storage", len(files))
                for check, words in found:
                    self._find("storage", check, table.name, words)
                self._note_orphans(table, unknown)
            if footers:
                gone = {words.partition(" ")[0] for check, words in found if check != "footer"}
                self._footers(con, table, [f for f in files if f.location not in gone])

    def _footers(self, con: Connection, table: CatalogTable, files: list[CatalogFile]) -> None:
        with self._reporter.stage(f"Level storage: footers of {table.name}"):
            bounds: dict[int, dict[int, tuple[str | None, str | None]]] = {}
            nan: dict[int, dict[int, bool | None]] = {}
            last = max((file.file_id for file in files), default=-1)
            for row in audited.stats(con, self._fragments, table.table_id, 0, last + 1):
                bounds.setdefault(row.data_file_id, {})[row.column_id] = (
                    row.min_value,
                    row.max_value,
                )
                nan.setdefault(row.data_file_id, {})[row.column_id] = row.contains_nan
            readable = [file for file in files if file.kind in {"data", "delete"}]
            chunks = [
                Chunk(
                    table,
                    tuple(part),
                    {f.file_id: bounds.get(f.file_id, {}) for f in part},
                    {f.file_id: nan.get(f.file_id, {}) for f in part},
                )
                for i in range(0, len(readable), FILES_PER_TASK)
                for part in [readable[i : i + FILES_PER_TASK]]
            ]
            self._count("footers", len(readable))
            for check, words in map_in_spark(self._spark, verify_storage.check_footers, chunks):
                is_note = check in verify_storage.NOTES
                self._tell(is_note, Finding("storage", check, table.name, words))

    def served(
        self, con: Connection, catalog_uri: str, s3_endpoint: str | None, warehouse: str
    ) -> None:
        from . import client, metadata

        bridge = metadata.Bridge(catalog_uri, s3_endpoint, warehouse, self._lake.snapshot_id)
        if "client" in self.levels:
            client.connect(self._spark, bridge)
        for table in self._tables:
            files = audited.files(con, table)
            rows, all_in_files = audited.row_count(con, self._lake, table)
            with self._reporter.stage(f"What is served of {table.name}"):
                if "metadata" in self.levels:
                    self._count("documents' tables", 1)
                    for check, words in metadata.check(bridge, table, files, rows):
                        self._find("metadata", check, table.name, words)
                if "client" in self.levels:
                    self._count("tables read by Spark", 1)
                    counts = self._value_counts(con, table, files) if all_in_files else None
                    checked = client.check(self._spark, bridge, table, rows, counts)
                    for check, words in checked:
                        self._find("client", check, table.name, words)

    def _value_counts(
        self, con: Connection, table: CatalogTable, files: list[CatalogFile]
    ) -> dict[int, int]:
        """The values of each column of which every file tells."""
        last = max((file.file_id for file in files), default=-1)
        counts: dict[int, int] = {}
        told: dict[int, int] = {}
        for row in audited.stats(con, self._fragments, table.table_id, 0, last + 1):
            counts[row.column_id] = counts.get(row.column_id, 0) + (row.value_count or 0)
            told[row.column_id] = told.get(row.column_id, 0) + (row.value_count is not None)
        return {column: n for column, n in counts.items() if told[column] == len(files)}

    def _note_orphans(self, table: CatalogTable, unknown: list[str]) -> None:
        for location in unknown[:NOTED_ORPHANS]:
            words = f"{location} is in no snapshot; ducklake_delete_orphaned_files removes it"
            self.report.notes.append(Finding("storage", "orphan", table.name, words))
        if len(unknown) > NOTED_ORPHANS:
            words = f"{len(unknown) - NOTED_ORPHANS} more files are in no snapshot"
            self.report.notes.append(Finding("storage", "orphan", table.name, words))

    def _find(self, level: str, check: str, about: str, words: str) -> None:
        self._tell(False, Finding(level, check, about, words))

    def _tell(self, is_note: bool, one: Finding) -> None:
        """Once: a table's fault shows in each range of files."""
        told = self.report.notes if is_note else self.report.findings
        if one not in told:
            told.append(one)

    def _count(self, what: str, number: int) -> None:
        self.report.checked[what] = self.report.checked.get(what, 0) + number
