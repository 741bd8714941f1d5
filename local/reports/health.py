"""What `polynya doctor` finds, as far as it has got."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from polynya.ducklake import queries
from polynya.runtime.errors import NoSuchTable
from polynya.runtime.namespaces import dotted, parsed

from ..lakes.opened import LocalLake
from .diagnosis import check_up, diagnose, diagnose_table
from .findings import CONSEQUENCES, Finding, Report, TableResult
from .generator import Generator
from .opened_table import TableHead

PAST = 3
"""Past snapshots of each table at which rows are counted, as `doctor` does."""
ORDER = list(CONSEQUENCES)


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
    is_done: bool = False
    finished: datetime | None = None
    head: TableHead | None = None
    """The table that was checked; None: the lake."""


def health(report: Report, *, is_done: bool = True) -> HealthReport:
    """What a report of doctor says."""
    return HealthReport(
        is_well=report.is_well,
        worst=report.worst,
        summary=report.summary,
        counted_by=report.counted_by,
        findings=sorted(report.findings, key=lambda finding: ORDER.index(finding.consequence)),
        tables=list(report.tables),
        is_done=is_done,
    )


def check_lake(
    generator: Generator, lake: LocalLake, tell: Callable[[HealthReport], bool]
) -> HealthReport:
    """Check the lake and all its tables.

    Args:
        tell: gets what is known after each table; when it returns False, the check stops.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    report = Report()
    for report in diagnose(generator, lake, PAST):
        if not tell(health(report, is_done=False)):
            break
    return health(report)


def check_rights(generator: Generator, lake: LocalLake) -> HealthReport:
    """Check the lake without its tables.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    return health(check_up(generator, lake))


def check_table(generator: Generator, lake: LocalLake, namespace: str, name: str) -> HealthReport:
    """Check one table as of the newest snapshot.

    Raises:
        NoSuchTable: there is none of this name.
    """
    pair = generator.read(queries.table_at(None, parsed(namespace), name).run)
    if pair is None:
        raise NoSuchTable(f"there is no table {namespace}.{dotted(name)} at the newest snapshot")
    return health(diagnose_table(generator, lake, *pair, PAST))


def of(report: HealthReport, head: TableHead | None, finished: datetime | None) -> HealthReport:
    """The report with the table that it is about, and the time at which it was finished."""
    return replace(report, head=head, finished=finished)


NOTHING_YET = health(Report(), is_done=False)
"""The findings of a check that has just begun."""
