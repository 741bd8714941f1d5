"""`polynya doctor`: compares DuckLake's catalog with what Iceberg clients get.

The lake is checked first (the rights of the database role, the version, the data path), then each
table. `health` turns a report into what the page shows.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from polynya.ducklake import queries
from polynya.ducklake.rows.objects import Lake
from polynya.mapping import tables
from polynya.runtime.errors import NoSuchTable, PolynyaError, Refused
from polynya.runtime.namespaces import dotted, parsed
from polynya.storage.s3_locations import is_s3

from ..lakes.opened import LocalLake
from .advice import Advice, lake_advice
from .findings import (
    CONSEQUENCES,
    ERROR,
    NOTE,
    SLOW,
    UNREADABLE,
    WARNING,
    WRONG_ROWS,
    Finding,
    Report,
    TableName,
    TableResult,
)
from .generator import Generator, tables_of
from .opened_table import TableHead
from .rights import (
    Rights,
    default_privileges,
    grant,
    index_statement,
    never_inlines,
    rights,
)
from .table_checks import TableCheck

PAST = 3
"""Past snapshots of each table at which rows are counted."""


SMALL_STATISTICS = 16 * 1024 * 1024  # bytes, which a scan without an index reads quickly


def check_rights(report: Report, role_rights: Rights, schema: str) -> None:
    """Add findings about missing grants, default privileges and indexes, and needless grants."""
    role = role_rights.role
    if not role_rights.may_use_schema:
        message = f"the role {role} may not use the schema {schema}"
        report.add(ERROR, "grants", message, grant(schema, role))
    elif role_rights.unreadable:
        names = ", ".join(role_rights.unreadable)
        unreadable = _some(role_rights.unreadable, role_rights.tables)
        message = f"the role {role} may not read {unreadable}: {names}"
        report.add(ERROR, "grants", message, grant(schema, role))
    for writer in role_rights.writers:
        report.add(
            WARNING,
            "grants",
            f"the role {role} may not read tables of inlined rows that {writer} will create",
            default_privileges(schema, role, writer),
            UNREADABLE,
        )
    if role_rights.writable:
        writable = _some(role_rights.writable, role_rights.tables)
        message = f"the role {role} may write to {writable}: SELECT is enough"
        report.add(WARNING, "grants", message)
    for index, size in role_rights.unindexed.items():
        report.add(
            WARNING if size > SMALL_STATISTICS else NOTE,
            "index",
            f"{index.table} ({size / 1e6:,.1f} MB) {index.lack}",
            index_statement(schema, index),
            SLOW,
        )


def check_replication(report: Report, role_rights: Rights, *, inlines: bool) -> None:
    """Add findings about a catalog that logical replication writes only in part."""
    if names := role_rights.unreplicated:
        message = f"{_some(names, role_rights.tables)} are not replicated: {', '.join(names)}"
        report.add(ERROR, "replication", message, REFRESH, WRONG_ROWS)
    if role_rights.is_subscriber and inlines:
        report.add(
            WARNING,
            "replication",
            "DuckLake makes a table at the first inlined rows or deletes of a table, which logical "
            "replication does not send: clients then miss rows, and get deleted ones",
            NEVER_INLINE,
            WRONG_ROWS,
        )


REFRESH = "add them to the publication, and ALTER SUBSCRIPTION … REFRESH PUBLICATION"
NEVER_INLINE = (
    "CALL set_option('data_inlining_row_limit', 0), in the published lake and for each schema and "
    "table that has the option"
)


def _some(names: list[str], number: int) -> str:
    return f"{len(names)} of DuckLake's {number} tables"


def check_lake(report: Report, lake: Lake) -> None:
    """Add the properties of the lake, and findings if it is not served or not in S3."""
    report.lake = {
        "version": lake.version,
        "encrypted": lake.encrypted,
        "snapshot_id": lake.snapshot_id,
        "data_path": lake.data_path,
        "served": True,
    }
    try:
        tables.check_lake(lake)
    except Refused as error:
        report.lake["served"] = False
        report.add(ERROR, "lake", str(error))
    if not is_s3(lake.data_path):
        report.add(
            ERROR,
            "settings",
            f"the data path {lake.data_path} is not in S3: Iceberg clients reach the files of a "
            "lake in S3 only",
        )


def diagnose(
    generator: Generator, opened: LocalLake, past: int, *, every_file: bool = False
) -> Iterator[Report]:
    """Check the rights of the role, the lake, and each table.

    Yields the same report before each table and at the end, so that progress can be shown.

    Args:
        opened: the lake that the generator reads.
        past: how many past snapshots of each table are counted, besides the newest.
        every_file: compare all files of a table with what the catalog claims, however many.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    report = check_up(generator, opened)
    if not report.lake.get("served"):
        yield report
        return
    check = TableCheck(generator, report, opened.database, past, every_file=every_file)
    try:
        lake = generator.read(queries.lake().run)
        pairs = [*generator.read(lambda con: tables_of(con, lake))]
        report.in_all = len(pairs)
        for pair in pairs:
            yield report
            check.run(*pair)
        with suppress(PolynyaError):  # other checks report what cannot be read
            report.advice = generator.read(lambda con: lake_advice(con, lake, generator.aws))
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
    finally:
        check.close()
    yield report


