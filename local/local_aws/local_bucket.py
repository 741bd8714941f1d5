"""A folder of this machine as a bucket of S3, which answers reads.

Only regular files that are below the folder are objects: no key and no symbolic link leads out.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import formatdate
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO
from xml.sax.saxutils import escape

from polynya.runtime.errors import InvalidRange
from polynya.runtime.events import byte_range

from .http_server import Headers, Request, Response
from .s3_requests import NAMESPACE, READS, S3Address, s3_error, xml_response

PIECE = 256 * 1024


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
        """The answer to GET or HEAD of an object, or to ListObjectsV2; all others are refused.

        Args: as of `S3Proxy.answer`.
        """
        address = address.in_bucket(behind) if behind else address
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
    stat = os.fstat(file.fileno())
    size = stat.st_size
    headers: Headers = (
        ("Accept-Ranges", "bytes"),
        ("Content-Type", "application/octet-stream"),
        ("ETag", f'"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{size:x}"'),
        ("Last-Modified", formatdate(stat.st_mtime, usegmt=True)),
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


MOST_KEYS = 1000


def listing(bucket: str, folder: Path, parameters: Mapping[str, str]) -> Response:
    """The answer to ListObjectsV2: keys by their UTF-8 bytes, or common prefixes."""
    prefix, delimiter = parameters.get("prefix", ""), parameters.get("delimiter", "")
    after = parameters.get("continuation-token") or parameters.get("start-after", "")
    max_keys = parameters.get("max-keys", "")
    most = min(MOST_KEYS, int(max_keys)) if max_keys.isdecimal() else MOST_KEYS
    entries = _entries(folder, prefix, delimiter)
    keys = [entry for entry in sorted(entries, key=str.encode) if entry.encode() > after.encode()]
    shown = keys[:most]
    is_truncated = len(keys) > len(shown) and bool(shown)
    last = escape(shown[-1]) if is_truncated else ""
    token = f"<NextContinuationToken>{last}</NextContinuationToken>" if is_truncated else ""
    return xml_response(
        200,
        f"<ListBucketResult {NAMESPACE}><Name>{escape(bucket)}</Name>"
        f"<Prefix>{escape(prefix)}</Prefix>"
        f"<KeyCount>{len(shown)}</KeyCount><MaxKeys>{most}</MaxKeys>"
        f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>{token}"
        f"{''.join(_element(key, entries[key]) for key in shown)}</ListBucketResult>",
    )


def _entries(folder: Path, prefix: str, delimiter: str) -> dict[str, os.stat_result | None]:
    """The keys with a prefix; None is a common prefix."""
    entries: dict[str, os.stat_result | None] = {}
    for key, state in _files(folder, prefix):
        inner, separator, _ = key[len(prefix) :].partition(delimiter or "\x00")
        if delimiter and separator:
            entries[prefix + inner + delimiter] = None
        else:
            entries[key] = state
    return entries


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files below the folder, without those that are behind a symbolic link."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            key = os.path.relpath(path, folder)
            if key.startswith(prefix) and not os.path.islink(path) and os.path.isfile(path):
                yield key, os.stat(path)


def _element(key: str, state: os.stat_result | None) -> str:
    if state is None:
        return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
    changed = datetime.fromtimestamp(state.st_mtime, UTC).isoformat(timespec="seconds")
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>{changed}</LastModified>"
        f'<ETag>"{state.st_mtime_ns:x}-{state.st_size:x}"</ETag><Size>{state.st_size}</Size>'
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )
