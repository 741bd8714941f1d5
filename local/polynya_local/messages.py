"""Requests and answers as records, for functions that answer in threads.

Header values have one character per byte (Latin-1), as in `http.client`, so that every header
passes through unchanged.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from io import BufferedIOBase
from tempfile import SpooledTemporaryFile
from typing import IO, Protocol

PIECE = 1024 * 1024

IN_MEMORY = 1024 * 1024
"""The longest body in memory, in bytes; a longer one is in a temporary file."""

LONGEST_TRAILERS = 64 * 1024
"""The most bytes after the last chunk of a body."""

Headers = tuple[tuple[str, str], ...]

# Headers of the connection, not of the message (RFC 9110, section 7.6.1), and the length, which is
# counted again.
PER_CONNECTION = frozenset(
    ("connection", "content-length", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade")
)


class Body(Protocol):
    """The body of a request, which is received on demand, at most once."""

    def read(self) -> bytes:
        """The whole body, without its Transfer-Encoding.

        Raises:
            ConnectionError: it breaks off.
            RequestTimeout: nothing of it comes for long.
        """

    def file(self) -> IO[bytes]:
        """The body as a file, of which little is in memory.

        Raises:
            ConnectionError, RequestTimeout: as `read`.
            OSError: the disk is full.
        """


@dataclass(frozen=True, slots=True)
class Request:
    """A client's request; `path` and `query` are percent-encoded as the client sent them."""

    method: str
    path: str
    query: str = field(repr=False)
    """It contains the signature of a presigned URL."""
    headers: Headers = field(repr=False)
    """They contain tokens and signatures."""
    body: Body
    client: str = ""
    """The address that the connection comes from, or that a trusted proxy names."""
    scheme: str = "http"

    def header(self, name: str) -> str:
        """All values of a header, joined by commas (RFC 9110, section 5.3); empty: not sent."""
        return ",".join(value for key, value in self.headers if key.lower() == name.lower())


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request.

    The Content-Length of a `bytes` body is always counted. A body in pieces is sent with the
    Content-Length of `headers`, or chunked if there is none. An answer to HEAD has no body; the
    Content-Length of its headers is that of the object.
    """

    status: int
    headers: Headers = ()
    body: bytes | Iterable[bytes] = field(default=b"", repr=False)
    """It may contain vended credentials."""

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


Answer = Callable[[Request], Response]


def spooled(pieces: Iterable[bytes]) -> IO[bytes]:
    """A file with these bytes. Raises: OSError: the disk is full."""
    with ExitStack() as stack:
        file = stack.enter_context(SpooledTemporaryFile[bytes](IN_MEMORY))
        for piece in pieces:
            file.write(piece)
        file.seek(0)
        stack.pop_all()
        return file


def pieces_of(file: IO[bytes]) -> Iterator[bytes]:
    """The bytes of a file from where it is."""
    return iter(partial(file.read, PIECE), b"")


def chunks(stream: IO[bytes] | BufferedIOBase) -> Iterator[bytes]:
    """The data of a chunked body, up to its trailers.

    S3's encoding "aws-chunked" has the same form, with the extension `;chunk-signature=…`.

    Raises:
        ConnectionError: the body is not chunked, or breaks off.
    """
    while size := _chunk_size(stream.readline(65536)):
        yield from exactly(stream, size)
        stream.readline(3)


def _chunk_size(line: bytes) -> int:
    match = re.match(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;|\r?\n)", line)
    if not match:
        raise ConnectionError(f"not the head of a chunk: {line[:40]!r}")
    return int(match[1], 16)


def exactly(stream: IO[bytes] | BufferedIOBase, size: int) -> Iterator[bytes]:
    while size:
        piece = stream.read(min(size, PIECE))
        if not piece:
            raise ConnectionError("the body ends too early")
        size -= len(piece)
        yield piece


def to_text(value: str) -> str:
    """The text of a header value, read as UTF-8."""
    return value.encode("latin-1", "replace").decode("utf-8", "replace")
