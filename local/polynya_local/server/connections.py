"""Limits of connections and of the heads of their requests, which anybody may send.

Uvicorn has none for heads with httptools, and none after a body that comes after its answer. Beyond
its `limit_concurrency` it refuses the requests of all connections; here those that are there go on,
and the new ones are refused.
"""

import resource
from asyncio import TimerHandle, Transport
from typing import Any

from polynya.runtime.errors import ServiceUnavailable
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_CONNECTIONS = 1000
"""How many connections a process has at the same time, of both ports together."""

OTHER_FILES = 1024
"""How many files a process has open at most besides the connections and what answers them."""

LIVE_PATH = "/live"
"""Answers as long as the process does; /health asks the databases of lakes too."""

LONGEST_HEAD = 512 * 1024
"""Bytes of the request line and the headers, or of trailers: more than one read of a connection."""
HEAD_SECONDS = 60
"""How long a head may take, and how long a new connection may send nothing."""


def allow_files(connections: int) -> None:
    """Let this process, and those that it starts, have so many connections if the system does.

    Many let a process have 1,024 files open unless it asks for more. Each connection may have a
    file, or another connection, behind it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * connections + OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        needed = min(needed, hard)
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class LimitedConnection(HttpToolsProtocol):
    """HTTP/1.1 by httptools, without heads that do not end, for so many connections."""

    def __init__(self, *arguments: Any, most: int = MOST_CONNECTIONS, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._most = most
        self._head_bytes = 0
        """Those that have come since the last part of a body."""
        self._timer: TimerHandle | None = None
        """Ends a head that takes long; None: the head is complete."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Give the first head its time, and refuse its request if there are too many."""
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
                # The rest of a body that nobody reads has ended the time until the next request.
                self.timeout_keep_alive_task = self.loop.call_later(
                    self.timeout_keep_alive, self.timeout_keep_alive_handler
                )
        elif self._timer is not None:
            self.send_400_response("The head of the request is too long.")
        else:  # an answer may be under way
            self.transport.close()

    def on_message_begin(self) -> None:
        """Give a head its time."""
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        """Leave the time of the body to whoever reads it."""
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
    """An application for connections that are too many: all it answers is that the process lives,
    because another one would have as many."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == LIVE_PATH:
            await app(scope, receive, send)
            return
        error = ServiceUnavailable("the server has no free connection: try again")
        headers = {"Retry-After": str(error.retry_after), "Connection": "close"}
        response = JSONResponse({"error": error.rest_model()}, error.status, headers)
        await response(scope, receive, send)

    return answer
