"""The virtual files of one table as objects in the bucket that clients read.

Any object may be gone: a lifecycle rule removes by age, a person by mistake. So each loadTable
lists what is there, puts back what is missing, and renews what is old.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from ..errors import ServiceUnavailable
from ..parallel import meanwhile
from ..storage.delivery_bucket import DeliveryBucket
from .build_context import BuildContext
from .names import Name, parse
from .references import PATHS


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """The objects of one table.

    Its files form levels: manifest lists, manifests, and the files that these refer to.
    """

    bucket: DeliveryBucket
    context: BuildContext
    restore: Callable[[Sequence[Name]], None]
    """Puts files of one level into the bucket."""

    def ensure(self, lists: Sequence[Name], document: Name) -> None:
        """Put into the bucket what is missing of these and of all files to which the lists refer.

        The document is put last, because clients find all other files through it.

        Raises:
            ServiceUnavailable: the bucket does not answer, or it takes longer than a request may.
            Misconfigured: the role may not list the bucket.
        """
        with self.bucket.one_listing():
            self._ensure(lists, document)
        self.context.references.trim()

    def _ensure(self, lists: Sequence[Name], document: Name) -> None:
        keys = [self._key(name) for name in lists]
        known = [key for level in self._levels(keys, read=False) for key in level]
        document_key = self._key(document)
        with self._reading_newest(keys):
            ages = self.bucket.ages([*known, document_key])
        self._restore([key for key in keys if key not in ages])
        lower = [*self._levels(keys, read=True)][1:]  # a new table has no list
        listed = {*known}
        ages |= self.bucket.ages([key for level in lower for key in level if key not in listed])
        for level in reversed(lower):  # a file is put before those that refer to it
            self._restore([key for key in level if key not in ages])
        old = [key for key, age in ages.items() if age > self.context.renew_seconds]
        self._restore(self.bucket.renew(old))
        if document_key not in ages:
            self._restore([document_key])

    def _reading_newest(self, lists: Sequence[str]) -> AbstractContextManager[None]:
        """Read the newest list during the block: another process has put it, mostly."""
        unread = [key for key in lists[-1:] if self.context.references.get(key) is None]
        return meanwhile(lambda: self.context.cache.get_many(unread)) if unread else nullcontext()

    def _levels(self, keys: Sequence[str], *, read: bool) -> Iterator[list[str]]:
        """These keys, those to which they refer, and so on; each once in its level.

        Args:
            read: read the files whose references are not cached; else they have none.
        """
        references = self.context.references
        level = list(keys)
        while level:
            yield level
            if read:
                self._read([key for key in level if references.get(key) is None])
            level = list(dict.fromkeys(one for key in level for one in references.get(key) or ()))

    def _read(self, keys: Sequence[str]) -> None:
        """Cache the references of these files; those that are missing are put first."""
        cache = self.context.cache
        referring = [key for key in keys if self._name(key).kind in PATHS]
        bodies = dict(zip(referring, cache.get_many(referring), strict=True))
        if missing := [key for key, body in bodies.items() if body is None]:
            self._restore(missing)
            bodies |= zip(missing, cache.get_many(missing), strict=True)
        for key, body in bodies.items():
            if body is None:
                raise ServiceUnavailable("the bucket of the virtual files fails")
            paths = PATHS[self._name(key).kind](body)
            self.context.references.put(key, map(self._key_at, filter(self._is_virtual, paths)))

    def _restore(self, keys: Sequence[str]) -> None:
        if keys:
            self.restore([self._name(key) for key in keys])

    def _key(self, name: Name) -> str:
        return name.key(self.context.settings.virtual_prefix)

    def _name(self, key: str) -> Name:
        return parse(key, self.context.settings.virtual_prefix)

    def _is_virtual(self, location: str) -> bool:
        return location.startswith(f"{self.context.virtual_location}/")

    def _key_at(self, location: str) -> str:
        prefix = self.context.settings.virtual_prefix
        return prefix + location.removeprefix(self.context.virtual_location)
