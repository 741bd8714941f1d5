"""The pages of a table.

They show its columns, its order on disk and its history; its files; the difference of two
snapshots; rows, through the Iceberg endpoints and in native DuckLake; how each client reads it; and
what Iceberg clients see of it: the metadata document, the manifest list, the manifests.
"""

import re
from collections.abc import Hashable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pg8000.native import Connection
from polynya.ducklake.rows.listing import LARGEST_ID
from polynya.runtime.errors import BadRequest
from polynya.storage.s3_locations import bucket_and_key
from pydantic import Field

from ..lakes.lake_files import ALIAS
from ..reports.changed_rows import KINDS, ChangesAnswer
from ..reports.data_files import FilesQuery, files_report
from ..reports.difference import add_paths
from ..reports.difference import difference as difference_of
from ..reports.generator import Generator
from ..reports.metadata_files import IcebergHead, iceberg_head, iceberg_report, manifest_report
from ..reports.opened_table import (
    ReadingReport,
    TableHead,
    TableRef,
    listed_snapshot,
    open_at,
    reading_report,
)
from ..reports.preview import (
    Answer,
    Download,
    DownloadAnswer,
    Lines,
    Preparation,
    PreviewReport,
    preparation,
)
from ..reports.preview_sql import MOST_CONDITIONS, OPERATORS
from ..reports.preview_worker import AnyAnswer
from ..reports.profile import ProfileQuestion, ProfileReport
from ..reports.table_history import table_overview
from . import charts
from .request import PageNumber, PageRequest, PageRequestOf, SnapshotId, TableOf, file_answer
from .state import Job, PageState, Task

router = APIRouter()


@router.get("/tables/{namespace}/{name}")
def table(
    request: PageRequestOf,
    ref: TableOf,
    until: SnapshotId = None,
    scale: Literal["time", "steps"] = "time",
) -> Response:
    """The table; `until` is the newest snapshot of the history that is shown."""
    state = request.state
    report = state.read(lambda con: table_overview(state.generator, con, ref, until))
    chart = charts.history(report.snapshots, report.head.snapshot.snapshot_id, scale)
    return request.answer("table.html", report, chart=chart, scale=scale)


Order = Literal["newest", "size", "smallest", "rows"]


@router.get("/tables/{namespace}/{name}/files")
def files(
    request: PageRequestOf,
    ref: TableOf,
    sort: Order = "newest",
    column: Annotated[str, Query(max_length=10_000)] = "",
    page: PageNumber = 1,
) -> Response:
    """A page of files, and pictures of all of them."""
    state, which = request.state, FilesQuery(sort, page, column)
    report = state.read(lambda con: files_report(state.generator, con, ref, which))
    return request.answer(
        "files.html",
        report,
        sizes=charts.sizes(report.sizes, report.target_bytes if report.merge else 0),
        bounds=charts.bounds(report.overlap),
    )


Id = Annotated[int, Query(ge=0, le=LARGEST_ID)]
Before = Annotated[Annotated[int, Field(ge=0, le=LARGEST_ID)] | None, Query(alias="from")]


@router.get("/tables/{namespace}/{name}/difference")
def difference(
    request: PageRequestOf,
    ref: TableOf,
    to: Id,
    before: Before = None,
    page: PageNumber = 1,
    rows: Literal["inserted", "deleted", "updated", ""] = "",
) -> Response:
    """The difference of two snapshots, which are in the query as `from` and `to`.

    Without `from`: what the snapshot `to` changed.
    """
    state, arguments = request.state, (ref, before, to, page, rows)
    report, question = state.read(lambda con: difference_of(state.generator, con, *arguments))

    def task(generator: Generator, job: Job) -> ChangesAnswer:
        complete = generator.read(lambda con: add_paths(generator, con, ref, question))
        return state.reader.answer(complete)

    job = previewed(state, question, task, SECONDS_FOR_ROWS)
    if job.error is not None:
        raise job.error
    if job.is_done:
        report = replace(report, rows=job.result, agree=job.result.agree, is_done=True)
    return request.answer("difference.html", report, kinds=[*KINDS])


LINE = re.compile("column([2-9]|[1-9][0-9]+)?")
"""The keys of a filter's lines: column, operator, value; column2, operator2, value2; …"""


SECONDS = 2.0
"""How long a visitor waits before a page says that rows are being read."""
SECONDS_FOR_ROWS = 0.7
"""How long a visitor waits for the rows that changed; the rest of the difference is there."""
AGAIN_SECONDS = 30.0
"""The time after which an answer that failed or lacks a part is tried again."""


