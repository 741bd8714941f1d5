"""A folder of this machine as a bucket of S3.

Only regular files that are below the folder are objects: no key and no symbolic link leads out.
An upload becomes the object at once and whole: its bytes are in a file beside it before. `S3Proxy`
decides what may be uploaded and removed.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryDirectory
from typing import BinaryIO
from uuid import uuid4
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from polynya.http.conditions import byte_range
from polynya.runtime.errors import InvalidRange

from ..messages import Headers, Response
from .requests import NAMESPACE, READS, S3Address, s3_error, xml_response
from .uploads import operation_of

PIECE = 256 * 1024


class LocalBucket:
    """One bucket; others do not exist."""

    def __init__(self, name: str, folder: Path) -> None:
        """Open nothing.

        Args:
            folder: need not exist yet.
        """
        self._name = name
        self._folder = folder
        self._multipart: dict[str, TemporaryDirectory[str]] = {}

    def forward(
        self, method: str, address: S3Address, headers: Headers, body: bytes | None
    ) -> Response:
        """As `s3_proxy.Buckets.forward`."""
        if address.bucket != self._name:
            message = "The specified bucket does not exist"
            return s3_error(404, "NoSuchBucket", message, resource=address.path)
        if not address.key:
            return listing(self._name, self._folder, address.parameters())
        if method in READS:
            file = opened(self._folder, address.key_text)
            return _object(method, headers, address, file) if file else _no_such_key(address)
        operations: dict[str | None, Callable[[S3Address, bytes], Response]] = {
            "PutObject": self._put,
            "CreateMultipartUpload": self._begin,
            "UploadPart": self._put_part,
            "CompleteMultipartUpload": self._complete,
            "AbortMultipartUpload": self._abort,
        }
        try:
            if operation := operations.get(operation_of(method, address)):
                return operation(address, body or b"")
            return self._remove(address)
        except OSError as error:
            message = f"the file cannot be written: {error.strerror}"
            return s3_error(500, "InternalError", message, resource=address.path)

    def _put(self, address: S3Address, body: bytes) -> Response:
        return self._stored(address, [body], lambda tag: Response(200, (("ETag", tag),)))

    def _stored(
        self, address: S3Address, pieces: Iterable[bytes], answer: Callable[[str], Response]
    ) -> Response:
        """Make an object; a reader sees all of it, or what was there before."""
        path = path_of(self._folder, address.key_text)
        if path is None:
            return s3_error(403, "AccessDenied", "this is no key", resource=address.path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        digest = md5(usedforsecurity=False)
        unfinished = os.path.join(os.path.dirname(path), f".polynya-{uuid4().hex}")
        try:
            with open(unfinished, "xb") as file:
                for piece in pieces:
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())  # a commit that names the object must not survive it
            os.replace(unfinished, path)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)
            raise
        return answer(f'"{digest.hexdigest()}"')

    def _begin(self, address: S3Address, body: bytes) -> Response:
        upload_id = uuid4().hex
        self._multipart[upload_id] = TemporaryDirectory(
            prefix="polynya-parts-", ignore_cleanup_errors=True
        )
        element = (
            f"<Bucket>{escape(address.bucket)}</Bucket><Key>{escape(address.key_text)}</Key>"
            f"<UploadId>{upload_id}</UploadId>"
        )
        name = "InitiateMultipartUploadResult"
        return xml_response(200, f"<{name} {NAMESPACE}>{element}</{name}>")

    def _put_part(self, address: S3Address, body: bytes) -> Response:
        parts, number = self._parts(address), address.parameters().get("partNumber", "")
        if parts is None:
            return _no_such_upload(address)
        if not number.isdecimal():
            return s3_error(400, "InvalidArgument", "partNumber", resource=address.path)
        (parts / str(int(number))).write_bytes(body)
        return Response(200, (("ETag", f'"{md5(body, usedforsecurity=False).hexdigest()}"'),))

    def _complete(self, address: S3Address, body: bytes) -> Response:
        parts = self._parts(address)
        if parts is None:
            return _no_such_upload(address)
        try:
            files = [parts / number for number in _part_numbers(body)]
        except (ElementTree.ParseError, ValueError) as error:
            return s3_error(400, "MalformedXML", str(error), resource=address.path)
        if not files or not all(file.is_file() for file in files):
            return s3_error(400, "InvalidPart", "a part is missing", resource=address.path)

        def answer(tag: str) -> Response:
            element = (
                f"<Bucket>{escape(address.bucket)}</Bucket>"
                f"<Key>{escape(address.key_text)}</Key><ETag>{escape(tag)}</ETag>"
            )
            name = "CompleteMultipartUploadResult"
            return xml_response(200, f"<{name} {NAMESPACE}>{element}</{name}>")

        stored = self._stored(address, (file.read_bytes() for file in files), answer)
        self._forget(address)
        return stored

    def _abort(self, address: S3Address, body: bytes) -> Response:
        return Response(204) if self._forget(address) else _no_such_upload(address)

    def _parts(self, address: S3Address) -> Path | None:
        """The folder with the parts of an upload; None if there is no such upload."""
        folder = self._multipart.get(address.parameters().get("uploadId", ""))
        return Path(folder.name) if folder else None

    def _forget(self, address: S3Address) -> bool:
        """Remove the parts of an upload; False: there is no such upload."""
        folder = self._multipart.pop(address.parameters().get("uploadId", ""), None)
        if folder is not None:
            folder.cleanup()
        return folder is not None

    def _remove(self, address: S3Address) -> Response:
        path = path_of(self._folder, address.key_text)
        if path is not None:
            with suppress(FileNotFoundError):
                os.unlink(path)
        return Response(204)

    def stop(self) -> None:
        """Remove what was uploaded in parts and not completed."""
        while self._multipart:
            _, folder = self._multipart.popitem()
            folder.cleanup()


def _part_numbers(body: bytes) -> list[str]:
    """The numbers of the parts, in their order.

    Raises:
        ElementTree.ParseError, ValueError: the body is no CompleteMultipartUpload.
    """
    if b"<!" in body:  # entities of a DTD may expand without end
        raise ValueError("the document has a DTD")
    numbers = [
        int(element.text or "")
        for element in ElementTree.fromstring(body).iter()
        if element.tag.rpartition("}")[2] == "PartNumber"
    ]
    return [str(number) for number in sorted(numbers)]


def _no_such_key(address: S3Address) -> Response:
    message = "The specified key does not exist."
    return s3_error(404, "NoSuchKey", message, resource=address.path)


def _no_such_upload(address: S3Address) -> Response:
    message = "The specified multipart upload does not exist."
    return s3_error(404, "NoSuchUpload", message, resource=address.path)


def opened(folder: Path, key: str) -> BinaryIO | None:
    """The file of a key, open; None if there is none, or it is not below the folder."""
    path = path_of(folder, key)
    if path is None:
        return None
    try:
        # The path has no symbolic link any more; a last part that has become one is not followed.
        # O_NONBLOCK: a named pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")


def path_of(folder: Path, key: str) -> str | None:
    """The path of a key, without symbolic links; None if it is not below the folder."""
    if "\x00" in key or {".", ".."} & set(key.split("/")):
        return None
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, key.lstrip("/")))
    return path if os.path.commonpath((root, path)) == root else None


def _object(method: str, headers: Headers, address: S3Address, file: BinaryIO) -> Response:
    stat = os.fstat(file.fileno())
    size = stat.st_size
    requested = next((value for name, value in headers if name.lower() == "range"), None)
    headers = (
        ("Accept-Ranges", "bytes"),
        ("Content-Type", "application/octet-stream"),
        ("ETag", f'"{stat.st_ino:x}-{stat.st_mtime_ns:x}-{size:x}"'),
        ("Last-Modified", formatdate(stat.st_mtime, usegmt=True)),
    )
    try:
        part = byte_range(requested, size)
    except InvalidRange as error:
        file.close()
        return s3_error(416, "InvalidRange", str(error), resource=address.path)
    first, last = part or (0, size - 1)
    headers += (("Content-Length", str(last - first + 1)),)
    if part:
        headers += (("Content-Range", f"bytes {first}-{last}/{size}"),)
    status = 206 if part else 200
    if method == "HEAD":
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
