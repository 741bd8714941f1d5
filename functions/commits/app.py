"""A placeholder: refuses everything. The routes that write are written elsewhere."""

from contextlib import suppress
from typing import Any
from urllib.parse import quote

from aws_lambda_powertools import Logger
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from mangum import Mangum
from polynya.errors import Forbidden, PolynyaError
from polynya.events import HttpApiEvent
from polynya.tracing import traced
from starlette.types import Receive, Scope, Send

logger = Logger(service="commits")
app = FastAPI(title="Polynya", openapi_url=None, redirect_slashes=False)


async def refuse_write(path: str) -> Response:
    """Refuse every write."""
    raise Forbidden("no route that writes is here yet")


app.add_api_route("/{path:path}", refuse_write, methods=["POST", "PUT", "PATCH", "DELETE"])


@app.exception_handler(PolynyaError)
async def error_response(request: Request, error: PolynyaError) -> JSONResponse:
    """Answer an error with the specification's `IcebergErrorResponse`."""
    return JSONResponse({"error": error.rest_model()}, status_code=error.status)


async def quiet_app(scope: Scope, receive: Receive, send: Send) -> None:
    """The application without the errors that it raises."""
    with suppress(Exception):
        await app(scope, receive, send)


asgi = Mangum(quiet_app, lifespan="off")


@traced
@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handler(event: HttpApiEvent, context: Any) -> dict[str, Any]:
    """Answer one event of an HTTP API."""
    request_context = event["requestContext"]
    encoded = {**request_context["http"], "path": quote(request_context["http"]["path"])}
    return asgi({**event, "requestContext": {**request_context, "http": encoded}}, context)
