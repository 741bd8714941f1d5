"""What the virtual files of all tables share in a process, and how one table's are put in a bucket.

`BuildContext` holds what files are built with besides the rows of the catalog: the settings, the
cache, the metadata documents built last, and which virtual files each virtual file refers to.

`BucketFiles` is for the delivery `materialize`. An object may be gone, because a lifecycle rule or
a person removed it. So each loadTable lists the objects, restores what is missing, and renews what
is old.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from ..ducklake.history import TableHistory
from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import Snapshot
from ..iceberg.avro.manifests import file_paths, manifest_paths
from ..iceberg.table_metadata import TableMetadata
from ..runtime.errors import ServiceUnavailable
from ..runtime.prefetch import meanwhile
from ..runtime.settings import Config, FileSettings
from ..storage.bucket_store import DeliveryBucket
from ..storage.file_cache import FileCache
from ..storage.objects import ObjectReader
from ..storage.stores import Cache
from .names import Name, parse

CAPACITY = 200_000
"""The number of keys in a `ReferenceCache`; they take some 40 MB."""

PATHS: dict[str, Callable[[bytes], list[str]]] = {
    "list": manifest_paths,
    "rows-manifest": file_paths,
    "deletes-manifest": file_paths,
}
"""The function that reads the locations to which a file refers, by the kind of the file. A data
manifest is not here: it refers only to the lake's own files."""


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


DOCUMENTS = 8
"""How many documents a process keeps; one of a thousand snapshots takes some megabytes."""


class Source(NamedTuple):
    """What a document is built from, except the current time."""

    history: TableHistory
    unservable: Sequence[UnservableRange]


class MetadataCache:
    """The last document of each table, with what it was built from."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, tuple[Source, TableMetadata]] = OrderedDict()

    def get_or_build(
        self,
        history: TableHistory,
        unservable: Sequence[UnservableRange],
        build: Callable[[int], TableMetadata],
    ) -> TableMetadata:
        """The document of this history: the cached one, or what `build` gives.

        Args:
            unservable: the snapshots that the document leaves out.
            build: builds the document, given the time in milliseconds since 1970.
        """
        now_ms = int(time.time() * 1000)
        if any(_milliseconds(snapshot) > now_ms for snapshot in history.snapshots):
            # The document says "now" for them, and so changes with the time.
            return build(now_ms)
        source = Source(_without_lake_snapshot(history), unservable)
        uuid = history.table.table_uuid
        cached, document = self._documents.get(uuid, (None, None))
        if document is None or cached != source:
            document = build(now_ms)
        self._documents[uuid] = source, document
        self._documents.move_to_end(uuid)
        if len(self._documents) > DOCUMENTS:
            self._documents.popitem(last=False)
        return document


def _without_lake_snapshot(history: TableHistory) -> TableHistory:
    """The history without the lake's newest snapshot, on which a document does not depend."""
    return replace(history, lake=replace(history.lake, snapshot_id=0), snapshot_id=0)


def _milliseconds(snapshot: Snapshot) -> float:
    return snapshot.snapshot_time.timestamp() * 1000


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What the files of all tables of a lake share. It is made once in a process."""

    settings: FileSettings
    location: Callable[[str], str]
    """Where clients find a virtual file, by its key."""
    cache: Cache
    object_reader: ObjectReader
    bucket: DeliveryBucket | None = None
    """The bucket that clients read, with the delivery `materialize`."""
    staging_location: str | None = None
    """The setting: where clients put the files of a commit. None: they may not write."""
    renew_seconds: float = math.inf
    """Older objects of the bucket are renewed, before a lifecycle rule removes them."""
    documents: MetadataCache = field(default_factory=MetadataCache)
    references: ReferenceCache = field(default_factory=ReferenceCache)

    @property
    def virtual_location(self) -> str:
        """The location below which all virtual files are."""
        return self.location(self.settings.virtual_prefix)


def build_context(config: Config, cache: FileCache, object_reader: ObjectReader) -> BuildContext:
    """The context of a function."""
    return BuildContext(
        settings=config.files,
        location=config.storage.location,
        cache=cache,
        object_reader=object_reader,
        bucket=cache.bucket,
        renew_seconds=config.storage.ttl_seconds,
        staging_location=config.staging_location if config.writes else None,
    )


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
        cached_keys = [key for level in self._levels(keys, read=False) for key in level]
        document_key = self._key(document)
        with self._reading_newest(keys):
            ages = self.bucket.ages([*cached_keys, document_key])
        self._restore([key for key in keys if key not in ages])
        lower = [*self._levels(keys, read=True)][1:]  # a new table has no list
        listed = {*cached_keys}
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
            referred = (references.get(key) or () for key in level)
            level = list(dict.fromkeys(chain.from_iterable(referred)))

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
