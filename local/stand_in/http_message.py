"""A request and its answer as records, and the body of a request, which is read when asked for.

Header values are held as `http.server` and `http.client` give them, one character per byte
(Latin-1): so a header passes through unchanged, whatever it holds.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from email.message import Message
from io import BufferedIOBase

PIECE = 1024 * 1024

Headers = tuple[tuple[str, str], ...]

# What belongs to one connection and not to the message (RFC 9110, section 7.6.1), and the length,
# which is counted anew.
PER_CONNECTION = frozenset(
    ("connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)


class RequestBody:
    """Reads one request's body from its connection, at most once.

    A body that breaks off raises ConnectionError.
    """

    def __init__(
        self, stream: BufferedIOBase, headers: Message, send_continue: Callable[[], None]
    ) -> None:
        self._stream = stream
        self._chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
        length = headers.get("Content-Length", "0")
        self._length = int(length) if re.fullmatch(r"\d{1,18}", length) else 0
        self._read = not (self._chunked or self._length)
        # A client that says so holds the body back until it hears 100 Continue.
        self._held_back = headers.get("Expect", "").lower() == "100-continue"
        self._send_continue = send_continue

    def read(self) -> bytes:
        """The whole body, its Transfer-Encoding taken off."""
        return b"".join(self._pieces())

    def drain(self) -> bool:
        """Read up to the next request; False: impossible, the connection has to be closed."""
        if self._held_back:
            return False  # after our answer the client may send the body or leave it
        for _ in self._pieces():
            pass
        return True

    def _pieces(self) -> Iterator[bytes]:
        if self._held_back:
            self._held_back = False
            self._send_continue()
        if not self._read:
            self._read = True
            if self._chunked:
                yield from unchunked(self._stream)
            else:
                yield from _exactly(self._stream, self._length)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent; `path` and `query` as they were on the wire, percent-encoding kept."""

    method: str
    path: str
    query: str
    headers: Headers
    body: RequestBody
    client_host: str

    def header(self, name: str) -> str:
        """All values of one header, joined as RFC 9110, section 5.3 allows; empty: not sent."""
        return ",".join(value for key, value in self.headers if key.lower() == name.lower())


@dataclass(frozen=True, slots=True)
class Response:
    """What a client gets.

    The length of a `bytes` body is counted when it is sent, whatever the headers say. A body in
    pieces goes out with the Content-Length of its headers, or chunked when there is none. An
    answer to HEAD sends no body; a Content-Length among its headers is the object's own.
    """

    status: int
    headers: Headers = ()
    body: bytes | Iterable[bytes] = b""

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


Answer = Callable[[Request], Response]


def unchunked(stream: BufferedIOBase) -> Iterator[bytes]:
    """The data of a chunked body (RFC 9112, section 7.1), its extensions and trailers left out.

    S3's own "aws-chunked" encoding has the same form, with `;chunk-signature=…` as extension.
    """
    while size := _chunk_size(stream.readline(65536)):
        yield from _exactly(stream, size)
        stream.readline(3)
    while stream.readline(65536).strip():
        pass


def _chunk_size(line: bytes) -> int:
    match = re.match(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;|\r?\n)", line)
    if not match:
        raise ConnectionError(f"not the head of a chunk: {line[:40]!r}")
    return int(match[1], 16)


def _exactly(stream: BufferedIOBase, size: int) -> Iterator[bytes]:
    while size:
        piece = stream.read(min(size, PIECE))
        if not piece:
            raise ConnectionError("the body ends too early")
        size -= len(piece)
        yield piece


def from_text(value: str) -> str:
    """A text as a header value for the wire: its UTF-8 bytes, one character each."""
    return value.encode("utf-8", "replace").decode("latin-1")


def to_text(value: str) -> str:
    """A header value from the wire, read as UTF-8."""
    return value.encode("latin-1", "replace").decode("utf-8", "replace")
