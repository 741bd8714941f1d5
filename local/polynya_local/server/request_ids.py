"""Gives each request an id, which is in its answer and in its log lines."""

import re
from uuid import uuid4

from polynya.runtime.request_id import identified
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER, S3_HEADER = b"x-request-id", b"x-amz-request-id"

PLAIN = re.compile(rb"[A-Za-z0-9-]{1,64}")
"""An id that is accepted from a client or a proxy: it cannot look like another log line."""


class RequestIds:
    """An application whose requests have ids."""

    def __init__(self, app: ASGIApp, s3_port: int) -> None:
        """`s3_port`: the port whose answers have the id in S3's header."""
        self._app, self._s3_port = app, s3_port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        client_id = dict(scope["headers"]).get(HEADER, b"")
        request_id = client_id if PLAIN.fullmatch(client_id) else str(uuid4()).encode()
        name = S3_HEADER if scope["server"][1] == self._s3_port else HEADER

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                # The S3 behind has given its answer another id, which is not in our log.
                headers = [pair for pair in message["headers"] if pair[0].lower() != name]
                message = {**message, "headers": [*headers, (name, request_id)]}
            await send(message)

        with identified(request_id.decode()):
            await self._app(scope, receive, send_with_id)
