"""The Lambda handler of the ASGI application, behind API Gateway or a Function URL."""

from contextlib import suppress
from typing import Any
from urllib.parse import quote

from aws_lambda_powertools import Logger
from mangum import Mangum
from starlette.types import ASGIApp, Receive, Scope, Send

from ..http.application import observed
from ..http.calls import CALLER
from ..runtime.budget import Handler, budgeted
from ..runtime.metrics import invocation, traced
from .events import Http, HttpApiEvent, api_caller

RESERVE_SECONDS = 3
"""The part of Lambda's timeout that is left to answer 503 before API Gateway does."""


def api_handler(app: ASGIApp, logger: Logger) -> Handler:
    """The Lambda handler of an application, for events of an HTTP API or a Function URL."""

    counted = observed(app)

    async def quiet_app(scope: Scope, receive: Receive, send: Send) -> None:
        """The application, without the error that it raises again after it has answered it."""
        scope[CALLER] = api_caller(scope["aws.event"]["requestContext"])
        with suppress(Exception):  # Mangum would log the message
            await counted(scope, receive, send)

    asgi = Mangum(quiet_app, lifespan="off")

    @traced
    @invocation()
    @budgeted(RESERVE_SECONDS)
    @logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
    def handler(event: HttpApiEvent, context: Any) -> dict[str, Any]:
        """Answer one event of an HTTP API or a Function URL."""
        request_context = event["requestContext"]
        if ".lambda-url." not in request_context.get("domainName", ""):
            # An HTTP API has decoded the path and a Function URL has not, but Mangum always decodes
            # it.
            http = request_context["http"]
            encoded: Http = {**http, "path": quote(http["path"])}
            event = {**event, "requestContext": {**request_context, "http": encoded}}
        return asgi(dict(event), context)

    return handler
