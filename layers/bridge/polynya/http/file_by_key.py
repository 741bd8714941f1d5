"""GET and HEAD of a virtual file by its key, for every host that has an endpoint of S3."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..access.authorized_lake import AuthorizedFiles
from ..access.caller import Caller
from ..catalog.lakes import STATEMENT_SECONDS, Lakes
from ..runtime.errors import Forbidden, NotModified, PreconditionFailed
from ..runtime.settings import Config
from ..virtual_files.adapted_data_files import PIECE, FileEnd
from .conditions import byte_range, matches_etag

CONTENT_TYPES = {"json": "application/json", "avro": "avro/binary"}


@dataclass(frozen=True, slots=True)
class FileRequest:
    """A request for a virtual file; headers as the client sent them, None where it sent none."""

    key: str
    caller: Caller
    range: str | None = None
    if_match: str | None = None
    if_none_match: str | None = None
    is_head: bool = False
    """Only the headers of the answer are needed."""


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A virtual file, or a range of it."""

    status: int
    """200, or 206 for a range."""
    body: bytes | Iterator[bytes] = field(repr=False)
    """A large one in pieces; empty for HEAD."""
    length: int
    """The bytes of the body, also for HEAD."""
    size: int
    """The bytes of the whole file."""
    first: int
    """The position in the file of the first byte of the body."""
    etag: str
    content_type: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer to GET."""
        headers = {
            "Content-Length": str(self.length),
            "Content-Type": self.content_type,
            "Accept-Ranges": "bytes",
            "ETag": self.etag,
        }
        if self.status == 206:
            headers["Content-Range"] = self.content_range
        return headers

    @property
    def content_range(self) -> str:
        """The header Content-Range."""
        return f"bytes {self.first}-{self.first + self.length - 1}/{self.size}"


def read_file(lakes: Lakes[AuthorizedFiles], request: FileRequest) -> FileAnswer:
    """Read a virtual file, which is generated if it is not cached.

    Raises:
        NoSuchKey: there is none, or the caller may not read its table.
        Forbidden: the range has nothing but bytes of columns that the caller may not see.
        NotModified, PreconditionFailed, InvalidRange: as the headers say (RFC 9110, section 13).
        PolynyaError: as `AuthorizedFiles.read`, and `ObjectReader.read_range`, which the pieces of
            a body raise too.
    """
    key = request.key
    files = lakes.lake_of_key(key, request.caller)
    body = files.read(key, request.caller)
    file = FileEnd.decoded(body) if files.is_data_file(key) else FileEnd("", 0, body)
    # Not the location, in which values of hidden columns may be. The key has a fingerprint of it.
    tagged = body if file.visible is None else key.encode() + file.tail
    etag = f'"{hashlib.sha256(tagged).hexdigest()[:32]}"'
    if not matches_etag(request.if_match or "*", etag):
        raise PreconditionFailed("the file is not the one that If-Match names")
    if matches_etag(request.if_none_match or "", etag):
        raise NotModified("the file is the one that the caller has")
    requested = byte_range(request.range, file.size)
    first, last = requested or (0, file.size - 1)
    if not file.shows(first, last):
        raise Forbidden("these bytes are those of columns that are hidden from you")
    pieces = file.pieces(first, last, files.object_reader.read_range)
    return FileAnswer(
        status=206 if requested else 200,
        body=b"" if request.is_head else _begun(pieces, last + 1 - first),
        length=last + 1 - first,
        size=file.size,
        first=first,
        etag=etag,
        content_type=CONTENT_TYPES.get(key.rpartition(".")[2], "application/octet-stream"),
    )


def _begun(pieces: Iterator[bytes], length: int) -> bytes | Iterator[bytes]:
    """The pieces as one body if they are small; otherwise an iterator whose first piece was
    read."""
    if length <= PIECE:
        return b"".join(pieces)
    first = next(pieces)  # so that what fails, fails before the answer begins
    return first if len(first) == length else chain([first], pieces)


def open_files(config: Config, lakes: Lakes[Any]) -> AuthorizedFiles:
    """The virtual files of a lake; the database is not connected yet."""
    database = lakes.database(config, STATEMENT_SECONDS)
    return AuthorizedFiles(config, database, lakes.virtual_files(config), lakes.access)
