"""An ASGI application around a function that answers requests in threads."""

import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from typing import IO
from urllib.parse import quote

from anyio import CapacityLimiter, fail_after, from_thread, move_on_after, to_thread
from polynya.runtime.errors import RequestTimeout, log_fields
from starlette.responses import Response as Whole
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ..messages import PER_CONNECTION, PIECE, Answer, Request, Response, spooled

logger = logging.getLogger(__name__)

# Characters that are left as they are; control characters and bytes beyond ASCII are
# percent-encoded, which names the same key.
TARGET = "".join(map(chr, range(0x21, 0x7F)))

CLOSE = ("connection", "close")
"""Ends the connection after the answer."""


THREADS = 40
"""How many requests are answered at the same time."""

BODY_SECONDS = 60
"""How long a client may pause while it sends a body."""

SMALL = 128 * 1024
"""Bodies of up to so many bytes are received before a thread begins: switching takes time."""


class TooLong(ValueError):
    """A body is longer, or takes longer, than its reader permits."""


def received_in_time(receive: Receive) -> Receive:
    """Receives a body as `receive` does; raises RequestTimeout if nothing of it comes for long.

    After its end the client may take any time to disconnect, which a streamed answer waits for.
    """
    is_whole = False

    async def receive_in_time() -> Message:
        nonlocal is_whole
        try:
            with fail_after(None if is_whole else BODY_SECONDS):
                message = await receive()
        except TimeoutError:
            reason = f"nothing of the request's body has come for {BODY_SECONDS} s"
            raise RequestTimeout(reason) from None
        is_whole = not message.get("more_body", False)
        return message

    return receive_in_time


class _ReceivedBody:
    """The body of a request, which the event loop receives when a thread asks for it."""

    def __init__(self, receive: Receive, length: float, most: float, is_empty: bool) -> None:
        """`length`: how many bytes the client says that it has."""
        self._receive, self._most = receive, most
        self._pieces: list[bytes] = []
        self._size = 0
        self._may_take_longer = True
        self._timeout: RequestTimeout | None = None
        self.length, self.is_read = length, is_empty

    async def receive(self, seconds: float) -> None:
        """Receive it in the event loop, where a slow client blocks no thread.

        `read` raises TooLong if it has not come in time.
        """
        self._may_take_longer = False
        with move_on_after(seconds), suppress(ConnectionError):
            await self.receive_until(self._most)

    async def receive_until(self, most: float) -> None:
        """Receive it in the event loop until it is longer than `most` bytes, or ends.

        Raises:
            ConnectionError: it breaks off.
            RequestTimeout: nothing of it comes; `read` raises it, too.
        """
        while not self.is_read and self._size <= most:
            try:
                message = await self._receive()
            except RequestTimeout as error:
                self._timeout = error
                raise
            if message["type"] == "http.disconnect":
                raise ConnectionError("the body ends too early")
            self._pieces.append(message.get("body", b""))
            self._size += len(self._pieces[-1])
            self.is_read = not message.get("more_body", False)

    def read(self) -> bytes:
        """As `Body.read`."""
        if self._timeout:
            raise self._timeout
        if not self.is_read and self._may_take_longer:
            from_thread.run(self.receive_until, self._most)
        if not self.is_read or self._size > self._most:
            raise TooLong
        return b"".join(self._pieces)

    def file(self) -> IO[bytes]:
        """As `Body.file`."""
        return spooled(self._taken())

    def _taken(self) -> Iterator[bytes]:
        if self._timeout:
            raise self._timeout
        while self._pieces or not self.is_read:
            if not self._pieces:
                from_thread.run(self.receive_until, self._size + PIECE)
            pieces, self._pieces = self._pieces, []
            yield from pieces


def received_body(scope: Scope, receive: Receive, most: float = inf) -> _ReceivedBody:
    """The body of a request, whose `read` raises TooLong if it has more bytes than `most`."""
    headers = dict(scope["headers"])
    is_chunked = b"transfer-encoding" in headers
    declared = headers.get(b"x-amz-decoded-content-length" if is_chunked else b"content-length")
    length = int(declared) if declared and declared.isdigit() else inf if is_chunked else 0
    return _ReceivedBody(receive, length, most, is_empty=not is_chunked and length == 0)


def request_of(scope: Scope, body: _ReceivedBody) -> Request:
    """The request of a scope."""
    headers = ((name.decode("latin-1"), text.decode("latin-1")) for name, text in scope["headers"])
    return Request(
        scope["method"],
        quote(scope["raw_path"].decode("latin-1"), safe=TARGET),
        quote(scope["query_string"].decode("latin-1"), safe=TARGET),
        tuple(headers),
        body,
        (scope.get("client") or ("",))[0],
        scope.get("scheme", "http"),
    )


class Answering:
    """Calls the function in a thread for each request, and sends what it answers."""

    def __init__(self, answer: Answer) -> None:
        """The function may read the body of the request, and answer with one in pieces."""
        self._answer = answer
        self._limiter: CapacityLimiter | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = received_body(scope, received_in_time(receive))
        request = request_of(scope, body)
        try:
            if body.length <= SMALL:
                with suppress(RequestTimeout):  # raised when the body is read
                    await body.receive_until(SMALL)
            # Its own threads, and not those of the catalog: uploads may be slow.
            self._limiter = self._limiter or CapacityLimiter(THREADS)  # of this event loop
            answer = partial(self._answer, request)
            response = await to_thread.run_sync(answer, limiter=self._limiter)
        except ConnectionError:
            return  # the client disconnected before the end of its body
        except Exception as error:
            logger.error("%s %s failed: %s", request.method, request.path, log_fields(error))
            response = Response(500, (("Content-Type", "text/plain"),), b"Internal Server Error")
        if not body.is_read:
            # A client that waits for 100 Continue may send the body after the answer, or not.
            response = replace(response, headers=(*response.headers, CLOSE))
        await send_response(scope, receive, send, response)


async def send_response(scope: Scope, receive: Receive, send: Send, response: Response) -> None:
    """Send an answer; one to HEAD, 204 and 304 has no body."""
    method, body = scope["method"], response.body
    is_bare = method == "HEAD" or response.status in (204, 304)
    answer = (
        Whole(b"" if is_bare else body, response.status)
        if is_bare or isinstance(body, bytes)
        else StreamingResponse(body, response.status)  # it ends when the client disconnects
    )
    answer.raw_headers = [*_headers(method, response)]
    try:
        await answer(scope, receive, send)
    finally:
        if close := getattr(body, "close", None):
            close()


def _headers(method: str, response: Response) -> Iterator[tuple[bytes, bytes]]:
    length = response.header("content-length")
    if isinstance(response.body, bytes) and (length is None or method != "HEAD"):
        length = str(len(response.body))
    if length is not None and response.status not in (204, 304):
        yield b"content-length", length.encode()
    for name, value in response.headers:
        if name.lower() not in PER_CONNECTION or (name, value) == CLOSE:
            # A line break in a value would begin another header.
            yield name.lower().encode("latin-1"), re.sub(r"[\r\n]+", " ", value).encode("latin-1")
