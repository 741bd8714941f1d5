"""What is wrong with the lake or a table, and what to do: doctor's findings."""

from typing import Any

from fastapi import APIRouter, Response
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.listing.entries import namespaces

from ...reports.generator import Generator
from ...reports.lake import health as checks
from ...reports.lake.report import served_lake
from ...reports.tables.opened import Wanted, open_at
from .. import rendering
from ..visit import TableOf, Visit, VisitOf
from ..work import Job

router = APIRouter()

SECONDS = 1.5
MOST_TABLES = 300
"""A lake with more tables is checked when somebody asks for that: it takes minutes."""


@router.get("/doctor")
async def health(visit: VisitOf, check: str = "") -> Response:
    """The lake; `check` is `all` for all tables of a large one, `again` for a new check."""
    site = visit.site
    known = site.doctor.known("lake")
    if known is None and check == "" and site.read(_number_of_tables) > MOST_TABLES:
        report = checks.check_rights(site.generator, site.lake)
        return visit.answer("health.html", report, is_large=True)
    if check == "again":
        site.doctor.job("lake", _check_lake(visit), seconds=0, again=True)
        return rendering.redirect(visit.path)
    job = site.doctor.job("lake", _check_lake(visit), seconds=SECONDS)
    return _answer(visit, "health.html", job)


@router.get("/tables/{namespace}/{name}/doctor")
async def table_health(visit: VisitOf, wanted: TableOf, check: str = "") -> Response:
    """A table, as of the newest snapshot."""
    site = visit.site
    newest = Wanted(wanted.namespace, wanted.name)
    head = site.read(lambda con: open_at(site.generator, con, newest, limit=1).head)

    def task(generator: Generator, job: Job) -> Any:
        return checks.check_table(generator, site.lake, wanted.namespace, wanted.name)

    key = ("table", head.table_id, head.snapshot.snapshot_id)
    if check == "again":
        site.doctor.job(key, task, seconds=0, again=True)
        return rendering.redirect(visit.path)
    job = site.doctor.job(key, task, seconds=SECONDS)
    return _answer(visit, "table_health.html", job, head)


def _check_lake(visit: Visit) -> Any:
    lake = visit.site.lake

    def task(generator: Generator, job: Job) -> Any:
        def tell(report: checks.HealthReport) -> bool:
            job.partial = report
            return not job.is_cancelled

        return checks.check_lake(generator, lake, tell)

    return task


def _number_of_tables(con: Connection) -> int:
    lake = served_lake(con)
    schemas = queries.schemas_at(lake.snapshot_id).run(con)
    return namespaces(lake.snapshot_id, schemas, 1).run(con).tables


def _answer(visit: Visit, template: str, job: Job, head: Any = None) -> Response:
    """What is known so far; a page that is not finished loads itself again."""
    if job.error is not None:
        raise job.error
    found = job.result if job.is_done else job.partial or checks.NOTHING_YET
    report = checks.of(found, head, job.finished)
    return visit.answer(template, report, is_large=False)
