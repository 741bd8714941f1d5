"""A folder of this machine as a bucket of S3.

Only regular files that are below the folder are objects: no key and no symbolic link leads out, and
none leads to a file of a catalog (`CatalogFiles`). `path_of` says which file a key is, in whatever
spelling; `LocalBucket.canonical` gives its one spelling, by which `S3Proxy` decides what may be
uploaded and removed. An upload becomes the object at once and whole: its bytes are written to a
file beside it first.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from hashlib import md5
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from stat import S_ISREG
from tempfile import TemporaryDirectory
from typing import IO, BinaryIO
from uuid import uuid4
from xml.sax.saxutils import escape

from polynya.http.conditions import byte_range
from polynya.runtime.errors import InvalidRange

from ..messages import Headers, Response, pieces_of
from .requests import (
    NAMESPACE,
    READS,
    S3Address,
    document,
    name_of,
    s3_error,
    xml_response,
)
from .uploads import CREATIONS, operation_of

PIECE = 256 * 1024

EMPTY = md5(usedforsecurity=False).hexdigest()
"""The MD5 of no bytes."""

BESIDE_A_CATALOG = (
    "",
    *(".wal", ".wal.checkpoint", ".wal.recovery", ".tmp"),
    *("-journal", "-wal", "-shm"),
)
"""The endings of a catalog's files: the file itself, DuckDB's, SQLite's."""


@dataclass(frozen=True, slots=True)
class CatalogFiles:
    """The files of the catalogs that this process has open, which may be in a folder of data.

    Only the connection that owns such a file may open it: closing it frees every lock that this
    process has on it, whatever it was opened for (`man 2 fcntl`), and then another writer gets in.
    """

    paths: frozenset[str] = frozenset()
    """Without symbolic links. Some of the files come and go."""

    @classmethod
    def from_paths(cls, files: Iterable[Path]) -> "CatalogFiles":
        """The files of these catalogs, with those that DuckDB and SQLite put beside them."""
        # SQLite puts them beside the file that a symbolic link leads to, DuckDB beside the link.
        names = {name for file in files for name in (os.path.abspath(file), os.path.realpath(file))}
        return cls(
            frozenset(os.path.realpath(name + end) for name in names for end in BESIDE_A_CATALOG)
        )

    def have(self, path: str) -> bool:
        """Whether a path, which has no symbolic link, leads to one of the files; opens none."""
        if path in self.paths or os.path.dirname(path) in self.paths:
            return True
        identity = _identity(path)
        return identity is not None and identity in map(_identity, self.paths)


def _identity(path: str) -> tuple[int, int] | None:
    """What all names of a file share, hard links included; None: there is no such file."""
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_dev, state.st_ino


class NotAKey(ValueError):
    """No file of a bucket can have this key, or it is that of a catalog."""

    def __init__(self) -> None:
        super().__init__("no file of this bucket can have this key, or it is that of a catalog")