@router.get("/tables/{namespace}/{name}/rows")
def rows(
    request: PageRequestOf,
    ref: TableOf,
    sort: Annotated[str, Query(max_length=10_000)] = "",
    order: Literal["ascending", "descending"] = "ascending",
    first: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    download: Literal["csv", "parquet", ""] = "",
) -> Response:
    """A page of the rows, or all of them as a file; a filter is in the query.

    `first`: how many rows are on the pages before.
    """
    state, lines = request.state, lines_of(request.query)
    lines = replace(lines, sort=sort, is_descending=order == "descending", first=first)

    def prepare(con: Connection, lines: Lines) -> tuple[TableHead, Preparation | None]:
        table, head = open_at(state.generator, con, ref, limit=1)
        return head, preparation(table, head, lines)

    def form_with_error(error: BadRequest) -> Response:
        """The page with the error, and with what was entered."""
        _, blank = state.read(lambda con: prepare(con, Lines()))
        if request.format == "json" or blank is None:
            raise error
        report = blank.report(Answer(), state.reader.limits, is_mirror=state.lake.is_mirror)
        return request.answer("rows.html", report, 400, **_form(lines), error=str(error))

    try:
        head, prepared = state.read(lambda con: prepare(con, lines))
    except BadRequest as error:
        return form_with_error(error)
    if prepared is None:
        return request.answer("not_served.html", {"head": head}, tab="rows")
    if download:
        question = Download(prepared.question, download)
        file = previewed(state, question, lambda _, job: state.reader.answer(question), SECONDS)
        if isinstance(file.error, BadRequest):
            return form_with_error(file.error)
        if file.is_done and file.error is None:
            state.previews.forget(question)
            return _file_of(file.result, head, download)
        return request.answer_when_done("rows.html", head, file)

    def task(generator: Generator, job: Job) -> PreviewReport:
        job.progress = "Rows are being read."
        answer = state.reader.answer(prepared.question)
        return prepared.report(answer, state.reader.limits, is_mirror=state.lake.is_mirror)

    job = previewed(state, prepared.question, task, SECONDS)
    if isinstance(job.error, BadRequest):
        return form_with_error(job.error)
    if job.error is None and job.is_done:
        return request.answer("rows.html", job.result, **_form(lines), error="")
    return request.answer_when_done("rows.html", head, job)


@router.get("/tables/{namespace}/{name}/profile")
def profile(
    request: PageRequestOf,
    ref: TableOf,
    read: Literal["1", ""] = "",
    stop: Literal["1", ""] = "",
) -> Response:
    """What the statistics say of each column; with `read` what all rows say; `stop` ends that."""
    state = request.state

    def prepare(con: Connection) -> tuple[TableHead, Preparation | None]:
        table, head = open_at(state.generator, con, ref, limit=1)
        return head, preparation(table, head, Lines())

    head, prepared = state.read(prepare)
    if prepared is None:
        return request.answer("not_served.html", {"head": head}, tab="profile")
    question = ProfileQuestion(prepared.question)
    report = ProfileReport(head, prepared.choices, state.reader.limits)
    if stop:
        state.previews.stop(question)
        state.reader.stop(question)
    if stop or not read:
        return request.answer("profile.html", report, job=None)
    job = previewed(state, question, lambda _, job: state.reader.answer(question), SECONDS)
    if job.error is not None:
        raise job.error
    if not job.is_done:
        status = 202 if request.format == "json" else 200
        return request.answer("profile.html", report, status, job=job)
    return request.answer("profile.html", replace(report, answer=job.result), job=job)


def _form(lines: Lines) -> dict[str, Any]:
    """What the form of a filter is filled with."""
    parts = zip(lines.columns, lines.operators, lines.values, strict=True)
    conditions = [dict(zip(("column", "operator", "value"), line, strict=True)) for line in parts]
    filled = [condition for condition in conditions if condition["column"]]
    number = min(MOST_CONDITIONS, len(filled) + 1)
    return {"operators": OPERATORS, "lines": number, "filled": filled}


MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}


def _file_of(answer: DownloadAnswer, head: TableHead, format: str) -> Response:
    """A download, under the name of its table and snapshot.

    Raises:
        BadRequest: there is none; with the reason.
    """
    if answer.body is None:
        reason = answer.notes.get("body", "it is missing")
        raise BadRequest(f"there is no file: {reason}. Use a filter that leaves fewer rows")
    name = re.sub(r"[^\w.-]+", "_", f"{head.namespace}.{head.name}", flags=re.ASCII)
    file = f"{name}-{head.snapshot.snapshot_id}.{format}"
    return file_answer(answer.body, MEDIA_TYPES[format], file)


