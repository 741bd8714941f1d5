"""One request: what it asks for, and how it is answered."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Depends, Query, Request, Response
from pydantic import BeforeValidator, Field

from ..reports.opened_table import TableHead, TableRef
from . import rendering
from .links import name_of, namespace_of, with_query
from .site import Job, PageState

LARGEST = 2**63 - 1
Format = Literal["html", "json"]


def _if_given(text: object) -> object:
    """None for a field of a form that was left empty."""
    return None if text == "" else text


SnapshotId = Annotated[
    Annotated[int, Field(ge=0, le=LARGEST)] | None, BeforeValidator(_if_given), Query()
]
PageNumber = Annotated[int, Query(ge=1, le=10_000_000)]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request, and the site that it is for."""

    site: PageState
    path: str
    """Percent-encoded."""
    query: dict[str, str]
    snapshot: int | None
    """The snapshot whose state is shown; None: the newest."""
    format: Format

    @property
    def notices(self) -> list[str]:
        """What a visitor has to know of the whole lake."""
        return self.site.notices(self.path)

    def url(self, **changed: object) -> str:
        """This page with another query."""
        return with_query(self.path, self.query, **changed)

    def answer(self, template: str, report: Any, **values: Any) -> Response:
        """The page, or its JSON if that was asked for.

        Args:
            values: what the template needs besides the report, which JSON does not.
        """
        if self.format == "json":
            return rendering.json_of(report, notices=self.notices)
        return rendering.html(template, report=report, visit=self, notices=self.notices, **values)

    def answer_when_done(self, template: str, head: TableHead, job: Job) -> Response:
        """The page of a job's result; or one that says what is being done.

        Args:
            head: of the table that the job is about.

        Raises:
            PolynyaError: the job failed.
        """
        if job.error is not None:
            raise job.error
        if job.is_done:
            return self.answer(template, job.result)
        waiting = {"head": head, "progress": job.progress, "is_done": False}
        if self.format == "json":
            return rendering.json_of(waiting, 202, notices=self.notices)
        headers = {"Retry-After": "1"}
        return rendering.html(
            "waiting.html", 200, headers, report=waiting, visit=self, notices=self.notices
        )


async def page_request(
    request: Request, snapshot: SnapshotId = None, format: Format = "html"
) -> PageRequest:
    """What a request asks for, on every page."""
    path = quote(request.scope["path"])  # no name has a slash: see `links`
    return PageRequest(request.app.state.site, path, dict(request.query_params), snapshot, format)


PageRequestOf = Annotated[PageRequest, Depends(page_request)]


async def table_of(namespace: str, name: str, snapshot: SnapshotId = None) -> TableRef:
    """The table that the path names."""
    return TableRef(namespace_of(namespace), name_of(name), snapshot)


TableOf = Annotated[TableRef, Depends(table_of)]
