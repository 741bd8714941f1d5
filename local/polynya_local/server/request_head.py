"""Limits of the head of a request, which anybody may send: uvicorn has none with httptools."""

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD = 512 * 1024
"""Bytes of the request line and the headers, or of trailers: more than one read of a connection."""
HEAD_SECONDS = 60
"""How long a head may take, and how long a new connection may send nothing."""


class LimitedHead(HttpToolsProtocol):
    """HTTP/1.1 by httptools, without heads that do not end."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_bytes = 0
        """Those that have come since the last part of a body."""
        self._timer: TimerHandle | None = None
        """Ends a head that takes long; None: the head is complete."""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Give the first head its time."""
        super().connection_made(transport)
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
        elif self._timer is not None:
            self.send_400_response("The head of the request is too long.")
        else:  # an answer may be under way
            self.transport.close()

    def on_message_begin(self) -> None:
        """Give a head its time."""
        super().on_message_begin()
        self._begin_head()

    def on_headers_complete(self) -> None:
        """Let the body take as long as it takes."""
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
