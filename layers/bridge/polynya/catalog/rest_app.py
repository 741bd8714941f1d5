"""What the functions behind API Gateway share: routes, callers, errors as answers, events.

Only these two functions have FastAPI and Mangum.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from time import perf_counter
from typing import Annotated, Any, TypeAlias
from urllib.parse import quote

from aws_lambda_powertools import Logger
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import JSONResponse, Response
from fastapi.telemetry import TelemetryConfig
from mangum import Mangum
from starlette.types import Message, Receive, Scope, Send

from ..access.policy import AccessResolver, Rights, api_caller
from ..rest.planning import parse
from ..rest.reports import report_fields
from ..runtime.budget import budgeted
from ..runtime.errors import BadRequest, NoSuchRoute, PolynyaError, log_fields
from ..runtime.events import Http, HttpApiEvent, RequestContext, asks_for_credentials
from ..runtime.metrics import count_refusal, published, traced, watched
from ..runtime.namespaces import Namespace as Levels
from ..runtime.namespaces import dotted, of_path
from ..runtime.settings import Config
from .open_catalog import Lakes, Opened, no_such_warehouse
from .warehouse import Warehouse

COMPRESSED_FROM = 2000
"""The bytes from which an answer is compressed."""

GZIP_LEVEL = 4
"""A thousand snapshots take a few milliseconds, and 5 % more bytes than at level 9."""

RESERVE_SECONDS = 3
"""The part of Lambda's timeout that is left to answer 503 before API Gateway does."""

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI's own: it has paths and messages, in which there are names and values."""

Handler = Callable[[Any, Any], dict[str, Any]]
Route: TypeAlias = tuple[str, str, Callable[..., Awaitable[Response]]]
"""The method, the path and what answers it."""

NAMESPACES = "/v1/{prefix}/namespaces"
NAMESPACE = NAMESPACES + "/{namespace}"
TABLE = NAMESPACE + "/tables/{table}"
VIEW = NAMESPACE + "/views/{view}"


@cache
def access_resolver() -> AccessResolver:
    """The rights of callers.

    Raises:
        Misconfigured: a setting is missing or not usable.
    """
    return AccessResolver(Config.from_env())


def _context(request: Request) -> RequestContext:
    event: HttpApiEvent = request.scope["aws.event"]
    return event["requestContext"]


def rights_of(request: Request, lake: str = "") -> Rights:
    """What the caller may read and write. Args, Raises: as `AccessResolver.api_rights`."""
    return access_resolver().api_rights(_context(request), lake)


def visible_lake(lakes: Lakes[Opened], request: Request, name: str | None) -> Opened:
    """The lake of this name; None: the one that is meant if the client names none.

    Raises:
        NoSuchWarehouse: there is none, or there are several and the caller has no rights in it.
        BadRequest, Misconfigured, ServiceUnavailable: as `Lakes.named`, or the policy.
    """
    if not lakes.are_several:
        return lakes.named(name)
    lake = "" if name is None else lakes.of_document(name)
    # Before the lake is looked up, so that nothing tells a hidden one from one that does not exist.
    if not rights_of(request, lake).tables:
        raise no_such_warehouse(name or lakes.config.warehouse)
    return lakes.named(name)


def caller_of(request: Request) -> str:
    """The identity of the caller; empty if it is not known."""
    return api_caller(_context(request))


def wants_credentials(request: Request) -> bool:
    """Whether the client asks for vended credentials."""
    return asks_for_credentials(request.headers.get("x-iceberg-access-delegation", ""))


def of_lake(request: Request) -> dict[str, Any]:
    """The field of a log line that names the lake, if there are several."""
    if not access_resolver().are_several:
        return {}
    return {"lake": Warehouse.of_prefix(request.path_params["prefix"]).name}


@contextmanager
def logged(logger: Logger, message: str, request: Request, *table: str) -> Iterator[dict[str, Any]]:
    """Write a log line about the block: who, which table, how it ended, how long it took.

    Args:
        table: the levels of its namespace and its name.

    Returns:
        More keys and values of the line, which the block adds.
    """
    fields: dict[str, Any] = {}
    line: dict[str, Any] = {"principal": caller_of(request), "table": dotted(*table)}
    line["outcome"] = "done"
    line |= of_lake(request)
    started = perf_counter()
    try:
        yield fields
    except PolynyaError as error:
        line["outcome"] = error.type
        raise
    except Exception:
        line["outcome"] = PolynyaError.type
        raise
    finally:
        milliseconds = round((perf_counter() - started) * 1000, 1)
        logger.info(message, **{**line, "milliseconds": milliseconds, **fields})


