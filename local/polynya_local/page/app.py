"""The application: which page answers which request.

`LazyPage` is the page as `polynya serve` starts it: its packages are imported when somebody first
looks.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from threading import Lock, Thread
from typing import Any, Protocol
from urllib.parse import quote

from anyio import to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from polynya.access.caller import ANYBODY, Caller
from polynya.access.policy import EVERYTHING, Rights
from polynya.runtime.errors import PolynyaError, log_fields
from polynya.storage.objects import ObjectReader
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from ..access.audit_log import ROUTED
from ..lakes.opened import LocalLake
from ..queries.lake_snapshots import snapshot_at_time
from ..reports.lake import lake_summary
from ..reports.opened_table import Renamed
from ..reports.sight import Sight
from . import lake_views, links, table_views
from .request import Format, html_answer, json_answer, redirect, static_file
from .state import ForCaller, PageState

logger = logging.getLogger(__name__)

VIEWS = (lake_views, table_views)
"""Modules with a `router`."""

SENTENCES = {
    404: "There is no such page. The list of tables has all of them.",
    405: "This page is read-only: it answers GET and HEAD.",
}
NO_PAGE_OF_LAKES = "There is no such page. The list of lakes has all of them."


def page_app(state: PageState) -> FastAPI:
    """The pages of a lake."""
    # Late, because every command imports this module, and the types of the REST document take long.
    from polynya.http.application import NO_TELEMETRY

    app = FastAPI(title="Polynya", openapi_url=None, redirect_slashes=False, telemetry=NO_TELEMETRY)
    app.state.page = state
    for module in VIEWS:
        app.include_router(module.router)
    app.add_api_route("/static/{name}", static, include_in_schema=False)
    app.add_api_route("/favicon.ico", favicon, include_in_schema=False)
    app.add_exception_handler(Renamed, renamed)
    app.add_exception_handler(PolynyaError, polynya_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(RequestValidationError, bad_request)
    app.add_exception_handler(Exception, fault)
    return app


def static(name: str) -> Response:
    """A stylesheet, a script or a picture."""
    response = static_file(name)
    if response is None:
        raise HTTPException(404)
    return response


def favicon() -> Response:
    """The icon that browsers ask for on every site."""
    return static("icon.svg")


def polynya_error(request: Request, error: Exception) -> Response:
    """Answer with the message of an error about the lake or the request."""
    assert isinstance(error, PolynyaError)
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    return _error(request, error.status, str(error), headers)


def renamed(request: Request, error: Exception) -> Response:
    """Redirect to the same page of the table under the name that it had at the snapshot."""
    assert isinstance(error, Renamed)
    path = links.table_path(error.namespace, error.name)
    # What follows /tables/<namespace>/<name>/.
    subpage = quote("/".join(request.scope["path"].split("/")[4:]))
    if subpage:
        path += f"/{subpage}"
    return redirect(links.link(path, **dict(request.query_params)))


def http_error(request: Request, error: Exception) -> Response:
    """Answer that there is no such page, or not with this method."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    return _error(request, error.status_code, SENTENCES.get(error.status_code, ""), headers)


def bad_request(request: Request, error: Exception) -> Response:
    """Answer which part of the query is wrong."""
    assert isinstance(error, RequestValidationError)
    # Every page takes the number of a snapshot; whatever else is there may be a time.
    if (time := links.time_of(request.query_params.get("snapshot", ""))) is not None:
        return _redirect_to_time(request, time)
    parts = [f"{detail['loc'][-1]}: {detail['msg']}" for detail in error.errors()]
    return _error(request, 400, "This address is not understood: " + "; ".join(parts))


def _redirect_to_time(request: Request, time: datetime) -> Response:
    """Redirect to the same page as of the newest snapshot at a time."""
    snapshot_id = request.app.state.page.read(lambda con: snapshot_at_time(time).run(con))
    if snapshot_id is None:
        return _error(
            request, 404, f"The lake has no snapshot as old as {time:%Y-%m-%d %H:%M} UTC."
        )
    query = {**request.query_params, "snapshot": str(snapshot_id)}
    return redirect(links.with_query(links.home(quote(request.scope["path"])), query))


def fault(request: Request, error: Exception) -> Response:
    """Answer after a fault of Polynya; the message reveals nothing of the lake."""
    logger.error("the page %s failed: %s", request.scope["path"], log_fields(error))
    return _error(request, 500, "The page failed; the log of polynya serve says why.")


