"""Which virtual files a virtual file refers to, read from its bytes once in a process."""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from ..iceberg.avro.manifests import file_paths, manifest_paths

CAPACITY = 200_000
"""Keys, which take some 40 MB."""

PATHS: dict[str, Callable[[bytes], list[str]]] = {
    "list": manifest_paths,
    "rows-manifest": file_paths,
    "deletes-manifest": file_paths,
}
"""By the kind of a file: reads the locations that it refers to. A data manifest refers only to the
lake's own files."""


class ReferenceCache:
    """The keys of the virtual files to which a file refers, by its key."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        """`capacity`: the number of keys, referring and referred to."""
        self._keys: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._capacity = capacity
        self._size = 0

    def get(self, key: str) -> tuple[str, ...] | None:
        """The keys to which a file refers; None if its bytes have not been read."""
        keys = self._keys.get(key)
        if keys is not None:
            self._keys.move_to_end(key)
        return keys

    def put(self, key: str, keys: Iterable[str]) -> None:
        """Remember to which keys a file refers."""
        self._keys[key] = tuple(keys)
        self._size += 1 + len(self._keys[key])

    def trim(self) -> None:
        """Drop the least recently used keys beyond the capacity.

        It is called after an answer, not in `put`: an answer may need more keys than that.
        """
        while self._size > self._capacity:
            self._size -= 1 + len(self._keys.popitem(last=False)[1])
