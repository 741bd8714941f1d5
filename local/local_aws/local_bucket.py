"""A bucket of S3 that is a folder of this machine, read-only.

Only regular files that are below the folder are objects: no key and no symbolic link leads out.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
"""

import os
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from polynya.errors import InvalidRange
from polynya.web.http_headers import byte_range

from ..http_message import Headers, Request, Response
from .address import S3Address
from .error import s3_error
from .listing import listing

PIECE = 256 * 1024
READS = ("GET", "HEAD")


class LocalBucket:
    """Answers reads of one bucket; other buckets do not exist."""

    def __init__(self, name: str, folder: Path) -> None:
        """Open nothing.

        Args:
            folder: need not exist yet.
        """
        self._name = name
        self._folder = folder

    def answer(
        self, request: Request, address: S3Address, *, behind: str | None = None
    ) -> Response:
        """The answer to a request; all but reads are refused. Args: as of `S3Proxy.answer`."""
        return self.read(request, address.in_bucket(behind) if behind else address)

    def read(self, request: Request, address: S3Address) -> Response:
        """The answer to GET or HEAD of an object, or to ListObjectsV2."""
        if request.method not in READS:
            return s3_error(403, "AccessDenied", "this bucket is read-only", resource=address.path)
        if address.bucket != self._name:
            message = "The specified bucket does not exist"
            return s3_error(404, "NoSuchBucket", message, resource=address.path)
        if not address.key:
            return listing(self._name, self._folder, address.parameters())
        file = opened(self._folder, address.key_text)
        if file is None:
            message = "The specified key does not exist."
            return s3_error(404, "NoSuchKey", message, resource=address.path)
        return _object(request, address, file)

    def stop(self) -> None:
        """Nothing is open."""


def opened(folder: Path, key: str) -> BinaryIO | None:
    """The file of a key, open; None if there is none, or it is not below the folder."""
    if "\x00" in key or {".", ".."} & set(key.split("/")):
        return None
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, key.lstrip("/")))
    if os.path.commonpath((root, path)) != root:
        return None
    try:
        # The path has no symbolic link any more; a last part that has become one is not followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")


def _object(request: Request, address: S3Address, file: BinaryIO) -> Response:
    found = os.fstat(file.fileno())
    size = found.st_size
    headers: Headers = (
        ("Accept-Ranges", "bytes"),
        ("Content-Type", "application/octet-stream"),
        ("ETag", f'"{found.st_ino:x}-{found.st_mtime_ns:x}-{size:x}"'),
        ("Last-Modified", formatdate(found.st_mtime, usegmt=True)),
    )
    try:
        part = byte_range(request.header("range") or None, size)
    except InvalidRange as error:
        file.close()
        return s3_error(416, "InvalidRange", str(error), resource=address.path)
    first, last = part or (0, size - 1)
    headers += (("Content-Length", str(last - first + 1)),)
    if part:
        headers += (("Content-Range", f"bytes {first}-{last}/{size}"),)
    status = 206 if part else 200
    if request.method == "HEAD":
        file.close()
        return Response(status, headers)
    return Response(status, headers, _Pieces(file, first, last - first + 1))


class _Pieces:
    """The bytes of a file from a position; the server closes it also after half of them."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        self._file, self._left = file, length
        file.seek(start)

    def __iter__(self) -> Iterator[bytes]:
        while self._left and (piece := self._file.read(min(PIECE, self._left))):
            self._left -= len(piece)
            yield piece

    def close(self) -> None:
        self._file.close()
