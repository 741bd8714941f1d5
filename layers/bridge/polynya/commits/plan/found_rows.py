"""What a long search for rows by key has found, kept for the request that goes on with it.

The rows of a data file that have one of some keys never change. So what is kept is valid whatever
others commit meanwhile, and for another commit with the same delete files: a client that has given
up, or got 409, sends them again.
"""

import json
import zlib
from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from ...iceberg.types import Field
from ...runtime.metrics import count
from ...storage.file_cache import Store
from ..request.client_files import Positions


class FoundRows:
    """The rows with certain keys that have been found so far in the data files of a table."""

    def __init__(
        self, store: Store, table_uuid: str, bodies: Sequence[bytes], key: Sequence[Field]
    ) -> None:
        """Read what earlier requests have kept.

        Args:
            bodies: the delete files.
            key: the columns of the key.
        """
        digest = sha256(repr((table_uuid, key)).encode())
        for of_file in sorted(sha256(body).digest() for body in bodies):
            digest.update(of_file)
        self._store, self._key, self._parts = store, f"found-{digest.hexdigest()}", 0
        self.positions: Positions = {}
        """By the path of each data file that has been searched."""
        self.bytes_read = 0
        """How much has been read for them."""
        for part in self._kept():
            self.bytes_read += part["bytes_read"]
            self.positions |= {path: _decoded(text) for path, text in part["positions"].items()}
        self._new: Positions = {}
        self._new_bytes = 0

    def add(self, positions: Positions, bytes_read: int) -> None:
        """Add the data files of a batch, also those without such a row."""
        self.positions |= positions
        self._new |= positions
        self._new_bytes += bytes_read

    def keep(self) -> bool:
        """Keep what was added; False if that is nothing, or the store fails."""
        if not self._new:
            return False
        positions = {path: _encoded(rows) for path, rows in self._new.items()}
        part = json.dumps({"bytes_read": self._new_bytes, "positions": positions}).encode()
        try:
            # If another request has kept this part meanwhile, that one stays, and the next request
            # reads it.
            self._store.put(f"{self._key}-{self._parts}", part)
        except Exception:  # each store has errors of its own
            count("StoreFailures")
            return False
        self._new, self._new_bytes = {}, 0
        self._parts += 1
        return True

    def _kept(self) -> Iterator[dict[str, Any]]:
        try:
            while (body := self._store.get(f"{self._key}-{self._parts}")) is not None:
                self._parts += 1
                yield json.loads(body)
        except Exception:
            count("StoreFailures")


def _encoded(positions: Sequence[int]) -> str:
    return b64encode(zlib.compress(array("q", positions).tobytes(), 1)).decode()


def _decoded(text: str) -> Sequence[int]:
    return array("q", zlib.decompress(b64decode(text)))
