"""One request: what it asks for, and its answer as HTML of a template or as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import Depends, Query, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from polynya.ducklake.rows.listing import LARGEST_ID
from pydantic import BeforeValidator, Field

from ..reports.changes import GROUPS
from ..reports.opened_table import TableHead, TableRef
from ..reports.table_checks import CLIENTS_REMEDY
from ..reports.visitor_sql import table_in_sql
from . import charts, links
from .state import Job, PageState

FOLDER = Path(__file__).parent
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing is loaded from other sites, no inline script or style works, no other site frames a page.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TABS = (
    ("", "Table"),
    ("files", "Files"),
    ("rows", "Rows"),
    ("profile", "Profile"),
    ("iceberg", "What Iceberg sees"),
    ("read", "How to read it"),
    ("doctor", "Health"),
)
"""The pages of a table: the end of the path, and the words of the link."""
HTML, JSON = "text/html; charset=utf-8", "application/json"


@cache
def templates() -> Environment:
    """The templates, which escape every value and fail at a missing one."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(links.FILTERS)
    environment.globals.update(
        link=links.link,
        visitor=links.visitor,
        LOGOUT_PATH=links.LOGOUT_PATH,
        home=links.home,
        segment=links.segment,
        table_path=links.table_path,
        table_in_sql=table_in_sql,
        charts=charts,
        tabs=TABS,
        CLIENTS_REMEDY=CLIENTS_REMEDY,
        ROW_KINDS=GROUPS["rows"],
    )
    return environment


def html_answer(
    template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Response:
    """A page of a template."""
    text = templates().get_template(template).render(**values)
    return _response(text, HTML, status, headers)


def json_answer(report: Any, status: int = 200, *, notices: Sequence[str] = ()) -> Response:
    """The JSON of a report.

    Args:
        notices: what a visitor has to know of the whole lake, if there is anything.
    """
    if notices:
        report = {"notices": notices, **(report if isinstance(report, dict) else _plain(report))}
    text = json.dumps(report, ensure_ascii=False, indent=1, default=_plain)
    return _response(text, JSON, status)


def static_file(name: str) -> Response | None:
    """A file of the folder `static`; None: there is none."""
    path = FOLDER / "static" / name
    if Path(name).name != name or path.suffix not in TYPES or not path.is_file():
        return None
    return _response(path.read_text(), TYPES[path.suffix], 200, {"Cache-Control": "max-age=300"})


def is_static(path: str) -> bool:
    """Whether a path is that of a file of the folder `static`, which is the same for everybody."""
    return path.startswith("/static/") or path == "/favicon.ico"


def file_answer(body: bytes, media_type: str, name: str) -> Response:
    """A file that a browser saves under an ASCII name."""
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Type": media_type}
    return Response(body, 200, {**HEADERS, **headers, "Cache-Control": "no-store"})


def redirect(url: str) -> Response:
    """Redirect to the page that replaces this one."""
    return _response("", HTML, 303, {"Location": url})


def _plain(value: Any) -> Any:
    """A value that JSON can hold, for one that it cannot."""
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


def _response(
    text: str, media_type: str, status: int, headers: dict[str, str] | None = None
) -> Response:
    # A lone surrogate, which a name can have in JSON, is not UTF-8.
    body = text.encode("utf-8", "replace")
    return Response(body, status, {**HEADERS, **(headers or {}), "Content-Type": media_type})


Format = Literal["html", "json"]


def _if_given(text: object) -> object:
    """None for a field of a form that was left empty."""
    return None if text == "" else text


SnapshotId = Annotated[
    Annotated[int, Field(ge=0, le=LARGEST_ID)] | None, BeforeValidator(_if_given), Query()
]
PageNumber = Annotated[int, Query(ge=1, le=10_000_000)]


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request, and the state of the server that it is for."""

    state: PageState
    path: str
    """Percent-encoded."""
    query: dict[str, str]
    snapshot: int | None
    """The snapshot whose state is shown; None: the newest."""
    format: Format

    @property
    def notices(self) -> list[str]:
        """What a visitor should know about the whole lake."""
        return self.state.notices(self.path)

    def url(self, **changed: object) -> str:
        """This page with another query."""
        return links.with_query(links.home(self.path), self.query, **changed)

    def answer(self, template: str, report: Any, status: int = 200, **values: Any) -> Response:
        """The page, or its JSON if the request wants it.

        Args:
            values: what the template needs besides the report; JSON leaves it out.
        """
        if self.format == "json":
            return json_answer(report, status, notices=self.notices)
        return html_answer(
            template, status, report=report, request=self, notices=self.notices, **values
        )

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
            return json_answer(waiting, 202, notices=self.notices)
        headers = {"Retry-After": "1"}
        return html_answer(
            "waiting.html", 200, headers, report=waiting, request=self, notices=self.notices
        )


def page_request(
    request: Request, snapshot: SnapshotId = None, format: Format = "html"
) -> PageRequest:
    """What a request asks for, on every page."""
    path = quote(request.scope["path"])  # no name has a slash: see `links`
    return PageRequest(request.app.state.page, path, dict(request.query_params), snapshot, format)


PageRequestOf = Annotated[PageRequest, Depends(page_request)]


def table_of(namespace: str, name: str, snapshot: SnapshotId = None) -> TableRef:
    """The table that the path names."""
    return TableRef(links.namespace_of(namespace), links.name_of(name), snapshot)


TableOf = Annotated[TableRef, Depends(table_of)]
