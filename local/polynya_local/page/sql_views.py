"""The page where a visitor asks the lake in SQL."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from polynya.runtime.errors import BadRequest

from ..reports.visitor_sql import LONGEST, SqlDownload, SqlQuestion, sql_report
from .request import PageRequestOf, file_answer
from .table_views import MEDIA_TYPES, SECONDS, previewed

router = APIRouter()


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
    # A page of another site may lead here, and run nothing: the visitor sees the text first.
    if not query or sec_fetch_site not in ("", "none", "same-origin"):
        return request.answer("sql.html", report, job=None)
    question = SqlQuestion(query, report.snapshot.snapshot_id, directories)
    task = SqlDownload(question, download) if download else question
    if stop:
        state.previews.stop(task)
        state.reader.stop(task)
        return request.answer("sql.html", report, job=None)
    job = previewed(state, task, lambda _, job: state.reader.answer(task), SECONDS)
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
    return file_answer(job.result.body, MEDIA_TYPES[download], file)
