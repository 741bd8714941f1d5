"""Interfaces of what holds generated files: bytes by key, of any format.

A key never changes its bytes, so the first copy stays.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from .listing import Listing


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
            listing: what is known already; new pages are added.
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