def previewed(state: PageState, question: Hashable, task: Task, seconds: float) -> Job:
    """The job that answers a question, tried again some time after it lacked a part."""
    is_stale = _is_stale(state.previews.existing_job(question))
    return state.previews.job(question, task, seconds=seconds, again=is_stale)


def _is_stale(job: Job | None) -> bool:
    """Whether a result lacks parts, and is not from a moment ago."""
    if job is None or not job.is_done or job.finished is None:
        return False
    age = (datetime.now(UTC) - job.finished).total_seconds()
    return age > AGAIN_SECONDS and (job.error is not None or bool(_notes(job.result)))


def _notes(result: PreviewReport | AnyAnswer) -> dict[str, str]:
    return (result.answer if isinstance(result, PreviewReport) else result).notes


def lines_of(query: dict[str, str]) -> Lines:
    """The lines of a form, in their order."""
    numbers = sorted(
        (int(match[1] or 1), match[1] or "") for match in map(LINE.fullmatch, query) if match
    )
    suffixes = [suffix for _, suffix in numbers]
    columns, operators, values = (
        [query.get(key + suffix, "") for suffix in suffixes]
        for key in ("column", "operator", "value")
    )
    return Lines(columns, operators, values)


@router.get("/tables/{namespace}/{name}/read")
def reading(
    request: PageRequestOf, ref: TableOf, client: Annotated[str, Query(max_length=100)] = ""
) -> Response:
    """The snippets of a client, and what is wrong with it; as JSON those of all clients."""
    report = request.state.read(lambda con: _report(request.state, con, ref))
    names = [one_client.name for one_client in report.clients]
    if client and names and client not in names:
        raise BadRequest(f"there is no client {client}; there are {', '.join(names)}")
    template = "reading.html" if names else "not_served.html"
    chosen = client or (names[0] if names else "")
    return request.answer(template, report, tab="read", chosen=chosen)


def _report(state: PageState, con: Connection, ref: TableRef) -> ReadingReport:
    table, head = open_at(state.generator, con, ref, limit=1)
    virtual = bucket_and_key(table.files.table.location)
    is_past = ref.snapshot_id is not None
    place = replace(
        state.place,
        namespace=head.namespace,
        table=head.name,
        lake_snapshot=table.snapshot_id if is_past else None,
        snapshot_id=listed_snapshot(table) if is_past else None,
        virtual_bucket=virtual[0] if virtual else ALIAS,
    )
    return reading_report(table, head, place)


SECONDS_FOR_FILES = 1.5
"""How long a visitor waits for files that are generated."""


@router.get("/tables/{namespace}/{name}/iceberg")
def iceberg(request: PageRequestOf, ref: TableOf) -> Response:
    """The document and the manifests of its newest snapshot."""
    head = _head(request, ref)
    if not head.manifest_list:
        return request.answer("iceberg_none.html", head)

    def task(generator: Generator, job: Job) -> Any:
        return generator.read(lambda con: iceberg_report(generator, con, _shown_ref(ref, head)))

    job = request.state.files.job((head.manifest_list, ""), task, seconds=SECONDS_FOR_FILES)
    return request.answer_when_done("iceberg.html", head.head, job)


@router.get("/tables/{namespace}/{name}/iceberg/metadata")
def metadata(request: PageRequestOf, ref: TableOf) -> Response:
    """The metadata document, unchanged."""
    return request.answer("metadata.html", _head(request, ref))


@router.get("/tables/{namespace}/{name}/iceberg/{manifest}")
def manifest(request: PageRequestOf, ref: TableOf, manifest: str, page: PageNumber = 1) -> Response:
    """A manifest with a page of its entries."""
    head = _head(request, ref)

    def task(generator: Generator, job: Job) -> Any:
        pinned = _shown_ref(ref, head)
        return generator.read(lambda con: manifest_report(generator, con, pinned, manifest, page))

    job = request.state.files.job(
        (head.manifest_list, manifest, page), task, seconds=SECONDS_FOR_FILES
    )
    return request.answer_when_done("manifest.html", head.head, job)


def _head(request: PageRequest, ref: TableRef) -> IcebergHead:
    state = request.state
    return state.read(lambda con: iceberg_head(state.generator, con, ref))


def _shown_ref(ref: TableRef, head: IcebergHead) -> TableRef:
    """The table at the snapshot that the visitor has seen, even if the lake has newer ones."""
    return TableRef(ref.namespace, ref.name, head.head.snapshot.snapshot_id)