class LocalBucket:
    """One bucket; others do not exist."""

    def __init__(self, name: str, folder: Path, catalogs: CatalogFiles | None = None) -> None:
        """Keep the arguments; nothing is opened.

        Args:
            folder: it need not exist yet.
            catalogs: files that are not objects.
        """
        self._name = name
        self._folder = folder
        self._catalogs = catalogs or CatalogFiles()
        self._multipart: dict[tuple[str, str], TemporaryDirectory[str]] = {}
        """The parts of each upload, by its key and id."""

    def canonical(self, address: S3Address) -> S3Address | None:
        """As `proxy.Buckets.canonical`: without `//`, `/./` and symbolic links."""
        if address.bucket != self._name or not address.key:
            return address
        folder = address.key_text.removesuffix("/")
        path = self._path(folder)
        if path is None:
            return None
        key = path.removeprefix(os.path.realpath(self._folder)).lstrip("/")
        if folder == address.key_text:
            return address.with_key(key)
        # A slash at the end names a folder, never a file.
        is_file = os.path.exists(path) and not os.path.isdir(path)
        return None if is_file else address.with_key(f"{key}/")

    def _path(self, key: str) -> str | None:
        """The path of a key, without symbolic links; None: no object can have this key."""
        path = path_of(self._folder, key)
        return None if path is None or self._catalogs.have(path) else path

    def open(self, key: str) -> BinaryIO | None:
        """The file of a key, open; None: there is no such object."""
        path = self._path(key)
        return opened(path) if path else None

    def make(self, key: str, pieces: Iterable[bytes], *, replace: bool) -> str | None:
        """Write an object; a reader sees all of it, or what was there before.

        Returns:
            Its MD5 in hexadecimal; None: there is an object, and `replace` is False.

        Raises:
            NotAKey: no object can have this key.
            OSError: it cannot be written.
        """
        path = self._path(key)
        if path is None:
            raise NotAKey
        if os.path.lexists(path) and not replace:
            return None
        os.makedirs(os.path.dirname(path), exist_ok=True)
        unfinished = os.path.join(os.path.dirname(path), f".polynya-{uuid4().hex}")
        try:
            with open(unfinished, "xb") as file:
                digest = _write(file, pieces)
                file.flush()
                os.fsync(file.fileno())  # a commit that names the object must not survive it
            if replace:
                os.replace(unfinished, path)
            elif not _link(unfinished, path):
                return None
        finally:
            with suppress(FileNotFoundError):
                os.unlink(unfinished)
        return digest

    def forward(
        self, method: str, address: S3Address, headers: Headers, body: IO[bytes] | None
    ) -> Response:
        """As `proxy.Buckets.forward`."""
        if address.bucket != self._name:
            message = "The specified bucket does not exist"
            return s3_error(404, "NoSuchBucket", message, resource=address.path)
        if not address.key:
            return listing(self._name, self._folder, address.parameters(), self._catalogs)
        if method in READS:
            file = self.open(address.key_text)
            return _object(method, headers, address, file) if file else _no_such_key(address)
        operations: dict[str | None, Callable[[S3Address, IO[bytes]], Response]] = {
            "CreateMultipartUpload": self._begin,
            "UploadPart": self._put_part,
            "AbortMultipartUpload": self._abort,
        }
        name, body = operation_of(method, address), body or BytesIO()
        try:
            if name in CREATIONS:
                return self._make(name, address, body, replace=True) or _no_key(address)
            return operations.get(name, self._remove)(address, body)
        except OSError as error:
            return _failure(address, error)

    def create(
        self, method: str, address: S3Address, headers: Headers, body: IO[bytes]
    ) -> Response | None:
        """As `proxy.Buckets.create`."""
        try:
            return self._make(operation_of(method, address), address, body, replace=False)
        except OSError as error:
            return _failure(address, error)

    def _make(
        self, operation: str | None, address: S3Address, body: IO[bytes], *, replace: bool
    ) -> Response | None:
        """Write an object; None: there is one, and `replace` is False."""
        body.seek(0)  # `create` may have read it, and found an object that was written meanwhile
        if operation == "CompleteMultipartUpload":
            return self._complete(address, body, replace)
        if address.key_text.endswith("/"):
            # In S3 such an object stands for a folder: PyArrow writes one after each removal. Here
            # a folder is created with its first file.
            return _no_key(address) if body.read(1) else _put(f'"{EMPTY}"')
        return self._stored(address, pieces_of(body), _put, replace)

    def _stored(
        self,
        address: S3Address,
        pieces: Iterable[bytes],
        answer: Callable[[str], Response],
        replace: bool,
    ) -> Response | None:
        try:
            digest = self.make(address.key_text, pieces, replace=replace)
        except NotAKey:
            return _no_key(address)
        return None if digest is None else answer(f'"{digest}"')

    def _begin(self, address: S3Address, body: IO[bytes]) -> Response:
        upload_id = uuid4().hex
        self._multipart[address.key_text, upload_id] = TemporaryDirectory(
            prefix="polynya-parts-", ignore_cleanup_errors=True
        )
        element = (
            f"<Bucket>{escape(address.bucket)}</Bucket><Key>{escape(address.key_text)}</Key>"
            f"<UploadId>{upload_id}</UploadId>"
        )
        name = "InitiateMultipartUploadResult"
        return xml_response(200, f"<{name} {NAMESPACE}>{element}</{name}>")

    def _put_part(self, address: S3Address, body: IO[bytes]) -> Response:
        parts, number = self._parts(address), address.parameters().get("partNumber", "")
        if parts is None:
            return _no_such_upload(address)
        if not PART_NUMBER.fullmatch(number):
            message = "partNumber must be a number from 1 to 10000"
            return s3_error(400, "InvalidArgument", message, resource=address.path)
        with open(parts / number, "wb") as file:
            digest = _write(file, pieces_of(body))
        return _put(f'"{digest}"')

    def _complete(self, address: S3Address, body: IO[bytes], replace: bool) -> Response | None:
        parts = self._parts(address)
        if parts is None:
            return _no_such_upload(address)
        try:
            numbers = _part_numbers(body)
        except ValueError as error:
            return s3_error(400, "MalformedXML", str(error), resource=address.path)
        if any(number >= following for number, following in pairwise(numbers)):
            message = "each part must be named once, in ascending order"
            return s3_error(400, "InvalidPartOrder", message, resource=address.path)
        files = [parts / str(number) for number in numbers]
        if not files or not all(file.is_file() for file in files):
            return s3_error(400, "InvalidPart", "a part is missing", resource=address.path)

        def answer(tag: str) -> Response:
            element = (
                f"<Bucket>{escape(address.bucket)}</Bucket>"
                f"<Key>{escape(address.key_text)}</Key><ETag>{escape(tag)}</ETag>"
            )
            name = "CompleteMultipartUploadResult"
            return xml_response(200, f"<{name} {NAMESPACE}>{element}</{name}>")

        stored = self._stored(address, _joined(files), answer, replace)
        if stored is not None:
            self._forget(address)
        return stored

    def _abort(self, address: S3Address, body: IO[bytes]) -> Response:
        return Response(204) if self._forget(address) else _no_such_upload(address)

    def _parts(self, address: S3Address) -> Path | None:
        """The folder with the parts of an upload; None if there is no such upload."""
        folder = self._multipart.get(_upload(address))
        return Path(folder.name) if folder else None

    def _forget(self, address: S3Address) -> bool:
        """Remove the parts of an upload; False: there is no such upload."""
        folder = self._multipart.pop(_upload(address), None)
        if folder is not None:
            folder.cleanup()
        return folder is not None

    def _remove(self, address: S3Address, body: IO[bytes]) -> Response:
        path = self._path(address.key_text)
        if path is not None and not os.path.isdir(path):
            with suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(path)
        return Response(204)

    def stop(self) -> None:
        """Remove what was uploaded in parts and not completed."""
        while self._multipart:
            _, folder = self._multipart.popitem()
            folder.cleanup()


