"""The cache of a `publish` job: the store it publishes into, and what it has written."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from polynya.runtime.prefetch import map_in_parallel
from polynya.storage.file_cache import MemoryCache, Store

from ..common.errors import Unavailable
from .report import Page, pack, page_key, pages, unpack

SUMMARY = ".summary"

MANY = 32
"""With this many keys or more, the store is listed instead of read key by key."""

ListStored = Callable[[Sequence[str]], set[str]]
"""Lists which of some keys of one table are stored.

Raises:
    Unavailable: the store cannot be listed.
"""


class PublishedFiles:
    """A `Cache` that raises if its store fails: unlike a function, the job cannot go on without."""

    def __init__(
        self, store: Store, list_stored: ListStored | None = None, *, writes: bool = True
    ) -> None:
        """Create the cache without a request.

        Args:
            list_stored: None if the store cannot be listed.
            writes: if False, files are put into memory only.
        """
        self._store, self._list_stored, self._writes = store, list_stored, writes
        self._memory = MemoryCache()
        self._stored: set[str] = set()
        self._lock = Lock()
        self.written = 0
        """The number of files that were written."""
        self.bytes_written = 0

    @property
    def is_listed(self) -> bool:
        """Whether `missing` lists the stored keys instead of reading each file."""
        return self._list_stored is not None

    def get_local(self, key: str) -> bytes | None:
        """As `get`, but only from the memory of this process."""
        return self._memory.get(key)

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that are not stored, in order; many are looked up in a list.

        Raises:
            Unavailable: the store cannot be read.
        """
        unknown = [key for key in keys if key not in self._stored]
        if self._list_stored is None or len(unknown) < MANY:
            return self._missing_by_read(unknown)
        try:
            self._stored |= self._list_stored(unknown)
        except Unavailable:  # the role may only read
            return self._missing_by_read(unknown)
        return [key for key in unknown if key not in self._stored]

    def _missing_by_read(self, keys: Sequence[str]) -> list[str]:
        bodies = self.get_many(keys)
        return [key for key, body in zip(keys, bodies, strict=True) if body is None]

    def get(self, key: str) -> bytes | None:
        """The bytes of a file; None if it is not stored. Raises: as `get_many`."""
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `get`, for each key in order.

        Raises:
            Unavailable: the store cannot be read.
        """
        # Only for keys that a list has shown: a page does not prove that its files exist. If a
        # bucket deletes objects by age, the page, which is younger, outlives them.
        new_pages = self._read_pages([key for key in keys if key in self._stored])
        bodies = map_in_parallel(self._read, keys)
        by_key = dict(zip(keys, bodies, strict=True))
        for page in new_pages:
            summaries = [body for key in page if (body := by_key[key]) is not None]
            if len(summaries) == len(page):
                self.put(page_key(page), pack(summaries))
        return bodies

    def _read_pages(self, keys: Sequence[str]) -> list[Page]:
        """Put the summaries of stored pages into memory; returns the pages that are not stored."""
        summary_pages = list(pages([key for key in keys if key.endswith(SUMMARY)]))
        new_pages = []
        bodies = map_in_parallel(self._read, [page_key(page) for page in summary_pages])
        for page, body in zip(summary_pages, bodies, strict=True):
            if body is None:
                new_pages.append(page)
            else:
                for key, summary in zip(page, unpack(body), strict=True):
                    self._memory.put(key, summary)
        return new_pages

    def put(self, key: str, body: bytes) -> bytes:
        """Store a file unless the key is taken; returns what is stored under the key.

        Raises:
            Unavailable: the store cannot be written.
        """
        if self._writes:
            with _store_errors("written"):
                body = self._store.put(key, body)
            with self._lock:
                self._stored.add(key)
                self.written += 1
                self.bytes_written += len(body)
        return self._memory.put(key, body)

    def _read(self, key: str) -> bytes | None:
        body = self._memory.get(key)
        if body is None:
            with _store_errors("read"):
                body = self._store.get(key)
            if body is not None:
                self._memory.put(key, body)
        return body


@contextmanager
def _store_errors(verb: str) -> Iterator[None]:
    """Raise Unavailable for boto3's errors; `verb` completes "the store cannot be …"."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "an error")
        reason = f"{code} at {error.operation_name}"
    except BotoCoreError as error:
        reason = type(error).__name__
    else:
        return
    raise Unavailable(f"the store of the files cannot be {verb}: {reason}")
