"""Each request has an id, which its answer and its log lines have."""

import re
from uuid import uuid4

from polynya.runtime.request_id import identified
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADER, S3_HEADER = b"x-request-id", b"x-amz-request-id"

PLAIN = re.compile(rb"[A-Za-z0-9-]{1,64}")
"""What may be taken over from a client, or from a proxy: no text that looks like another line."""


class RequestIds:
    """An application whose requests have ids."""

    def __init__(self, app: ASGIApp, s3_port: int) -> None:
        """`s3_port`: where answers have the id in the header of S3."""
        self._app, self._s3_port = app, s3_port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        client_id = dict(scope["headers"]).get(HEADER, b"")
        request_id = client_id if PLAIN.fullmatch(client_id) else str(uuid4()).encode()
        name = S3_HEADER if scope["server"][1] == self._s3_port else HEADER

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                # The S3 behind has given its answer another one, which is in none of our lines.
                headers = [pair for pair in message["headers"] if pair[0].lower() != name]
                message = {**message, "headers": [*headers, (name, request_id)]}
            await send(message)

        with identified(request_id.decode()):
            await self._app(scope, receive, send_with_id)