def _error(
    request: Request,
    status: int,
    sentence: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    notices = request.app.state.page.notices(request.scope["path"])
    if request.query_params.get("format") == "json":
        error = {"error": {"message": sentence, "code": status}}
        return json_answer(error, status, notices=notices)
    headers = {k: v for k, v in (headers or {}).items() if k in ("Retry-After", "Allow")}
    values = {"code": status, "sentence": sentence, "notices": notices}
    return html_answer("error.html", status, headers, **values)


class Callers(Protocol):
    """The rights and addresses that the page of a lake needs of its visitors."""

    def rights(self, caller: Caller) -> Rights:
        """What a caller may read in the lake.

        Raises:
            PolynyaError: the rights cannot be read now.
        """

    def reader_token(self, caller: Caller) -> str:
        """A token that reads rows with the rights of the caller."""


MOST_CALLERS = 8
"""The number of callers whose pages a process keeps; each has threads and connections."""
IDLE_SECONDS = 900
"""The seconds without a request after which the pages of a caller are dropped."""


@dataclass(slots=True)
class _Pages:
    """The pages as one caller sees them."""

    state: PageState
    app: FastAPI
    visitor: links.Visitor
    used_at: float = field(default_factory=time.monotonic)
    requests: set[object] = field(default_factory=set)
    """Those that are being answered."""


class LazyPage:
    """The page of a lake as an ASGI application, which is made for the first request.

    It alone decides what a visitor sees: each caller has a state of their own, whose statements are
    limited to what the caller may read, and whose results nobody else gets.
    """

    def __init__(
        self,
        addresses: links.Addresses,
        lake: LocalLake,
        settings: Mapping[str, str],
        objects: ObjectReader,
        base: str = "",
        callers: Callers | None = None,
    ) -> None:
        """Keep the arguments; nothing is read yet.

        Args:
            settings: of the deployment, as in docs/settings.md.
            objects: reads the data.
            base: the beginning of its paths, if there are pages of several lakes.
            callers: None: everybody may see everything.
        """
        self._new_state = partial(PageState.create, addresses, lake, settings, objects)
        self._addresses, self._lake = addresses, lake
        self._base, self._callers = base, callers
        self._pages: OrderedDict[tuple[str, Rights], _Pages] = OrderedDict()
        self._lock = Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        with links.prefix_links(self._base), ExitStack() as stack:
            try:
                used = self._used_by(caller_of(scope))
                pages = await to_thread.run_sync(stack.enter_context, used)
            except PolynyaError as error:
                answer = html_answer(
                    "error.html", error.status, code=error.status, sentence=str(error), notices=[]
                )
                await answer(scope, receive, send)
                return
            # The audit log says which page it was.
            routed = scope[ROUTED] = _drop_base(scope, self._base)
            with links.shown_to(pages.visitor):
                await pages.app(routed, receive, send)

    @contextmanager
    def _used_by(self, caller: Caller) -> Iterator[_Pages]:
        """The pages of a caller, which stay within the block."""
        request = object()
        rights = EVERYTHING if self._callers is None else self._callers.rights(caller)
        key = (caller.identity, rights)
        with self._lock:
            if key not in self._pages:
                self._pages[key] = self._new_pages(caller, rights)
            pages = self._pages[key]
            pages.used_at = time.monotonic()
            pages.requests.add(request)
            self._pages.move_to_end(key)
            self._drop_the_oldest()
        try:
            yield pages
        finally:
            pages.requests.remove(request)

    def _drop_the_oldest(self) -> None:
        """Close the least recently used pages that nobody reads, if too many are kept or idle."""
        for key, pages in self._pages.items():
            if not pages.requests:
                is_idle = time.monotonic() - pages.used_at > IDLE_SECONDS
                if len(self._pages) > MOST_CALLERS or is_idle:
                    del self._pages[key]
                    Thread(target=pages.state.close, name="page-end", daemon=True).start()
                return

    def _new_pages(self, caller: Caller, rights: Rights) -> _Pages:
        callers = self._callers
        if callers is None:
            state = self._new_state()
        else:
            new_token = partial(callers.reader_token, caller)
            state = self._new_state(ForCaller(Sight(rights), new_token))
        visitor = links.Visitor.from_caller(caller, rights.all_tables)
        return _Pages(state, page_app(state), visitor)

    @property
    def addresses(self) -> links.Addresses:
        """Where clients find the lake."""
        return self._addresses

    def rights(self, caller: Caller) -> Rights:
        """What a caller may read in the lake. Raises: as `Callers.rights`."""
        return EVERYTHING if self._callers is None else self._callers.rights(caller)

    @property
    def kind(self) -> str:
        """What the lake is, in words."""
        lake = self._lake
        return lake.mirror.name if lake.mirror else f"PostgreSQL, schema {lake.metadata_schema}"

    def summary(self, caller: Caller) -> dict[str, Any]:
        """The lake's numbers, and its state in words: `served`, or what is wrong."""
        try:
            with self._used_by(caller) as pages:
                summary = pages.state.read(lake_summary)
            state = self._lake.staleness() or SERVED
        except PolynyaError as error:
            summary, state = None, str(error)
        return {"state": state, "summary": summary}


def caller_of(scope: Scope) -> Caller:
    """The caller whom the host has put into the scope of a request."""
    # Late, as in `page_app`.
    from polynya.http.calls import CALLER

    caller: Caller = scope.get(CALLER, ANYBODY)
    return caller


def _drop_base(scope: Scope, base: str) -> Scope:
    """The scope of a request with a path that lacks the base."""
    path = scope["path"].removeprefix(base) or "/"
    return {
        **scope,
        "path": path,
        "raw_path": scope["raw_path"].removeprefix(base.encode()) or b"/",
    }


SERVED = "served"
SECONDS = 2.0
"""How long lakes are read for their list; the rest are listed as not read yet."""


def lakes_page(pages: Mapping[str, LazyPage], failures: Mapping[str, str]) -> ASGIApp:
    """The pages of several lakes, by their names, and the list of them.

    A lake in which a caller has no rights is hidden, as in the catalog.

    Args:
        failures: why others are not served; for callers who may read everything.
    """
    app = FastAPI(title="Polynya", openapi_url=None, redirect_slashes=False)

    def list_lakes(request: Request, format: Format = "html") -> Response:
        """The lakes."""
        caller = caller_of(request.scope)
        rights = {name: page.rights(caller) for name, page in pages.items()}
        sees_all = all(right.all_tables for right in rights.values())
        deadline = time.monotonic() + SECONDS
        unread = {"state": "not read yet: load the page again", "summary": None}
        lakes = [
            {
                "name": name,
                "page": f"/{links.LAKES_PATH}/{name}/",
                "catalog": page.kind if rights[name].all_tables else "",
            }
            | (page.summary(caller) if time.monotonic() < deadline else unread)
            for name, page in pages.items()
            if rights[name].tables
        ]
        first = next(iter(pages.values())).addresses
        report = {
            "catalog_uri": first.catalog_uri,
            "s3_endpoint": first.s3_endpoint,
            "writes": any(page.addresses.writes for page in pages.values()),
            "lakes": lakes,
            "not_served": failures if sees_all else {},
        }
        if format == "json":
            return json_answer(report)
        with links.shown_to(links.Visitor.from_caller(caller, sees_all)):
            return html_answer("lakes.html", report=report, notices=[])

    def no_page(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = SENTENCES[405] if status == 405 else NO_PAGE_OF_LAKES
        if isinstance(error, PolynyaError):
            status, sentence = error.status, str(error)
        if request.query_params.get("format") == "json":
            return json_answer({"error": {"message": sentence, "code": status}}, status)
        with links.shown_to(links.Visitor.from_caller(caller_of(request.scope))):
            return html_answer("lakes.html", status, report=None, notices=[sentence])

    app.add_api_route("/", list_lakes, include_in_schema=False)
    app.add_api_route("/static/{name}", static, include_in_schema=False)
    app.add_api_route("/favicon.ico", favicon, include_in_schema=False)
    app.add_exception_handler(HTTPException, no_page)
    app.add_exception_handler(PolynyaError, no_page)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        parts: list[str] = scope["path"].split("/")
        page = pages.get(parts[2]) if parts[1:2] == [links.LAKES_PATH] and parts[2:] else None
        is_visible = page is not None and await to_thread.run_sync(_is_visible, page, scope)
        await (page if page is not None and is_visible else app)(scope, receive, send)

    return answer


def _is_visible(page: LazyPage, scope: Scope) -> bool:
    try:
        return bool(page.rights(caller_of(scope)).tables)
    except PolynyaError:
        return True  # the page says so
