"""What a store of generated files can do: bytes by key. It knows keys and bytes, no format.

The first copy stays: a key never changes its bytes.
"""

from collections.abc import Iterable
from typing import Protocol


class Store(Protocol):
    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, body: bytes) -> bytes:
        """Keep `body` unless the key is taken; what is kept under the key comes back."""


class Leases(Protocol):
    def lease(self, key: str) -> bool:
        """Whether the caller shall make the file: nobody else does."""

    def release(self, key: str) -> None:
        """Whoever has the lease cannot make the file."""


class Listed(Protocol):
    """A store that tells what it holds."""

    def ages(self, keys: Iterable[str]) -> dict[str, float]:
        """How many seconds ago each was put or renewed, of those that are there."""

    def renew(self, key: str) -> bool:
        """Let a lifetime begin anew, with the same bytes; False: it is not there."""
