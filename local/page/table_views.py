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
from polynya.storage.objects import bucket_and_key

from ..lakes.files import ALIAS
from ..reports.data_files import FilesQuery, files_report
from ..reports.difference import difference as difference_of
from ..reports.generator import Generator
from ..reports.metadata_files import IcebergHead, iceberg_head, iceberg_report, manifest_report
from ..reports.opened_table import TableHead, TableRef, open_at
from ..reports.preview import Lines, Preparation, PreviewReport, preparation
from ..reports.preview_sql import MOST_CONDITIONS, OPERATORS
from ..reports.reading import ReadingReport, listed_snapshot, reading_report
from ..reports.table_history import table_overview
from . import charts
from .site import Job, PageState
from .visit import LARGEST, PageNumber, PageRequest, PageRequestOf, SnapshotId, TableOf

router = APIRouter()


@router.get("/tables/{namespace}/{name}")
async def table(visit: PageRequestOf, ref: TableOf, until: SnapshotId = None) -> Response:
    """The table; `until` is the newest snapshot of the history that is shown."""
    site = visit.site
    report = site.read(lambda con: table_overview(site.generator, con, ref, until))
    chart = charts.history(report.moments, report.head.snapshot.snapshot_id)
    return visit.answer("table.html", report, chart=chart)


Order = Literal["newest", "size", "smallest", "rows"]


@router.get("/tables/{namespace}/{name}/files")
async def files(
    visit: PageRequestOf,
    ref: TableOf,
    sort: Order = "newest",
    column: Annotated[str, Query(max_length=10_000)] = "",
    page: PageNumber = 1,
) -> Response:
    """A page of files, and pictures of all of them."""
    site, which = visit.site, FilesQuery(sort, page, column)
    report = site.read(lambda con: files_report(site.generator, con, ref, which))
    return visit.answer(
        "files.html",
        report,
        sizes=charts.sizes(report.sizes),
        bounds=charts.bounds(report.overlap),
    )


Id = Annotated[int, Query(ge=0, le=LARGEST)]
Before = Annotated[int, Query(alias="from", ge=0, le=LARGEST)]


@router.get("/tables/{namespace}/{name}/difference")
async def difference(
    visit: PageRequestOf, ref: TableOf, before: Before, to: Id, page: PageNumber = 1
) -> Response:
    """The difference of two snapshots, which are in the query as `from` and `to`."""
    site = visit.site
    report = site.read(lambda con: difference_of(site.generator, con, ref, before, to, page))
    return visit.answer("difference.html", report)


LINE = re.compile("column([2-9]|[1-9][0-9]+)?")
"""The keys of a filter's lines: column, operator, value; column2, operator2, value2; …"""


SECONDS = 2.0
"""How long a visitor waits before a page says that rows are being read."""
AGAIN_SECONDS = 30.0
"""After this time what failed, or took too long, is tried again."""


@router.get("/tables/{namespace}/{name}/rows")
async def rows(visit: PageRequestOf, ref: TableOf) -> Response:
    """A preview of the rows; a filter is in the query."""
    site, lines = visit.site, lines_of(visit.query)

    def prepare(con: Connection) -> tuple[TableHead, Preparation | None]:
        table, head = open_at(site.generator, con, ref, limit=1)
        return head, preparation(table, head, lines)

    head, prepared = site.read(prepare)
    if prepared is None:
        return visit.answer("not_served.html", {"head": head}, tab="rows")

    def task(generator: Generator, job: Job) -> PreviewReport:
        job.progress = "Rows are being read."
        answer = site.reader.answer(prepared.question)
        return prepared.report(answer, site.reader.limits, is_mirror=site.lake.is_mirror)

    key = prepared.question
    job = site.previews.job(key, task, seconds=SECONDS, again=_is_stale(site.previews.known(key)))
    if job.error is None and job.is_done:
        number = min(MOST_CONDITIONS, len(prepared.question.conditions) + 1)
        return visit.answer("rows.html", job.result, operators=OPERATORS, lines=number)
    return visit.answer_when_done("rows.html", head, job)


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
async def reading(visit: PageRequestOf, ref: TableOf) -> Response:
    """The snippets of all clients, and what is wrong with each."""
    report = visit.site.read(lambda con: _report(visit.site, con, ref))
    template = "reading.html" if report.clients else "not_served.html"
    return visit.answer(template, report, tab="read")


def _report(site: PageState, con: Connection, ref: TableRef) -> ReadingReport:
    table, head = open_at(site.generator, con, ref, limit=1)
    virtual = bucket_and_key(table.files.table.location)
    is_past = ref.snapshot_id is not None
    place = replace(
        site.place,
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
async def iceberg(visit: PageRequestOf, ref: TableOf) -> Response:
    """The document and the manifests of its newest snapshot."""
    head = _head(visit, ref)
    if not head.manifest_list:
        return visit.answer("iceberg_none.html", head)

    def task(generator: Generator, job: Job) -> Any:
        return generator.read(lambda con: iceberg_report(generator, con, _as_shown(ref, head)))

    job = visit.site.files.job((head.manifest_list, ""), task, seconds=SECONDS_FOR_FILES)
    return visit.answer_when_done("iceberg.html", head.head, job)


@router.get("/tables/{namespace}/{name}/iceberg/metadata")
async def metadata(visit: PageRequestOf, ref: TableOf) -> Response:
    """The metadata document as it is."""
    return visit.answer("metadata.html", _head(visit, ref))


@router.get("/tables/{namespace}/{name}/iceberg/{manifest}")
async def manifest(
    visit: PageRequestOf, ref: TableOf, manifest: str, page: PageNumber = 1
) -> Response:
    """A manifest with a page of its entries."""
    head = _head(visit, ref)

    def task(generator: Generator, job: Job) -> Any:
        pinned = _as_shown(ref, head)
        return generator.read(lambda con: manifest_report(generator, con, pinned, manifest, page))

    job = visit.site.files.job(
        (head.manifest_list, manifest, page), task, seconds=SECONDS_FOR_FILES
    )
    return visit.answer_when_done("manifest.html", head.head, job)


def _head(visit: PageRequest, ref: TableRef) -> IcebergHead:
    site = visit.site
    return site.read(lambda con: iceberg_head(site.generator, con, ref))


def _as_shown(ref: TableRef, head: IcebergHead) -> TableRef:
    """The table at the snapshot that the visitor has seen, though the lake may have gone on."""
    return TableRef(ref.namespace, ref.name, head.head.snapshot.snapshot_id)
