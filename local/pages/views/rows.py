"""Rows of a table, through the Iceberg endpoints and in native DuckLake."""

import re
from datetime import UTC, datetime

from fastapi import APIRouter, Response
from pg8000.native import Connection

from ...reports.generator import Generator
from ...reports.preview.filters import MOST_CONDITIONS, OPERATORS
from ...reports.preview.report import Lines, NotServed, Preparation, PreviewReport, preparation
from ...reports.tables.opened import TableHead, open_at
from ..visit import TableOf, VisitOf
from ..work import Job

router = APIRouter()

LINE = re.compile("column([2-9]|[1-9][0-9]+)?")
"""The keys of a filter's lines: column, operator, value; column2, operator2, value2; …"""


SECONDS = 2.0
"""How long a visitor waits before a page says that rows are being read."""
AGAIN_SECONDS = 30.0
"""After this time what failed, or took too long, is tried again."""


@router.get("/tables/{namespace}/{name}/rows")
async def rows(visit: VisitOf, wanted: TableOf) -> Response:
    """A preview; a filter is in the query."""
    site, lines = visit.site, lines_of(visit.query)

    def prepared(con: Connection) -> tuple[TableHead, Preparation | None]:
        table = open_at(site.generator, con, wanted, limit=1)
        return table.head, preparation(table, lines)

    head, found = site.read(prepared)
    if found is None:
        return visit.answer("not_served.html", NotServed(head), tab="rows")

    def task(generator: Generator, job: Job) -> PreviewReport:
        job.progress = "Rows are being read."
        answer = site.reader.answer(found.question)
        return found.report(answer, site.reader.limits, is_mirror=site.lake.is_mirror)

    key = found.question
    job = site.previews.job(key, task, seconds=SECONDS, again=_is_stale(site.previews.known(key)))
    if job.error is None and job.is_done:
        number = min(MOST_CONDITIONS, len(found.question.conditions) + 1)
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
        (int(found[1] or 1), found[1] or "") for found in map(LINE.fullmatch, query) if found
    )
    suffixes = [suffix for _, suffix in numbers]
    return Lines(
        *(
            [query.get(key + suffix, "") for suffix in suffixes]
            for key in ("column", "operator", "value")
        )
    )
