"""What DuckLake's catalog says, what Iceberg clients get, and where the two differ."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import duckdb
from pg8000.native import Connection
from polynya.access.vended_credentials import CredentialVending
from polynya.ducklake import queries
from polynya.ducklake.paths import file_location
from polynya.ducklake.rows import Lake, Schema, Table
from polynya.errors import PolynyaError, Refused
from polynya.storage.s3 import SCHEMES
from polynya.translate.tables import check_lake

from ..clients.duckdb_connection import literal
from .generator import Generator, OpenedTable, full_name, tables_of
from .rights import Rights, create_index, default_privileges, grant, rights
from .row_counts import (
    CatalogAlone,
    DuckLake,
    Unknown,
    iceberg_rows,
    reader_of_files,
    said,
    secrets_of,
)
from .table_report import EVERY, PAST_FILES, defaults_of, hidden_of, left_out_of

FOOTERS = 100  # data files of a table whose own count is looked at, newest first
SMALL = 16 * 1024 * 1024  # bytes of statistics that are quickly read without an index
ERROR, WARNING, NOTE = "error", "warning", "note"


@dataclass(frozen=True, slots=True)
class Finding:
    level: str
    """`error`: it is wrong, or not served. `warning`: it can become so. `note`: good to know."""
    about: str
    message: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Count:
    snapshot_id: int
    ducklake: int | None
    iceberg: int

    @property
    def is_same(self) -> bool:
        return self.ducklake == self.iceberg

    @property
    def is_known(self) -> bool:
        return self.ducklake is not None


@dataclass(slots=True)
class TableReport:
    name: str
    table_id: int
    status: str = "fails"
    """`served`, `refused`, or `fails`: it cannot be read, or a fault of Polynya."""
    reason: str = ""
    """Why it is not served."""
    hidden_columns: dict[str, str] = field(default_factory=dict)
    default_columns: dict[str, str] = field(default_factory=dict)
    """Columns with a default that files lack, and what comes of it."""
    snapshots: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    """Snapshots that are not listed, by the reason."""
    counts: list[Count] = field(default_factory=list)
    """Past snapshots, then the newest."""


@dataclass(slots=True)
class Report:
    lake: dict[str, Any] = field(default_factory=dict)
    judge: str = ""
    """Who says how many rows DuckLake has."""
    tables: list[TableReport] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def add(self, *words: str) -> None:
        finding = Finding(*words)
        if finding not in self.findings:  # a table is looked at twice when the database was away
            self.findings.append(finding)

    @property
    def is_well(self) -> bool:
        return all(finding.level != ERROR for finding in self.findings)

    @property
    def summary(self) -> str:
        levels = Counter(finding.level for finding in self.findings)
        served = sum(table.status == "served" for table in self.tables)
        counts = [count for table in self.tables for count in table.counts]
        same = sum(count.is_same for count in counts)
        parts = []
        if self.tables:
            parts.append(f"{served} of {_number(len(self.tables), 'table')} served")
            parts.append(f"{same} of {_number(len(counts), 'row count')} the same")
            if unknown := sum(not count.is_known for count in counts):
                parts.append(f"{unknown} not known")
        parts += [_number(levels[name], name) for name in (ERROR, WARNING, NOTE) if levels[name]]
        verdict = "All is well" if self.is_well else "Not all is well"
        return f"{verdict}: {', '.join(parts) or 'nothing to say'}."


def _number(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def diagnosis(
    generator: Generator, database: str, s3_endpoint: str | None, past: int
) -> Iterator[Report]:
    """Look at everything; gives the same report again after each table, for who waits.

    Args:
        past: how many past snapshots of each table are counted, besides the newest.

    Raises:
        PolynyaError: the database cannot be asked at all.
    """
    report = Report()
    ask = generator.read
    schema = generator.config.metadata_schema
    found = ask(lambda con: rights(con, schema))
    if found is not None:
        _judge_rights(report, found, schema)
    try:
        lake = ask(queries.lake().run)
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
        yield report
        return
    _judge_lake(report, lake)
    if report.lake["served"]:
        doctor = _Doctor(generator, report, database, s3_endpoint, past)
        try:
            for pair in ask(lambda con: tables_of(con, lake)):
                yield report
                doctor.look_at(*pair)
        except PolynyaError as error:
            report.add(ERROR, "catalog", str(error))
        finally:
            doctor.close()
    yield report


def _judge_rights(report: Report, found: Rights, schema: str) -> None:
    role = found.role
    if not found.may_use_schema:
        message = f"the role {role} may not use the schema {schema}"
        report.add(ERROR, "grants", message, grant(schema, role))
    elif found.unreadable:
        names = ", ".join(found.unreadable)
        message = f"the role {role} may not read {_some(found.unreadable, found.tables)}: {names}"
        report.add(ERROR, "grants", message, grant(schema, role))
    for writer in found.writers:
        report.add(
            WARNING,
            "grants",
            f"tables of inlined rows that {writer} makes from now on: {role} will not be able "
            "to read them",
            default_privileges(schema, role, writer),
        )
    if found.writable:
        report.add(
            WARNING,
            "grants",
            f"the role {role} may write to {_some(found.writable, found.tables)}: SELECT is enough",
        )
    for table, size in found.unindexed.items():
        report.add(
            WARNING if size > SMALL else NOTE,
            "index",
            f"{table} ({size / 1e6:,.1f} MB) has no index for ranges of files: every manifest "
            "costs a scan of it",
            create_index(schema, table),
        )


def _some(names: list[str], of: int) -> str:
    return f"{len(names)} of DuckLake's {of} tables"


def _judge_lake(report: Report, lake: Lake) -> None:
    report.lake = {
        "version": lake.version,
        "encrypted": lake.encrypted,
        "snapshot_id": lake.snapshot_id,
        "data_path": lake.data_path,
        "served": True,
    }
    try:
        check_lake(lake.version, lake.encrypted)
    except Refused as error:
        report.lake["served"] = False
        report.add(ERROR, "lake", str(error))
    if lake.data_path.partition("://")[0] not in SCHEMES:
        report.add(
            ERROR,
            "settings",
            f"the data path {lake.data_path} is not in S3: Iceberg clients reach the files of a "
            "lake in S3 only",
        )


class _Doctor:
    """Looks at one table after the other."""

    def __init__(
        self,
        generator: Generator,
        report: Report,
        database: str,
        s3_endpoint: str | None,
        past: int,
    ) -> None:
        self._generator = generator
        self._report = report
        self._past = past
        self._secrets = secrets_of(database)
        self._alone = CatalogAlone()
        self._ducklake: DuckLake | None = None
        self._files = reader_of_files(s3_endpoint)
        try:
            schema = generator.config.metadata_schema
            self._ducklake = DuckLake(database, schema, s3_endpoint)
        except (Unknown, RuntimeError, duckdb.Error) as error:
            message = f"rows are counted in the catalog only: {said(error, self._secrets)}"
            report.add(NOTE, "row counts", message)
        report.judge = (self._ducklake or self._alone).name

    def close(self) -> None:
        self._files.close()
        if self._ducklake is not None:
            self._ducklake.close()

    def look_at(self, schema: Schema, table: Table) -> None:
        """Add what is to be said of one table, all of it of one snapshot of the database."""
        seen = TableReport(full_name(schema, table), table.table_id)
        self._report.tables.append(seen)

        def look(con: Connection) -> None:
            lake = queries.lake().run(con)
            seen.counts.clear()
            opened = self._generator.open_table(con, lake, schema, table)
            seen.snapshots = len(opened.metadata.snapshots)
            seen.hidden_columns = hidden_of(opened)
            seen.default_columns = defaults_of(opened)
            seen.left_out = dict(Counter(left_out_of(opened).values()))
            self._vend(opened)
            self._count(opened, seen)
            self._look_into_files(opened)

        try:
            self._generator.read(look)
            seen.status = "served"
        except Refused as error:
            seen.status, seen.reason = "refused", str(error)
        except PolynyaError as error:
            seen.reason = str(error)
        except Exception as error:  # a fault of ours, and the other tables are still of interest
            seen.reason = f"{type(error).__name__}: {said(error, self._secrets)}"
        self._add_findings(seen)

    def _add_findings(self, seen: TableReport) -> None:
        if seen.reason:
            self._report.add(ERROR, seen.name, seen.reason)
        for column, reason in seen.hidden_columns.items():
            self._report.add(NOTE, seen.name, f"the column {column} is hidden: {reason}")
        for column, reason in seen.default_columns.items():
            level = NOTE if reason.startswith(PAST_FILES) else WARNING
            message = f"the column {column} has a default: {reason}"
            remedy = "an UPDATE of all rows writes it into new files; COLUMN_DEFAULTS=refuse"
            self._report.add(level, seen.name, message, remedy)
        for reason, number in seen.left_out.items():
            message = f"{_number(number, 'snapshot')} left out: {reason}"
            self._report.add(NOTE, seen.name, message)
        for count in seen.counts:
            if count.is_known and not count.is_same:
                self._report.add(
                    ERROR,
                    seen.name,
                    f"at snapshot {count.snapshot_id} DuckLake has {count.ducklake:,} rows, "
                    f"Iceberg clients get {count.iceberg:,}",
                )

    def _count(self, opened: OpenedTable, seen: TableReport) -> None:
        snapshots = opened.metadata.snapshots
        unknown: dict[str, list[int]] = {}
        for snapshot in [*_spread(snapshots[:-1], self._past), *snapshots[-1:]]:
            at = snapshot.snapshot_id
            ours = iceberg_rows(opened, snapshot.manifest_list)
            try:
                theirs = self._ducklake_rows(opened, at)
            except Unknown as error:
                theirs = None
                unknown.setdefault(str(error), []).append(at)
            seen.counts.append(Count(at, theirs, ours))
        for reason, at_snapshots in unknown.items():
            level = NOTE if self._ducklake is None else ERROR
            where = ", ".join(map(str, at_snapshots))
            message = f"DuckLake's rows cannot be counted at {where}: {reason}"
            self._report.add(level, seen.name, message)

    def _ducklake_rows(self, opened: OpenedTable, snapshot_id: int) -> int:
        con, lake = opened.con, opened.history.lake
        if self._ducklake is None:
            schema, table = opened.history.schema, opened.history.table
            return self._alone.rows(con, lake, schema, table, snapshot_id)
        # Under the name that it had then.
        for schema in queries.schemas_at(snapshot_id).run(con):
            for table in queries.tables_at(snapshot_id, schema.schema_id).run(con):
                if table.table_id == opened.history.table.table_id:
                    return self._ducklake.rows(schema, table, snapshot_id)
        raise Unknown("the table was not there")

    def _look_into_files(self, opened: OpenedTable) -> None:
        """Compare the catalog's count of each file with the file's own."""
        history = opened.history
        at = (history.lake, history.table.table_id, history.snapshot_id, *EVERY)
        files = {
            file_location(history.lake, history.schema, history.table, file): file
            for file in queries.data_files_at(*at).run(opened.con)
            if file.end_snapshot is None
        }
        elsewhere = [path for path in files if path.partition("://")[0] not in SCHEMES]
        if elsewhere:
            message = f"{_number(len(elsewhere), 'data file')} not in S3, such as {elsewhere[0]}"
            self._report.add(ERROR, opened.name, message)
        looked_at = [path for path in files if path.partition("://")[0] in SCHEMES][-FOOTERS:]
        for path, rows in self._own_counts(looked_at).items():
            file = files[path]
            what = f"ducklake_data_file {file.data_file_id} ({path})"
            if isinstance(rows, str):
                self._report.add(ERROR, opened.name, f"{what} cannot be read: {rows}")
            elif rows != file.record_count:
                message = f"{what} holds {rows:,} rows; the catalog says {file.record_count:,}"
                self._report.add(ERROR, opened.name, message)

    def _own_counts(self, paths: list[str]) -> dict[str, int | str]:
        """How many rows each file has, or why it cannot be read."""
        try:
            return self._footers(paths)
        except duckdb.Error:
            counts: dict[str, int | str] = {}
            for path in paths:
                try:
                    counts |= self._footers([path])
                except duckdb.Error as error:
                    counts[path] = said(error, self._secrets)
            return counts

    def _vend(self, opened: OpenedTable) -> None:
        """See whether credentials for this table can be vended, by the settings that are here."""
        history, virtual = opened.history, opened.metadata.location
        vending = CredentialVending(self._generator.config)
        grant = vending.scope(opened.con, history.lake, history.schema, history.table, virtual)
        if grant.reason:
            self._report.add(NOTE, opened.name, grant.reason, "docs/security.md says what fits")

    def _footers(self, paths: list[str]) -> dict[str, int | str]:
        if not paths:
            return {}
        names = ", ".join(map(literal, paths))
        sql = f"SELECT file_name, num_rows FROM parquet_file_metadata([{names}])"
        return dict(self._files.execute(sql).fetchall())


def _spread(items: list[Any], number: int) -> list[Any]:
    """Up to `number` of them, evenly spread, the first among them."""
    if len(items) <= number:
        return items
    return [items[place * len(items) // number] for place in range(number)]
