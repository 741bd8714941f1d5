"""The stores of generated files on a server: a folder for each lake, which processes share.

Everything in them can be deleted at any time. When the folder around them is full, the files that
were read longest ago, of all lakes, are deleted.
"""

import fcntl
import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import NamedTuple, TypeVar

from polynya.runtime.metrics import count

logger = logging.getLogger(__name__)

Made = TypeVar("Made")

DEFAULT_LIMIT = 10 * 1024**3
"""The bytes of all files together."""

COUNTED_AFTER = 100
"""A process counts the files again when it has written a hundredth of the limit. Several processes
together exceed the limit by some hundredths at most."""

DIGEST_BYTES = 32
"""A file begins with the SHA-256 of its body."""

LAKE_DIGITS = 16
LAKE, PART = "[0-9a-f]" * LAKE_DIGITS, "[0-9a-f]" * 2
"""The names of the folder of a lake, and of one with some of its files. Nothing else is deleted:
the user may have named a folder that has other content."""

FILES, LEASES, NEW = "files", "leases", "new-"


class _File(NamedTuple):
    read_at: float
    size: int
    path: str


class CacheFolder:
    """The folders of lakes, whose files have one limit together."""

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        """Begin to delete what exceeds the limit.

        Args:
            limit: the bytes of all files together; a tenth is deleted when they are more.
        """
        self._folder, self._limit = folder, limit
        self._written = 0
        """The bytes that this process has written since the files were counted."""
        self._lock = Lock()
        self._trimming: Thread | None = None
        with self._lock:
            self._begin_to_trim()

    def store(self, lake: str) -> "FolderStore":
        """The store of a lake. Args: `lake`: as `folder_name` gives it."""
        return FolderStore(self._folder / lake / FILES, self._add)

    def _add(self, size: int) -> None:
        with self._lock:
            self._written += size
            if self._written > self._limit // COUNTED_AFTER:
                self._begin_to_trim()

    def _begin_to_trim(self) -> None:
        # Counting 200,000 files takes more than a second; neither the start nor a request waits. If
        # the next count is due before this one has ended, a write waits, so that the limit holds.
        if self._trimming is not None:
            self._trimming.join()
        self._written, self._trimming = 0, None
        thread = Thread(target=self._trim, name="cache", daemon=True)
        try:
            thread.start()
            self._trimming = thread
        except RuntimeError:  # there can be no more threads
            self._trim()

    def _trim(self) -> None:
        """Delete what was read longest ago, if the limit is exceeded."""
        files = list(self._files())
        size = sum(file.size for file in files)
        if size <= self._limit:
            return
        for file in sorted(files):
            with suppress(FileNotFoundError):  # another process trims too
                os.unlink(file.path)
            size -= file.size
            if size <= self._limit * 0.9:
                break
        for folders in (f"{LAKE}/*/*", f"{LAKE}/*", LAKE):
            for folder in self._folder.glob(folders):
                with suppress(OSError):  # it is not empty
                    folder.rmdir()

    def _files(self) -> Iterator[_File]:
        # Version 0.1.0 has another folder beside FILES.
        for folder in self._folder.glob(f"{LAKE}/*/{PART}"):
            with suppress(FileNotFoundError):
                for entry in os.scandir(folder):
                    if not entry.name.startswith((folder.name, NEW)):
                        continue
                    with suppress(FileNotFoundError):
                        status = entry.stat()
                        yield _File(status.st_mtime, status.st_size, entry.path)


def folder_name(*identity: str) -> str:
    """The name of the folder of a lake, from everything that distinguishes it from others."""
    return hashlib.sha256(json.dumps([identity]).encode()).hexdigest()[:LAKE_DIGITS]


class FolderStore:
    """Bytes by key. The name of a file is the hash of its key. Methods raise OSError."""

    def __init__(self, folder: Path, written: Callable[[int], object]) -> None:
        """Keep the arguments; no folder is created yet.

        Args:
            written: called with the bytes of each file that was written.
        """
        self._folder, self._written = folder, written
        self._leases: dict[str, int] = {}
        """The descriptors of the locks that this process holds, by key."""
        self._lock = Lock()

    def get(self, key: str) -> bytes | None:
        """The stored bytes; None if there are none.

        A file whose checksum is wrong is deleted.
        """
        path = self._path(key)
        try:
            stored = path.read_bytes()
        except FileNotFoundError:
            return None
        digest, body = stored[:DIGEST_BYTES], stored[DIGEST_BYTES:]
        if digest != _digest(body):
            logger.warning("a stored file does not match its checksum; it is generated again")
            count("BrokenItems")
            path.unlink(missing_ok=True)
            return None
        with suppress(OSError):  # another process may have deleted it
            os.utime(path)
        return body

    def put(self, key: str, body: bytes) -> bytes:
        """Store `body` unless the key is taken, and end its lease; returns the stored bytes."""
        path = self._path(key)
        try:
            _made_in(path.parent, lambda: _write(path, body))
        except FileExistsError:
            body = self.get(key) or body
        finally:
            self.release(key)
        self._written(len(body))
        return body

    def lease(self, key: str) -> bool:
        """Take the lease of a key; False: it is taken.

        It ends with `put`, `release` or the process.
        """
        path, flags = self._lease_path(key), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC
        descriptor = _made_in(path.parent, lambda: os.open(path, flags, 0o600))
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
            # A process that has opened it before may lock the deleted file: then two generate the
            # same bytes.
            self._lease_path(key).unlink(missing_ok=True)
            os.close(descriptor)

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / name[:2] / name

    def _lease_path(self, key: str) -> Path:
        return self._folder / LEASES / hashlib.sha256(key.encode()).hexdigest()


def _made_in(folder: Path, make: Callable[[], Made]) -> Made:
    """The result of `make`, which needs a folder that may be deleted at any time."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return make()
    except FileNotFoundError:
        folder.mkdir(parents=True, exist_ok=True)
        return make()


def _write(path: Path, body: bytes) -> None:
    """Write a file as a whole. Raises: FileExistsError: there is one, which stays."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=NEW, delete=False) as file:
        file.write(_digest(body) + body)
    try:
        # Unlike a rename, it fails if there is a file: the first copy stays.
        os.link(file.name, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(file.name)


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).digest()
