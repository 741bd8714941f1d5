"""The pages of a table.

They show its columns, its order on disk and its history; its files; the difference of two
snapshots; rows, through the Iceberg endpoints and in native DuckLake; how each client reads it; and
what Iceberg clients see of it: the metadata document, the manifest list, the manifests.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pg8000.native import Connection
from polynya.ducklake.rows.listing import LARGEST_ID
from polynya.storage.objects import bucket_and_key

from ..lakes.files import ALIAS
from ..reports.data_files import FilesQuery, files_report
from ..reports.difference import difference as difference_of
from ..reports.generator import Generator
from ..reports.metadata_files import IcebergHead, iceberg_head, iceberg_report, manifest_report
from ..reports.opened_table import TableHead, TableRef, listed_snapshot, open_at
from ..reports.preview import Lines, Preparation, PreviewReport, preparation
from ..reports.preview_sql import MOST_CONDITIONS, OPERATORS
from ..reports.snippets import ReadingReport, reading_report
from ..reports.table_history import table_overview
from . import charts
from .request import PageNumber, PageRequest, PageRequestOf, SnapshotId, TableOf
from .state import Job, PageState

router = APIRouter()


@router.get("/tables/{namespace}/{name}")
async def table(request: PageRequestOf, ref: TableOf, until: SnapshotId = None) -> Response:
    """The table; `until` is the newest snapshot of the history that is shown."""
    state = request.state
    report = state.read(lambda con: table_overview(state.generator, con, ref, until))
    chart = charts.history(report.snapshots, report.head.snapshot.snapshot_id)
    return request.answer("table.html", report, chart=chart)


Order = Literal["newest", "size", "smallest", "rows"]


@router.get("/tables/{namespace}/{name}/files")
async def files(
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
        sizes=charts.sizes(report.sizes),
        bounds=charts.bounds(report.overlap),
    )


Id = Annotated[int, Query(ge=0, le=LARGEST_ID)]
Before = Annotated[int, Query(alias="from", ge=0, le=LARGEST_ID)]


@router.get("/tables/{namespace}/{name}/difference")
async def difference(
    request: PageRequestOf, ref: TableOf, before: Before, to: Id, page: PageNumber = 1
) -> Response:
    """The difference of two snapshots, which are in the query as `from` and `to`."""
    state = request.state
    report = state.read(lambda con: difference_of(state.generator, con, ref, before, to, page))
    return request.answer("difference.html", report)


LINE = re.compile("column([2-9]|[1-9][0-9]+)?")
"""The keys of a filter's lines: column, operator, value; column2, operator2, value2; …"""


SECONDS = 2.0
"""How long a visitor waits before a page says that rows are being read."""
AGAIN_SECONDS = 30.0
"""After this time what failed, or took too long, is tried again."""


@router.get("/tables/{namespace}/{name}/rows")
async def rows(request: PageRequestOf, ref: TableOf) -> Response:
    """A preview of the rows; a filter is in the query."""
    state, lines = request.state, lines_of(request.query)

    def prepare(con: Connection) -> tuple[TableHead, Preparation | None]:
        table, head = open_at(state.generator, con, ref, limit=1)
        return head, preparation(table, head, lines)

    head, prepared = state.read(prepare)
    if prepared is None:
        return request.answer("not_served.html", {"head": head}, tab="rows")

    def task(generator: Generator, job: Job) -> PreviewReport:
        job.progress = "Rows are being read."
        answer = state.reader.answer(prepared.question)
        return prepared.report(answer, state.reader.limits, is_mirror=state.lake.is_mirror)

    key = prepared.question
    job = state.previews.job(key, task, seconds=SECONDS, again=_is_stale(state.previews.known(key)))
    if job.error is None and job.is_done:
        number = min(MOST_CONDITIONS, len(prepared.question.conditions) + 1)
        return request.answer("rows.html", job.result, operators=OPERATORS, lines=number)
    return request.answer_when_done("rows.html", head, job)


def _is_stale(job: Job | None) -> bool:
    """Whether a result lacks parts, and is not from a moment ago."""
    if job is None or not job.is_done or job.finished is None:
        return False
    age = (datetime.now(UTC) - job.finished).total_seconds()
    return age > AGAIN_SECONDS and (job.error is not None or bool(job.result.answer.notes))


def lines_of(query: dict[str, str]) -> Lines:
    """The lines of a form, in their order."""
    numbers = sorted(
        (int(match[1] or 1), match[1] or "") for match in map(LINE.fullmatch, query) if match
    )
    suffixes = [suffix for _, suffix in numbers]
    return Lines(
        *(
            [query.get(key + suffix, "") for suffix in suffixes]
            for key in ("column", "operator", "value")
        )
    )


@router.get("/tables/{namespace}/{name}/read")
async def reading(request: PageRequestOf, ref: TableOf) -> Response:
    """The snippets of all clients, and what is wrong with each."""
    report = request.state.read(lambda con: _report(request.state, con, ref))
    template = "reading.html" if report.clients else "not_served.html"
    return request.answer(template, report, tab="read")


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
async def iceberg(request: PageRequestOf, ref: TableOf) -> Response:
    """The document and the manifests of its newest snapshot."""
    head = _head(request, ref)
    if not head.manifest_list:
        return request.answer("iceberg_none.html", head)

    def task(generator: Generator, job: Job) -> Any:
        return generator.read(lambda con: iceberg_report(generator, con, _as_shown(ref, head)))

    job = request.state.files.job((head.manifest_list, ""), task, seconds=SECONDS_FOR_FILES)
    return request.answer_when_done("iceberg.html", head.head, job)


@router.get("/tables/{namespace}/{name}/iceberg/metadata")
async def metadata(request: PageRequestOf, ref: TableOf) -> Response:
    """The metadata document as it is."""
    return request.answer("metadata.html", _head(request, ref))


@router.get("/tables/{namespace}/{name}/iceberg/{manifest}")
async def manifest(
    request: PageRequestOf, ref: TableOf, manifest: str, page: PageNumber = 1
) -> Response:
    """A manifest with a page of its entries."""
    head = _head(request, ref)

    def task(generator: Generator, job: Job) -> Any:
        pinned = _as_shown(ref, head)
        return generator.read(lambda con: manifest_report(generator, con, pinned, manifest, page))

    job = request.state.files.job(
        (head.manifest_list, manifest, page), task, seconds=SECONDS_FOR_FILES
    )
    return request.answer_when_done("manifest.html", head.head, job)


def _head(request: PageRequest, ref: TableRef) -> IcebergHead:
    state = request.state
    return state.read(lambda con: iceberg_head(state.generator, con, ref))


def _as_shown(ref: TableRef, head: IcebergHead) -> TableRef:
    """The table at the snapshot that the visitor has seen, though the lake may have gone on."""
    return TableRef(ref.namespace, ref.name, head.head.snapshot.snapshot_id)