def _upload(address: S3Address) -> tuple[str, str]:
    """The key and the id of an upload: the id alone would open the uploads of other tables."""
    return address.key_text, address.parameters().get("uploadId", "")


PART_NUMBER = re.compile("[1-9][0-9]{0,3}|10000")


def _part_numbers(body: IO[bytes]) -> list[int]:
    """The numbers of the parts, as the client orders them.

    Raises:
        ValueError: the body is not a CompleteMultipartUpload.
    """
    texts = [e.text or "" for e in document(body).iter() if name_of(e) == "PartNumber"]
    if not all(map(PART_NUMBER.fullmatch, texts)):
        raise ValueError("a PartNumber is not a number from 1 to 10000")
    return [int(text) for text in texts]


def _write(file: IO[bytes], pieces: Iterable[bytes]) -> str:
    """Write a file; returns its MD5 in hexadecimal."""
    digest = md5(usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
        file.write(piece)
    return digest.hexdigest()


def _joined(files: Iterable[Path]) -> Iterator[bytes]:
    for path in files:
        with open(path, "rb") as file:
            yield from pieces_of(file)


def _put(tag: str) -> Response:
    """The answer to PutObject, and to UploadPart."""
    return Response(200, (("ETag", tag),))


def _link(unfinished: str, path: str) -> bool:
    """Give a file a second name, unless the name is taken; returns whether it was given.

    False also if the file system has no hard links: then the caller writes the file as a
    replacement.
    """
    try:
        os.link(unfinished, path)
    except OSError:
        return False
    return True


NO_KEY = str(NotAKey())


def _no_key(address: S3Address) -> Response:
    return s3_error(403, "AccessDenied", NO_KEY, resource=address.path)


def _failure(address: S3Address, error: OSError) -> Response:
    if isinstance(error, FileExistsError | NotADirectoryError | IsADirectoryError):
        message = (
            "this bucket is a folder: the key of a file cannot be the beginning of another key"
        )
        return s3_error(403, "AccessDenied", message, resource=address.path)
    message = f"the file cannot be written: {error.strerror}"
    return s3_error(500, "InternalError", message, resource=address.path)


def _no_such_key(address: S3Address) -> Response:
    message = "The specified key does not exist."
    return s3_error(404, "NoSuchKey", message, resource=address.path)


def _no_such_upload(address: S3Address) -> Response:
    message = "The specified multipart upload does not exist."
    return s3_error(404, "NoSuchUpload", message, resource=address.path)


def opened(path: str) -> BinaryIO | None:
    """The file of a path without symbolic links, open; None if it is not a regular file."""
    try:
        # A last part that has become a symbolic link is not followed.
        # O_NONBLOCK: a named pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    if not S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")


LONGEST_KEY, LONGEST_PART = 1024, 255
"""The longest key in S3, and the longest part of it in a file system, in bytes."""


def path_of(folder: Path, key: str) -> str | None:
    """The path of a key, without symbolic links; None if no file below the folder has this key."""
    parts = [part for part in key.split("/") if part not in {"", "."}]
    if "\x00" in key or ".." in parts or not parts or key.endswith("/"):
        return None
    if len(key.encode()) > LONGEST_KEY or any(len(p.encode()) > LONGEST_PART for p in parts):
        return None
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, *parts))
    return path if path.startswith(os.path.join(root, "")) else None


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
    """The bytes of a file from a position; the server closes it, even before the last of them."""

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


