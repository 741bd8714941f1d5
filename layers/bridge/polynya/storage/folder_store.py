"""The store of generated files on a server: a folder, which its processes share.

Everything in it can be deleted at any time. What has not been read for the longest time goes when
the folder is full.
"""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from aws_lambda_powertools import Logger

from ..runtime.metrics import count

logger = Logger(child=True)

DEFAULT_LIMIT = 10 * 1024**3
"""The bytes of all files together."""

DIGEST_BYTES = 32
"""A file begins with the SHA-256 of its body."""

LEASES = "leases"


class _File(NamedTuple):
    read_at: float
    size: int
    path: str


class FolderStore:
    """Bytes by key. The name of a file is the hash of its key. Methods raise OSError."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        """Make the folder.

        Args:
            limit: the bytes of all files together; a tenth is deleted when they are more.
        """
        self._folder, self._limit = folder, limit
        (folder / LEASES).mkdir(parents=True, exist_ok=True)
        self._written = 0
        """The bytes that this process has written since the files were counted."""
        self._leases: dict[str, int] = {}
        """The descriptors of the locks that this process holds, by key."""
        self._lock = Lock()
        self._trim()

    def get(self, key: str) -> bytes | None:
        """The stored bytes; None if there are none, or if their checksum is wrong: then the file
        is deleted."""
        path = self._path(key)
        try:
            stored = path.read_bytes()
        except FileNotFoundError:
            return None
        digest, body = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
        if digest != _digest(body):
            logger.warning(
                "a stored file does not match its checksum; it is generated again", key=key
            )
            count("BrokenItems")
            path.unlink(missing_ok=True)
            return None
        with suppress(OSError):  # another process may have deleted it
            os.utime(path)
        return body

    def put(self, key: str, body: bytes) -> bytes:
        """Store `body` unless the key is taken, and end its lease; returns the stored bytes."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="new-", delete=False) as file:
            file.write(_digest(body) + body)
        try:
            # Unlike a rename, it fails if there is a file: the first copy stays.
            os.link(file.name, path)
        except FileExistsError:
            body = self.get(key) or body
        finally:
            os.unlink(file.name)
            self.release(key)
        with self._lock:
            self._written += len(body)
            is_much = self._written > self._limit // 10
        if is_much:
            self._trim()
        return body

    def lease(self, key: str) -> bool:
        """Take the lease of a key, until `put`, `release` or the end of the process; False: it is
        taken."""
        descriptor = os.open(self._lease_path(key), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        with self._lock:
            self._leases[key] = descriptor
        return True

    def release(self, key: str) -> None:
        """End the lease of a key."""
        with self._lock:
            descriptor = self._leases.pop(key, None)
        if descriptor is not None:
            # Who has opened it before may take the lease of a file without a name: then two
            # generate the same bytes.
            self._lease_path(key).unlink(missing_ok=True)
            os.close(descriptor)

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / name[:2] / name

    def _lease_path(self, key: str) -> Path:
        return self._folder / LEASES / hashlib.sha256(key.encode()).hexdigest()

    def _trim(self) -> None:
        """Delete what was read longest ago, if there is too much."""
        with self._lock:
            self._written = 0
        files = list(self._files())
        size = sum(file.size for file in files)
        if size <= self._limit:
            return
        for file in sorted(files):
            with suppress(FileNotFoundError):  # another process trims too
                os.unlink(file.path)
            size -= file.size
            if size <= self._limit * 0.9:
                return

    def _files(self) -> Iterator[_File]:
        for folder in self._folder.glob("[0-9a-f][0-9a-f]"):
            for entry in os.scandir(folder):
                with suppress(FileNotFoundError):
                    status = entry.stat()
                    yield _File(status.st_mtime, status.st_size, entry.path)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
