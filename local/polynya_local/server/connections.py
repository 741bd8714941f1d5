"""Limits of connections and of the heads of their requests, which anybody may send.

Uvicorn has none for heads with httptools, and none after a body that arrives after its answer.
Beyond its `limit_concurrency` it refuses the requests of all connections; here existing connections
go on, and new ones are refused.
"""

import resource
from asyncio import TimerHandle, Transport
from typing import Any

from polynya.runtime.errors import ServiceUnavailable
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_CONNECTIONS = 1000
"""The most connections of a process at the same time, of both ports together."""

OTHER_FILES = 1024
"""The most files of a process besides its connections and what is behind them."""

LIVE_PATH = "/live"
"""Answers as long as the process does; /health asks the databases of lakes too."""

LONGEST_HEAD = 512 * 1024
"""Bytes of the request line and the headers, or of trailers: more than one read of a connection."""
HEAD_SECONDS = 60
"""How long a head may take, and how long a new connection may send nothing."""


def allow_files(connections: int) -> None:
    """Permit this process, and those that it starts, this many connections if the system does.

    Many systems permit a process 1,024 open files unless it asks for more. Each connection may have
    a file, or another connection, behind it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * connections + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class LimitedConnection(HttpToolsProtocol):
    """HTTP/1.1 by httptools, with limits of heads and of the number of connections."""

    def __init__(self, *arguments: Any, most: int = MOST_CONNECTIONS, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most = most
        self._head_bytes = 0
        """The bytes of the current head, or since the last part of a body."""
        self._timer: TimerHandle | None = None
        """Ends a head that takes long; None: the head is complete."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin the time of the first head; refuse requests if there are too many connections."""
        super().connection_made(transport)
        if len(self.connections) > self._most:
            self.app = refusing(self.app)
        self._begin_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the head."""
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Refuse a head that is too long, before httptools keeps more of it."""
        if self._head_bytes <= LONGEST_HEAD:
            super().data_received(data)
            self._head_bytes += len(data)
            if self.cycle is not None and self.cycle.response_complete:
                # The unread rest of a body has cancelled the timeout until the next request.
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
        elif self._timer is not None:
            self.send_400_response("The head of the request is too long.")
        else:  # an answer may be under way
            self.transport.close()

    def on_message_begin(self) -> None:
        """Begin the time of a head."""
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        """End the time of the head; the reader of the body limits its time."""
        self._end_head()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Count the bytes after a body: trailers."""
        self._head_bytes = 0
        super().on_body(body)

    def _begin_head(self) -> None:
        self._end_head()
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def refusing(app: Any) -> Any:
    """An application for connections beyond the limit: it answers LIVE_PATH, and refuses the rest.

    A process that is restarted for its refusals would get as many connections again.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == LIVE_PATH:
            await app(scope, receive, send)
            return
        error = ServiceUnavailable("the server has no free connection: try again")
        headers = {"Retry-After": str(error.retry_after), "Connection": "close"}
        response = JSONResponse({"error": error.rest_model()}, error.status, headers)
        await response(scope, receive, send)

    return answer