def listing(
    bucket: str, folder: Path, parameters: Mapping[str, str], catalogs: CatalogFiles
) -> Response:
    """The answer to ListObjectsV2: keys by their UTF-8 bytes, or common prefixes."""
    prefix, delimiter = parameters.get("prefix", ""), parameters.get("delimiter", "")
    after = parameters.get("continuation-token") or parameters.get("start-after", "")
    max_keys = parameters.get("max-keys", "")
    most = min(MOST_KEYS, int(max_keys)) if re.fullmatch("[0-9]{1,9}", max_keys) else MOST_KEYS
    entries = _entries(folder, prefix, delimiter, catalogs)
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


def _entries(
    folder: Path, prefix: str, delimiter: str, catalogs: CatalogFiles
) -> dict[str, os.stat_result | None]:
    """The keys with a prefix; None is a common prefix."""
    entries: dict[str, os.stat_result | None] = {}
    for key, state in _files(folder, prefix, catalogs):
        inner, separator, _ = key[len(prefix) :].partition(delimiter or "\x00")
        if delimiter and separator:
            entries[prefix + inner + delimiter] = None
        else:
            entries[key] = state
    return entries


def _files(
    folder: Path, prefix: str, catalogs: CatalogFiles
) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files below the folder, without those that are behind a symbolic link."""
    real, identities = os.path.realpath(folder), {*map(_identity, catalogs.paths)}
    for root, _, names in os.walk(real):
        for name in names:
            path = os.path.join(root, name)
            key = os.path.relpath(path, real)
            if not key.startswith(prefix) or os.path.islink(path) or not os.path.isfile(path):
                continue
            state = os.stat(path)
            if (state.st_dev, state.st_ino) not in identities and root not in catalogs.paths:
                yield key, state


def _element(key: str, state: os.stat_result | None) -> str:
    if state is None:
        return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
    changed = datetime.fromtimestamp(state.st_mtime, UTC).isoformat(timespec="seconds")
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>{changed}</LastModified>"
        f'<ETag>"{state.st_mtime_ns:x}-{state.st_size:x}"</ETag><Size>{state.st_size}</Size>'
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )
