"""What a table's metadata document leads to, as objects in the bucket that clients read.

Any object may be gone: a lifecycle rule removes by age, a person by mistake. So each loadTable
lists what is there. What files lead to is read from them once in a process, for bytes never change.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..errors import ServiceUnavailable
from ..iceberg.avro.manifests import file_paths, manifest_paths
from ..storage.file_cache import FileCache
from .names import Name, parse

MOST = 200_000
"""Keys that are remembered: some 40 MB."""

PATHS: dict[str, Callable[[bytes], list[str]]] = {
    "list": manifest_paths,
    "rows-manifest": file_paths,
    "deletes-manifest": file_paths,
}
"""By the kind of a file: where the files are to which it leads. A data manifest leads to the lake's
own files only."""


class Leads:
    """The keys of the virtual files to which a file leads, by its key."""

    def __init__(self, most: int = MOST) -> None:
        self._keys: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._most = most
        self._size = 0

    def get(self, key: str) -> tuple[str, ...] | None:
        keys = self._keys.get(key)
        if keys is not None:
            self._keys.move_to_end(key)
        return keys

    def put(self, key: str, keys: Iterable[str]) -> None:
        self._keys[key] = tuple(keys)
        self._size += 1 + len(self._keys[key])

    def trim(self) -> None:
        """Forget what was not asked about for longest: not before an answer that needs it."""
        while self._size > self._most:
            self._size -= 1 + len(self._keys.popitem(last=False)[1])


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """The objects of one table."""

    kept: FileCache
    leads: Leads
    prefix: str
    """Of the keys of all virtual files."""
    location: str
    """Of that prefix."""
    renew_seconds: float
    """Objects that are older begin a new lifetime, before a lifecycle rule removes them."""
    restore: Callable[[Sequence[Name]], None]
    """Put these into the bucket, those of one level."""

    def keep(self, lists: Sequence[Name], document: Name) -> None:
        """See to it that these, and everything to which the lists lead, are there; the document
        last, for it leads clients to all others.

        Raises:
            ServiceUnavailable: the bucket does not answer, or it takes longer than a request may.
            Misconfigured: the bucket may not be listed.
        """
        keys = [name.key(self.prefix) for name in lists]
        known = [key for level in self._levels(keys, read=False) for key in level]
        last = document.key(self.prefix)
        ages = self.kept.ages([*known, last])
        self._restore([key for key in keys if key not in ages])
        _, *below = self._levels(keys, read=True)
        asked = {*known}
        ages |= self.kept.ages([key for level in below for key in level if key not in asked])
        for level in reversed(below):  # what is led to comes before what leads there
            self._restore([key for key in level if key not in ages])
        old = [key for key, age in ages.items() if age > self.renew_seconds]
        self._restore(self.kept.renew(old))
        if last not in ages:
            self._restore([last])
        self.leads.trim()

    def _levels(self, keys: Sequence[str], *, read: bool) -> Iterator[list[str]]:
        """These keys, those to which they lead, and so on; each once.

        Args:
            read: the files of which it is not known; else they lead nowhere.
        """
        level = list(keys)
        while level:
            yield level
            if read:
                self._read([key for key in level if self.leads.get(key) is None])
            level = list(dict.fromkeys(one for key in level for one in self.leads.get(key) or ()))

    def _read(self, keys: Sequence[str]) -> None:
        """Learn what these lead to; those that are not there are put first."""
        leading = [key for key in keys if self._name(key).kind in PATHS]
        bodies = dict(zip(leading, self.kept.get_many(leading), strict=True))
        if missing := [key for key, body in bodies.items() if body is None]:
            self._restore(missing)
            bodies |= zip(missing, self.kept.get_many(missing), strict=True)
        for key, body in bodies.items():
            if body is None:
                raise ServiceUnavailable("the bucket of the virtual files fails")
            paths = PATHS[self._name(key).kind](body)
            self.leads.put(key, map(self._key_of, filter(self._is_own, paths)))

    def _restore(self, keys: Sequence[str]) -> None:
        if keys:
            self.restore([self._name(key) for key in keys])

    def _name(self, key: str) -> Name:
        return parse(key, self.prefix)

    def _is_own(self, path: str) -> bool:
        return path.startswith(f"{self.location}/")

    def _key_of(self, path: str) -> str:
        return self.prefix + path.removeprefix(self.location)
