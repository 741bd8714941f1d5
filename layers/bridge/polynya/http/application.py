"""The ASGI application: routes, errors as answers, compression.

A host makes it for lakes that it has opened, and sends it requests. The scope of each has the
caller, as `CALLER`; the time budget and the id of a request are in the host's context
(`runtime/budget.py`, `runtime/request_id.py`).
"""

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import Parameter, signature
from math import inf
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

from aws_lambda_powertools import Logger
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import JSONResponse, Response
from fastapi.telemetry import TelemetryConfig
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..catalog.lakes import Lakes
from ..catalog.loaded_tables import GZIP_LEVEL
from ..runtime.errors import (
    BadRequest,
    ContentTooLarge,
    PolynyaError,
    RequestTimeout,
    log_fields,
)
from ..runtime.metrics import count_refusal, observe
from .calls import Call

COMPRESSED_FROM = 2000
"""The bytes from which an answer is compressed."""

NO_TELEMETRY: TelemetryConfig = {"tracing": False, "metrics": False, "logs": False}
"""FastAPI's own logger, whose paths and messages have names and values in them."""

NAMESPACES = "/v1/{prefix}/namespaces"
NAMESPACE = NAMESPACES + "/{namespace}"
TABLE = NAMESPACE + "/tables/{table}"
VIEW = NAMESPACE + "/views/{view}"

WRITES = ("POST", "PUT", "PATCH", "DELETE")
"""The methods of requests that may write."""

Route: TypeAlias = tuple[str, str, Callable[..., Response]]
"""The method, the path and what answers it: a function of a `Call`, and of parameters."""

Run = Callable[[Callable[[], Response]], Awaitable[Response]]
"""Runs the function that answers a request, which waits for databases and for S3."""


class Operations(NamedTuple):
    """Routes, and the lakes that they are about."""

    routes: tuple[Route, ...]
    lakes: Callable[[], Lakes[Any]]
    """Called for each request. Raises Misconfigured if a setting is missing or not usable."""
    refused: tuple[tuple[Callable[..., Response], tuple[str, ...]], ...]
    """The functions that answer all other paths, for these methods."""
    around: Callable[[Call], AbstractContextManager[object]] = lambda call: nullcontext()
    """Entered around each answer, in its thread."""


async def answer_at_once(answer: Callable[[], Response]) -> Response:
    """Answer in the thread of the event loop, for a host that sends one request at a time."""
    return answer()


def create_app(
    logger: Logger,
    *operations: Operations,
    run: Run = answer_at_once,
    longest_body: float = inf,
) -> FastAPI:
    """The application; no lake is opened yet.

    Args:
        operations: the first one with a route for a path answers it.
        longest_body: the most bytes of the body of a request.
    """
    app = FastAPI(title="Polynya", openapi_url=None, redirect_slashes=False, telemetry=NO_TELEMETRY)
    # An HTTP API does not compress, and Lambda may answer 6 MB.
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_FROM, compresslevel=GZIP_LEVEL)
    _answer_errors(app, logger)
    # A host may decode the path, as API Gateway does, so that a `/` in a name looks like any other.
    # Names without one come first; then `:path` takes the others.
    for kind in ("", ":path"):
        for group in operations:
            for method, path, answer in group.routes:
                for name in ("namespace", "table", "view"):
                    path = path.replace(f"{{{name}}}", f"{{{name}{kind}}}")
                endpoint = _endpoint(answer, group, logger, run, longest_body)
                app.add_api_route(path, endpoint, methods=[method])
    for group in operations:
        alone = Operations((), group.lakes, ())  # such a path may name no lake
        for refuse, methods in group.refused:
            endpoint = _endpoint(refuse, alone, logger, run, longest_body)
            app.add_api_route("/{path:path}", endpoint, methods=[*methods])
    return app


def observed(app: ASGIApp) -> ASGIApp:
    """The application, with each request counted and timed by its operation."""

    async def observed_app(scope: Scope, receive: Receive, send: Send) -> None:
        started, ended, status = perf_counter(), None, 500

        async def observing(message: Message) -> None:
            nonlocal ended, status
            if message["type"] == "http.response.start":
                # From here on a refused commit may wait for its turn, and a client for its network.
                ended, status = perf_counter(), message["status"]
            await send(message)

        try:
            await app(scope, receive, observing)
        finally:
            # The router has added the function of the route, whose name is the operation's.
            operation = getattr(scope.get("endpoint"), "__name__", "none")
            seconds = (ended or perf_counter()) - started
            observe("Requests", seconds, operation=operation, status=str(status))

    return observed_app


def _endpoint(
    answer: Callable[..., Response],
    group: Operations,
    logger: Logger,
    run: Run,
    longest_body: float,
) -> Callable[..., Awaitable[Response]]:
    """The answer as a coroutine that FastAPI calls with the request instead of a `Call`."""

    @wraps(answer)
    async def endpoint(request: Request, **arguments: Any) -> Response:
        body = await _received(request, longest_body)
        call = Call(request, body, group.lakes, logger)

        def run_answer() -> Response:
            with group.around(call):
                return answer(call, **arguments)

        return await run(run_answer)

    shown = signature(answer)
    _, *parameters = shown.parameters.values()
    first = Parameter("request", Parameter.POSITIONAL_OR_KEYWORD, annotation=Request)
    endpoint.__signature__ = shown.replace(parameters=[first, *parameters])  # type: ignore[attr-defined]
    return endpoint


async def _received(request: Request, longest: float) -> bytes:
    """The body of a request. Raises ContentTooLarge: it is longer than `longest` bytes."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > longest:
            raise ContentTooLarge(
                f"the body of a request may have {longest:,} bytes: send it in several requests"
            )
        pieces.append(piece)
    return b"".join(pieces)


def _answer_errors(app: FastAPI, logger: Logger) -> None:
    """Answer every error in the specification's form."""

    @app.exception_handler(PolynyaError)
    async def error_response(request: Request, error: PolynyaError) -> JSONResponse:
        """Answer an error with the specification's `IcebergErrorResponse`."""
        count_refusal(error.type)
        if error.status >= 500:
            logger.error("refused", reason=str(error), path=request.url.path)
        headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
        if isinstance(error, RequestTimeout):
            headers["Connection"] = "close"  # the rest of the body is not read
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