def log_report(
    logger: Logger, request: Request, table: Levels, body: bytes, config: Config
) -> None:
    """Write a log line about a client's report of a scan or a commit.

    Args:
        table: the levels of its namespace and its name.

    Raises:
        BadRequest: the report does not have the form of the specification.
    """
    fields = report_fields(parse(dict, body), with_values=config.log_values)
    # Whether the table exists would cost a query for each scan. Nobody writes lines about tables
    # that are hidden from them.
    if fields is not None and rights_of(request, config.lake).may_read_table(table[:-1], table[-1]):
        fields = of_lake(request) | fields
        logger.info("report", principal=caller_of(request), table=dotted(*table), **fields)


# `async def` although nothing awaits: under Mangum a `def` route or dependency runs in a new
# thread on every invocation, and the one PostgreSQL connection must not change threads.
async def named_namespace(namespace: str) -> Levels:
    """The namespace that a route names."""
    return of_path(namespace)


Namespace = Annotated[Levels, Depends(named_namespace)]


async def refuse_path(path: str) -> Response:
    """Answer a path that no operation has."""
    raise NoSuchRoute(f"no such route: /{path}")


def add_routes(app: FastAPI, routes: Iterable[Route]) -> None:
    """Add the routes of operations.

    API Gateway decodes the path, so that a `/` in a name looks like any other. Names without one
    come first; then `:path` takes the others.
    """
    routes = list(routes)
    for kind in ("", ":path"):
        for method, path, answer in routes:
            for name in ("namespace", "table", "view"):
                path = path.replace(f"{{{name}}}", f"{{{name}{kind}}}")
            app.add_api_route(path, answer, methods=[method])


def new_app(logger: Logger) -> FastAPI:
    """An application without routes, which answers every error in the specification's form."""
    app = FastAPI(title="Polynya", openapi_url=None, redirect_slashes=False, telemetry=NO_TELEMETRY)
    # An HTTP API does not compress, and Lambda may answer 6 MB.
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_FROM, compresslevel=GZIP_LEVEL)

    @app.exception_handler(PolynyaError)
    async def error_response(request: Request, error: PolynyaError) -> JSONResponse:
        """Answer an error with the specification's `IcebergErrorResponse`."""
        count_refusal(error.type)
        if error.status >= 500:
            logger.error("refused", reason=str(error), path=request.url.path)
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
        return JSONResponse(
            {"error": error.rest_model()}, status_code=error.status, headers=headers
        )

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
        """Answer parameters of the wrong type with 400."""
        problems = "; ".join(
            f"{problem['loc'][-1]}: {problem['msg']}" for problem in error.errors()
        )
        return await error_response(request, BadRequest(problems))

    @app.exception_handler(Exception)
    async def unexpected(request: Request, error: Exception) -> JSONResponse:
        """Answer any other error with 500, and log where it was raised."""
        logger.error("unexpected error", path=request.url.path, **log_fields(error))
        return await error_response(request, PolynyaError("an unexpected error; see the log"))

    return app


def lambda_handler(app: FastAPI, logger: Logger) -> Handler:
    """The Lambda handler of an application, for events of an HTTP API or a Function URL."""

    async def quiet_app(scope: Scope, receive: Receive, send: Send) -> None:
        """The application without the error that it raises after `unexpected` has answered."""
        started, statuses = perf_counter(), [500]

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        with suppress(Exception):  # Mangum would log the message
            await app(scope, receive, counted)
        # The router has added the function of the route, whose name is the operation's.
        operation = getattr(scope.get("endpoint"), "__name__", "none")
        seconds = perf_counter() - started
        watched("Requests", seconds, operation=operation, status=str(statuses[-1]))

    asgi = Mangum(quiet_app, lifespan="off")

    @traced
    @published
    @budgeted(RESERVE_SECONDS)
    @logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
    def handler(event: HttpApiEvent, context: Any) -> dict[str, Any]:
        """Answer one event of an HTTP API or a Function URL."""
        request_context = event["requestContext"]
        if ".lambda-url." not in request_context.get("domainName", ""):
            # An HTTP API has decoded the path, a Function URL has not, and Mangum always decodes.
            http = request_context["http"]
            encoded: Http = {**http, "path": quote(http["path"])}
            event = {**event, "requestContext": {**request_context, "http": encoded}}
        return asgi(dict(event), context)

    return handler
