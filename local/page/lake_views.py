"""The pages of the lake: its tables and views, its changes, its health, and one view.

The health of the lake or of a table is what doctor finds: what is wrong, and what to do.
"""

from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.entries import namespaces

from ..reports.changes import changes_report
from ..reports.diagnosis import NOTHING_YET, PAST, check_up, diagnose, diagnose_table
from ..reports.diagnosis import health as health_report
from ..reports.generator import Generator, served_lake
from ..reports.lake import Search, lake_report, view_report, with_statuses
from ..reports.opened_table import TableRef, open_at
from ..reports.snippets import FIRST_CLIENTS, client, connect_blocks
from .site import Job
from .visit import PageNumber, PageRequest, PageRequestOf, SnapshotId, TableOf, redirect

router = APIRouter()

Order = Literal["name", "rows", "files", "bytes", "changed"]


@router.get("/")
async def lake(
    visit: PageRequestOf,
    search: Annotated[str, Query(max_length=1000)] = "",
    namespace: str | None = None,
    sort: Order = "name",
    page: PageNumber = 1,
) -> Response:
    """A page of the list of tables and views."""
    site, query = visit.site, Search(search.strip(), namespace or None, sort, page)
    report = site.read(lambda con: lake_report(site.generator, con, visit.snapshot, query))
    place = replace(site.place, lake_snapshot=visit.snapshot)
    connect = {name: connect_blocks(client(name), place) for name in FIRST_CLIENTS}
    return visit.answer("lake.html", with_statuses(report, site.statuses), connect=connect)


@router.get("/changes")
async def changes(visit: PageRequestOf, until: SnapshotId = None) -> Response:
    """A page of snapshots; `until` is the newest of them."""
    newest = until if until is not None else visit.snapshot
    report = visit.site.read(lambda con: changes_report(con, newest))
    return visit.answer("changes.html", report)


SECONDS = 1.5
MOST_TABLES = 300
"""A lake with more tables is checked when somebody asks for that: it takes minutes."""


@router.get("/doctor")
async def health(visit: PageRequestOf, check: str = "") -> Response:
    """The health of the lake; `check`: `all` for all tables of a large one, `again` for anew."""
    site = visit.site
    last_job = site.doctor.known("lake")
    if last_job is None and check == "" and site.read(_number_of_tables) > MOST_TABLES:
        report = health_report(check_up(site.generator, site.lake))
        return visit.answer("health.html", report, is_large=True)
    if check == "again":
        site.doctor.job("lake", _check_lake(visit), seconds=0, again=True)
        return redirect(visit.path)
    job = site.doctor.job("lake", _check_lake(visit), seconds=SECONDS)
    return _answer(visit, "health.html", job)


@router.get("/tables/{namespace}/{name}/doctor")
async def table_health(visit: PageRequestOf, ref: TableOf, check: str = "") -> Response:
    """The health of a table, as of the newest snapshot."""
    site = visit.site
    newest = TableRef(ref.namespace, ref.name)
    head = site.read(lambda con: open_at(site.generator, con, newest, limit=1)[1])

    def task(generator: Generator, job: Job) -> Any:
        names = ref.namespace, ref.name
        return health_report(diagnose_table(generator, site.lake, *names, PAST))

    key = ("table", head.table_id, head.snapshot.snapshot_id)
    if check == "again":
        site.doctor.job(key, task, seconds=0, again=True)
        return redirect(visit.path)
    job = site.doctor.job(key, task, seconds=SECONDS)
    return _answer(visit, "table_health.html", job, head)


def _check_lake(visit: PageRequest) -> Any:
    lake = visit.site.lake

    def task(generator: Generator, job: Job) -> Any:
        for report in diagnose(generator, lake, PAST):
            job.partial = health_report(report, is_done=False)
            if job.is_cancelled:
                break
        return health_report(report)

    return task


def _number_of_tables(con: Connection) -> int:
    lake = served_lake(con)
    schemas = queries.schemas_at(lake.snapshot_id).run(con)
    return namespaces(lake.snapshot_id, schemas, 1).run(con).tables


def _answer(visit: PageRequest, template: str, job: Job, head: Any = None) -> Response:
    """What is known so far; a page that is not finished loads itself again."""
    if job.error is not None:
        raise job.error
    result = job.result if job.is_done else job.partial or NOTHING_YET
    report = replace(result, head=head, finished=job.finished)
    return visit.answer(template, report, is_large=False)


@router.get("/views/{namespace}/{name}")
async def view(visit: PageRequestOf, ref: TableOf) -> Response:
    """A view at the shown snapshot: its text, and what Iceberg clients get."""
    names = (ref.namespace, ref.name, ref.snapshot_id)
    location = visit.site.generator.virtual_location
    report = visit.site.read(lambda con: view_report(con, *names, location))
    return visit.answer("view.html", report)
