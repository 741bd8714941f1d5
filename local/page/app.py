"""The application: which page answers which request.

`LazyPage` is the page as `polynya serve` starts it: its packages are imported when somebody first
looks.
"""

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from mangum import Mangum
from polynya.ducklake.queries.changes import snapshot_at_time
from polynya.runtime.errors import PolynyaError
from starlette.exceptions import HTTPException

from ..lakes.opened import LocalLake
from ..local_aws.lambda_function import Handler
from ..reports.opened_table import Renamed
from . import lake_views, table_views
from .links import LAKES_PATH, Addresses, below, home, link, table_path, time_of, with_query
from .request import Format, html_answer, json_answer, redirect, static_file
from .state import PageState

logger = logging.getLogger(__name__)

VIEWS = (lake_views, table_views)
"""Modules with a `router`."""

SENTENCES = {
    404: "There is no such page. The list of tables has all of them.",
    405: "This page only shows: it answers GET and HEAD.",
}


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


def page_handler(state: PageState) -> Handler:
    """The pages of a lake as a function of events, like the functions of the catalog."""
    adapter = Mangum(page_app(state), lifespan="off")

    def handler(event: dict[str, Any], context: Any) -> Any:
        return adapter(event, context)

    return handler


async def static(name: str) -> Response:
    """A stylesheet, a script or a picture."""
    response = static_file(name)
    if response is None:
        raise HTTPException(404)
    return response


async def favicon() -> Response:
    """The icon that browsers ask for on every site."""
    return await static("icon.svg")


async def polynya_error(request: Request, error: Exception) -> Response:
    """Answer with what Polynya says of the lake, or of the request."""
    assert isinstance(error, PolynyaError)
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    return _error(request, error.status, str(error), headers)


async def renamed(request: Request, error: Exception) -> Response:
    """Redirect to the same page of the table under the name that it had at the snapshot."""
    assert isinstance(error, Renamed)
    path = table_path(error.namespace, error.name)
    # What follows /tables/<namespace>/<name>/.
    subpage = quote("/".join(request.scope["path"].split("/")[4:]))
    if subpage:
        path += f"/{subpage}"
    return redirect(link(path, **dict(request.query_params)))


async def http_error(request: Request, error: Exception) -> Response:
    """Answer that there is no such page, or not with this method."""
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    return _error(request, error.status_code, SENTENCES.get(error.status_code, ""), headers)


async def bad_request(request: Request, error: Exception) -> Response:
    """Answer which part of the query is not what it should be."""
    assert isinstance(error, RequestValidationError)
    # Every page takes the number of a snapshot; whatever else is there may be a time.
    if (time := time_of(request.query_params.get("snapshot", ""))) is not None:
        return _at_time(request, time)
    parts = [f"{detail['loc'][-1]}: {detail['msg']}" for detail in error.errors()]
    return _error(request, 400, "This address is not understood: " + "; ".join(parts))


def _at_time(request: Request, time: datetime) -> Response:
    """Redirect to the same page as of the newest snapshot at a time."""
    snapshot_id = request.app.state.page.read(lambda con: snapshot_at_time(time).run(con))
    if snapshot_id is None:
        return _error(
            request, 404, f"The lake has no snapshot as old as {time:%Y-%m-%d %H:%M} UTC."
        )
    query = {**request.query_params, "snapshot": str(snapshot_id)}
    return redirect(with_query(home(quote(request.scope["path"])), query))


async def fault(request: Request, error: Exception) -> Response:
    """Answer after a fault of Polynya; the sentence says nothing of the lake."""
    logger.error("the page %s failed", request.scope["path"], exc_info=error)
    return _error(request, 500, "The page has a fault, which the log of polynya serve describes.")


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


class LazyPage:
    """The handler of the page, which begins with the first request."""

    def __init__(self, addresses: Addresses, lake: LocalLake, base: str = "") -> None:
        """`base`: how its paths begin, if there are pages of several lakes."""
        self._addresses, self._lake, self._base = addresses, lake, base
        self._state: PageState | None = None
        self._handler: Handler | None = None

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        """The answer to an event."""
        if self._handler is None:  # without a lock: `StandIn` calls it in one thread only
            self._state = PageState.of(self._addresses, self._lake)
            self._handler = page_handler(self._state)
        with below(self._base):
            return self._handler(_without_base(event, self._base), context)

    @property
    def addresses(self) -> Addresses:
        """Where clients find the lake."""
        return self._addresses

    @property
    def kind(self) -> str:
        """What the lake is, in words."""
        lake = self._lake
        return lake.mirror.name if lake.mirror else f"PostgreSQL, schema {lake.metadata_schema}"

    def close(self) -> None:
        """End what has begun."""
        if self._state is not None:
            self._state.close()


def _without_base(event: dict[str, Any], base: str) -> dict[str, Any]:
    """The event for the same page of a lake that is alone."""
    if not base:
        return event
    path = event["rawPath"].removeprefix(base) or "/"
    context = event["requestContext"]
    http = {**context["http"], "path": context["http"]["path"].removeprefix(base) or "/"}
    return {**event, "rawPath": path, "requestContext": {**context, "http": http}}


class LakesPage:
    """The handler of the pages of several lakes, and of the list of them."""

    def __init__(self, pages: Mapping[str, LazyPage]) -> None:
        """`pages` by the names of the lakes."""
        self._pages = pages
        app = FastAPI(title="Polynya", openapi_url=None, redirect_slashes=False)
        app.add_api_route("/", self._list, include_in_schema=False)
        app.add_api_route("/static/{name}", static, include_in_schema=False)
        app.add_api_route("/favicon.ico", favicon, include_in_schema=False)
        app.add_exception_handler(HTTPException, self._no_page)
        self._adapter = Mangum(app, lifespan="off")

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        """The answer to an event."""
        parts: list[str] = event["rawPath"].split("/")
        page = self._pages.get(parts[2]) if parts[1:2] == [LAKES_PATH] and parts[2:] else None
        return page(event, context) if page else self._adapter(event, context)

    async def _list(self, format: Format = "html") -> Response:
        """The lakes."""
        lakes = [
            {"name": name, "page": f"/{LAKES_PATH}/{name}/", "catalog": page.kind}
            for name, page in self._pages.items()
        ]
        first = next(iter(self._pages.values())).addresses
        report = {
            "catalog_uri": first.catalog_uri,
            "s3_endpoint": first.s3_endpoint,
            "writes": any(page.addresses.writes for page in self._pages.values()),
            "lakes": lakes,
        }
        if format == "json":
            return json_answer(report)
        return html_answer("lakes.html", report=report, notices=[])

    async def _no_page(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        sentence = "There is no such page. The list of lakes has all of them."
        if request.query_params.get("format") == "json":
            return json_answer({"error": {"message": sentence, "code": error.status_code}}, 404)
        return html_answer("lakes.html", 404, report=None, notices=[sentence])
