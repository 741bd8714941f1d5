"""Interfaces of what holds generated files, bytes by key; and the store in this process's memory.

A key never changes its bytes, so the first copy stays.
"""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Page:
    """The keys of a folder, from one key to another, in S3's order: that of their bytes."""

    folder: str
    first: str
    last: str | None
    """None: the page is the last one of the folder."""
    modified: Mapping[str, float]
    """When each key was put or renewed, in seconds since 1970."""

    def covers(self, key: str) -> bool:
        """Whether the page shows if the bucket has this key."""
        if not key.startswith(self.folder) or key.encode() < self.first.encode():
            return False
        return self.last is None or key.encode() <= self.last.encode()


@dataclass(frozen=True, slots=True)
class Listing:
    """What S3 has answered about a bucket within one request, so that it is not asked again."""

    pages: list[Page] = field(default_factory=list)
    put: set[str] = field(default_factory=set)
    """The keys that were put since, whatever the pages say."""

    def page_of(self, key: str) -> Page | None:
        """The page that shows if the bucket has this key; None: S3 was not asked."""
        # Keys are looked up in S3's order: mostly the newest page covers the next key too.
        return next((page for page in reversed(self.pages) if page.covers(key)), None)


class Store(Protocol):
    """Bytes by key, in a service. Methods raise the service's own errors."""

    def get(self, key: str) -> bytes | None:
        """The stored bytes; None if there are none."""

    def put(self, key: str, body: bytes) -> bytes:
        """Store `body` unless the key is taken; returns what is stored under the key."""


class Leases(Protocol):
    """Who generates a file that is not stored."""

    def lease(self, key: str) -> bool:
        """Whether the caller has the lease now, and so generates the file."""

    def release(self, key: str) -> None:
        """End the caller's lease before its time, because it cannot generate the file."""


class ListableStore(Store, Protocol):
    """A store that lists what it holds."""

    def ages(self, keys: Iterable[str], listing: Listing | None = None) -> dict[str, float]:
        """Seconds since each was put or renewed; keys that are not stored are left out.

        Args:
            listing: what S3 has answered before; new pages are added.
        """

    def renew(self, key: str) -> bool:
        """Restart the lifetime of an object, with the same bytes; False if it is not stored."""


class Cache(Protocol):
    """What a table's files are read from and put into: `FileCache`, or that of `publish`."""

    @property
    def is_listed(self) -> bool:
        """Whether `missing` looks at a list of stored keys instead of reading each file."""

    def get(self, key: str) -> bytes | None:
        """The bytes of a file; None if it is not cached."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `get`, for each key in order."""

    def get_local(self, key: str) -> bytes | None:
        """As `get`, but only from the memory of this process."""

    def put(self, key: str, body: bytes) -> bytes:
        """Cache a file unless the key is taken; returns what is cached under the key."""

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that are not cached, in order."""


DEFAULT_LIMIT = 64 * 1024 * 1024


class MemoryCache:
    """Bytes by key, up to a limit; the least recently used are dropped first."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        """`limit`: the bytes of all bodies together. A larger body is not cached."""
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._limit = limit
        self._size = 0
        self._lock = RLock()

    def get(self, key: str) -> bytes | None:
        """The bytes of a file; None if they are not in memory."""
        with self._lock:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
            return body

    def put(self, key: str, body: bytes) -> bytes:
        """Cache `body` unless the key is taken; returns what is cached under the key."""
        with self._lock:
            cached = self.get(key)
            if cached is not None or len(body) > self._limit:
                return cached or body
            self._bodies[key] = body
            self._size += len(body)
            while self._size > self._limit:
                self._size -= len(self._bodies.popitem(last=False)[1])
            return body