def diagnose_table(
    generator: Generator, opened: LocalLake, namespace: str, name: str, past: int
) -> Report:
    """Check one table as of the newest snapshot.

    Args:
        past: as in `diagnose`.

    Raises:
        NoSuchTable: there is none of this name.
    """
    pair = generator.read(queries.table_at(None, parsed(namespace), name).run)
    if pair is None:
        raise NoSuchTable(f"there is no table {namespace}.{dotted(name)} at the newest snapshot")
    report = Report()
    check = TableCheck(generator, report, opened.database, past)
    try:
        check.run(*pair)
    finally:
        check.close()
    return report


def check_up(generator: Generator, opened: LocalLake) -> Report:
    """Check the rights of the role and the lake, without its tables.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    report = Report()
    schema = generator.config.metadata_schema
    # The role of a mirror is our own, and the mirror has all indexes.
    role_rights = None if opened.is_mirror else generator.read(lambda con: rights(con, schema))
    if role_rights is not None:
        check_rights(report, role_rights, schema)
    try:
        lake = generator.read(queries.lake().run)
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
        return report
    check_lake(report, lake)
    if role_rights is not None and role_rights.is_subscriber:
        inlines = not generator.read(never_inlines)
        check_replication(report, role_rights, inlines=inlines)
    return report


@dataclass(frozen=True, slots=True)
class TableAdvice:
    """The advice for a table, or for the lake as a whole."""

    table: TableName | None
    """None: for the lake as a whole."""
    advice: Advice


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The findings of doctor, the worst first."""

    is_well: bool
    worst: str
    """The worst consequence of the findings."""
    summary: str
    counted_by: str
    """The program that counts DuckLake's rows."""
    findings: list[Finding]
    tables: list[TableResult]
    in_all: int
    """How many tables the lake has; more than in `tables` while the check runs, or if it was
    stopped."""
    advice: list[TableAdvice]
    """The advice for the lake, then that for its tables."""
    is_done: bool = False
    finished: datetime | None = None
    head: TableHead | None = None
    """The table that was checked; None: the lake."""


def health(report: Report, *, is_done: bool = True) -> HealthReport:
    """What the page shows of a report of doctor."""
    order = list(CONSEQUENCES)
    return HealthReport(
        is_well=report.is_well,
        worst=report.worst,
        summary=report.summary,
        counted_by=report.counted_by,
        findings=sorted(report.findings, key=lambda finding: order.index(finding.consequence)),
        tables=list(report.tables),
        in_all=report.in_all,
        advice=[
            *(TableAdvice(None, advice) for advice in report.advice),
            *(
                TableAdvice(table.table, advice)
                for table in report.tables
                for advice in table.advice
            ),
        ],
        is_done=is_done,
    )


NOTHING_YET = health(Report(), is_done=False)
"""The findings of a check that has just begun."""
