"""GET and HEAD of a virtual file by its key, for every host that has an endpoint of S3."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from ..access.authorized_lake import AuthorizedFiles
from ..access.caller import Caller
from ..catalog.lakes import STATEMENT_SECONDS, Lakes
from ..runtime.errors import NotModified, PreconditionFailed
from ..runtime.settings import Config
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


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """A virtual file, or a range of it."""

    status: int
    """200, or 206 for a range."""
    body: bytes = field(repr=False)
    size: int
    """The bytes of the whole file."""
    first: int
    """The place of the first byte of the body in the file."""
    etag: str
    content_type: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the answer to GET."""
        headers = {
            "Content-Length": str(len(self.body)),
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
        return f"bytes {self.first}-{self.first + len(self.body) - 1}/{self.size}"


def read_file(lakes: Lakes[AuthorizedFiles], request: FileRequest) -> FileAnswer:
    """Read a virtual file, which is generated if it is not cached.

    Raises:
        NoSuchKey: there is none, or the caller may not read its table.
        NotModified, PreconditionFailed, InvalidRange: as the headers say (RFC 9110, section 13).
        PolynyaError: as `AuthorizedFiles.read`.
    """
    key = request.key
    body = lakes.with_key(key, request.caller).read(key, request.caller)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    if not matches_etag(request.if_match or "*", etag):
        raise PreconditionFailed("the file is not the one that If-Match names")
    if matches_etag(request.if_none_match or "", etag):
        raise NotModified("the file is the one that the caller has")
    requested = byte_range(request.range, len(body))
    first, last = requested or (0, len(body) - 1)
    return FileAnswer(
        status=206 if requested else 200,
        body=body[first : last + 1],
        size=len(body),
        first=first,
        etag=etag,
        content_type=CONTENT_TYPES.get(key.rpartition(".")[2], "application/octet-stream"),
    )


def open_files(config: Config, lakes: Lakes[Any]) -> AuthorizedFiles:
    """The virtual files of a lake; the database is not connected yet."""
    database = lakes.database(config, STATEMENT_SECONDS)
    return AuthorizedFiles(config, database, lakes.virtual_files(config), lakes.access)
