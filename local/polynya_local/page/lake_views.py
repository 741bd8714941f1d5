"""The pages of the lake: its tables and views, its changes, its health, SQL, and one view.

The health of the lake or of a table is what doctor finds: what is wrong, and what to do.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response
from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.runtime.errors import BadRequest, Forbidden, PolynyaError

from ..queries.lake_entries import namespaces
from ..reports.changes import GROUPS, ChangesQuery, changes_report
from ..reports.client_faults import own_clients
from ..reports.diagnosis import NOTHING_YET, PAST, check_up, diagnose, diagnose_table
from ..reports.diagnosis import health as health_report
from ..reports.generator import Generator, served_lake
from ..reports.lake import Search, add_statuses, lake_report, view_report
from ..reports.opened_table import TableRef, open_at
from ..reports.snippets import FIRST_CLIENTS, client, connect_blocks
from ..reports.table_history import add_counts
from ..reports.visitor_sql import LONGEST, SqlDownload, SqlQuestion, sql_report
from . import charts, table_views
from .links import home, link, time_of, visitor
from .request import (
    PageNumber,
    PageRequest,
    PageRequestOf,
    SnapshotId,
    TableOf,
    file_answer,
    redirect,
)
from .state import Job

router = APIRouter()

Order = Literal["name", "rows", "files", "bytes", "changed"]
Kind = Literal["rows", "columns, names and properties", "created", "dropped", "maintenance"]


@router.get("/")
def lake(
    request: PageRequestOf,
    search: Annotated[str, Query(max_length=1000)] = "",
    namespace: str | None = None,
    sort: Order = "name",
    page: PageNumber = 1,
) -> Response:
    """A page of the list of tables and views."""
    if search.strip().isdecimal() or time_of(search) is not None:
        return redirect(link(home(), snapshot=search.strip()))
    state, query = request.state, Search(search.strip(), namespace or None, sort, page)
    report = state.read(lambda con: lake_report(state.generator, con, request.snapshot, query))
    place = replace(state.place, lake_snapshot=request.snapshot)
    connect = {name: connect_blocks(client(name), place) for name in FIRST_CLIENTS}
    own = own_clients(state.generator.config.files.clients)
    report = add_statuses(report, state.statuses)
    chart = charts.growth(report.sizes)
    return request.answer("lake.html", report, connect=connect, own=own, chart=chart)


@router.get("/changes")
def changes(
    request: PageRequestOf,
    until: SnapshotId = None,
    since: Annotated[str, Query(max_length=100)] = "",
    author: Annotated[str, Query(max_length=10_000)] = "",
    table: Annotated[str, Query(max_length=10_000)] = "",
    kind: Literal[Kind, ""] = "",
) -> Response:
    """A page of snapshots; `until` is the newest of them, `since` a day or a time in UTC."""
    newest = until if until is not None else request.snapshot
    begin = time_of(since, ends_day=False)
    if since and begin is None:
        raise BadRequest(f"since is neither a day like 2026-11-20 nor a time: {since}")
    query = ChangesQuery(newest, begin, author, table.strip(), kind)
    state = request.state

    report = state.read(lambda con: changes_report(con, query))
    with suppress(PolynyaError):  # a table that cannot be read hides no change
        counted = state.read(lambda con: add_counts(state.generator, con, report.snapshots))
        report = replace(report, snapshots=counted)
    chart = charts.growth(report.sizes)
    return request.answer("changes.html", report, kinds=[*GROUPS], chart=chart)


SECONDS = 1.5
MOST_TABLES = 300
"""A lake with more tables is checked only on request: it takes minutes."""


@router.get("/doctor")
def health(request: PageRequestOf, check: str = "", stop: str = "") -> Response:
    """The health of the lake.

    `check=all` checks every table of a large lake, and `check=again` repeats the check; `stop` ends
    it after the current table.
    """
    state = request.state
    # Rights of the database's role, advice and sums are those of the lake as a whole.
    if not visitor().sees_all:
        raise Forbidden("the health of the lake is shown to those who may read all of it")
    if stop:
        state.doctor.stop("lake")
        return redirect(home(request.path))
    last_job = state.doctor.existing_job("lake")
    if last_job is None and check == "" and state.read(_number_of_tables) > MOST_TABLES:
        report = health_report(check_up(state.generator, state.lake))
        return request.answer("health.html", report, is_large=True)
    if check == "again":
        state.doctor.job("lake", _check_lake(request), seconds=0, again=True)
        return redirect(home(request.path))
    job = state.doctor.job("lake", _check_lake(request), seconds=SECONDS)
    return _answer(request, "health.html", job)


@router.get("/tables/{namespace}/{name}/doctor")
def table_health(request: PageRequestOf, ref: TableOf, check: str = "") -> Response:
    """The health of a table, as of the newest snapshot."""
    state = request.state
    newest = TableRef(ref.namespace, ref.name)
    head = state.read(lambda con: open_at(state.generator, con, newest, limit=1)[1])

    def task(generator: Generator, job: Job) -> Any:
        names = ref.namespace, ref.name
        return health_report(diagnose_table(generator, state.lake, *names, PAST))

    key = ("table", head.table_id, head.snapshot.snapshot_id)
    if check == "again":
        state.doctor.job(key, task, seconds=0, again=True)
        return redirect(home(request.path))
    job = state.doctor.job(key, task, seconds=SECONDS)
    return _answer(request, "table_health.html", job, head)


def _check_lake(request: PageRequest) -> Any:
    lake = request.state.lake

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


def _answer(request: PageRequest, template: str, job: Job, head: Any = None) -> Response:
    """What is known so far; a page that is not finished loads itself again."""
    if job.error is not None:
        raise job.error
    result = job.result if job.is_done else job.partial or NOTHING_YET
    report = replace(result, head=head, finished=job.finished)
    return request.answer(template, report, is_large=False)


@router.get("/views/{namespace}/{name}")
def view(request: PageRequestOf, ref: TableOf) -> Response:
    """A view at the shown snapshot: its text, and what Iceberg clients get."""
    names = (ref.namespace, ref.name, ref.snapshot_id)
    location = request.state.generator.virtual_location
    report = request.state.read(lambda con: view_report(con, *names, location))
    return request.answer("view.html", report)


@router.get("/sql")
def sql(
    request: PageRequestOf,
    query: Annotated[str, Query(max_length=LONGEST)] = "",
    download: Literal["csv", "parquet", ""] = "",
    stop: Literal["1", ""] = "",
    sec_fetch_site: Annotated[str, Header(include_in_schema=False)] = "",
) -> Response:
    """The rows of a SELECT, or all of them as a file; `stop` ends it."""
    state, query = request.state, query.replace("\r\n", "\n").strip()
    report, directories = state.read(
        lambda con: sql_report(state.generator, con, request.snapshot, query, state.reader.limits)
    )
    # A link on another site runs nothing: the visitor sees the text first.
    if not query or sec_fetch_site not in ("", "none", "same-origin"):
        return request.answer("sql.html", report, job=None)
    question = SqlQuestion(query, report.snapshot.snapshot_id, directories)
    task = SqlDownload(question, download) if download else question
    if stop:
        state.previews.stop(task)
        state.reader.stop(task)
        return request.answer("sql.html", report, job=None)
    seconds = table_views.SECONDS
    job = table_views.previewed(state, task, lambda _, job: state.reader.answer(task), seconds)
    if job.error is not None:
        raise job.error
    if not job.is_done:
        status = 202 if request.format == "json" else 200
        return request.answer("sql.html", report, status, job=job)
    if not download:
        return request.answer("sql.html", replace(report, answer=job.result), job=job)
    state.previews.forget(task)
    if job.result.body is None:
        raise BadRequest(f"there is no file: {job.result.notes.get('body', 'it is missing')}")
    file = f"query-{question.snapshot}.{download}"
    return file_answer(job.result.body, table_views.MEDIA_TYPES[download], file)
