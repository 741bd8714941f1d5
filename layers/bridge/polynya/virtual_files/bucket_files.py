"""The files of one table as objects in a bucket, for the delivery `materialize`.

A lifecycle rule or a person may have removed an object. So each loadTable lists the objects, unless
another one did within the last second, restores the missing ones, and renews the old ones.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain

from ..iceberg.table_metadata import TableMetadata
from ..runtime.errors import ServiceUnavailable
from ..runtime.prefetch import run_in_thread
from ..storage.bucket_store import (
    COMMITTED_SECONDS,
    LOADED_SECONDS,
    DeliveryBucket,
    folder_of,
)
from .adapted_data_files import AdaptedDataFiles, is_copied_in_parts
from .cached_files import CachedFiles
from .contexts import BuildContext
from .documents import Documents
from .manifests import MANIFESTS, cache_manifests, manifests_at
from .names import DATA_FILE, Name, parse


def are_put(bucket: DeliveryBucket, keys: Sequence[str], renew_seconds: float) -> bool:
    """Whether all of these objects of one table are there, and none has to be renewed.

    Raises:
        ServiceUnavailable: the bucket does not answer.
    """
    folder = folder_of(keys[0])
    with bucket.one_listing(folder, bucket.recent_listing(folder, LOADED_SECONDS)):
        ages = bucket.ages(keys)
    return len(ages) == len(keys) and all(age <= renew_seconds for age in ages.values())


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """The objects of one table.

    Its files form levels: manifest lists, manifests, and the files that these refer to: inlined
    rows, deletes, and data files that are adapted for clients.
    """

    bucket: DeliveryBucket
    files: CachedFiles
    document: TableMetadata
    lists: Sequence[Name]
    """The manifest lists of the document."""
    expired_lists: Sequence[Name] = ()
    """Those of snapshots of which only the summary is left; they refer to no other file."""

    def ensure(self, *, is_committed: bool = False) -> list[str]:
        """Put those of these files, and of all files to which the lists refer, that are missing.

        Returns the keys of all of them.

        Args:
            is_committed: this process has just committed the newest snapshot, so its files are
                missing; files that were listed within the last minute are not listed again.

        Raises:
            ServiceUnavailable: the bucket does not answer, or it takes longer than a request may.
            Misconfigured: the role may not list the bucket.
        """
        key_of = self.files.table.key
        keys = [key_of(name) for name in (*self.expired_lists, *self.lists)]
        document_key = key_of(self.files.table.names.document(self.document))
        cached_keys = [key for level in self._levels(keys, read=False) for key in level]
        folder = folder_of(document_key)
        listing = self.bucket.recent_listing(folder, COMMITTED_SECONDS) if is_committed else None
        if listing and not all(listing.shows(key) or key == keys[-1] for key in cached_keys):
            listing = None  # others have committed too
        with self.bucket.one_listing(folder, listing):
            with self._reading_newest([] if listing else keys):
                ages = self.bucket.ages([*cached_keys, document_key])
            self._restore([key for key in keys if key not in ages])
            lower = [*self._levels(keys, read=True)][1:]  # a new table has no list
            listed = {*cached_keys}
            ages |= self.bucket.ages([key for level in lower for key in level if key not in listed])
            for level in reversed(lower):  # a file is put before those that refer to it
                self._restore([key for key in level if key not in ages])
            old = [key for key, age in ages.items() if age > self._context.renew_seconds]
            self._renew(old)
            # Last, because clients find all other files through it.
            if document_key not in ages:
                self._restore([document_key])
        self._context.references.trim()
        return [*listed.union(*lower), document_key]

    def _reading_newest(self, lists: Sequence[str]) -> AbstractContextManager[None]:
        """Read the newest list during the block: usually another process has put it."""
        unread = [key for key in lists[-1:] if self._context.references.get(key) is None]
        if not unread:
            return nullcontext()
        return run_in_thread(lambda: self._context.cache.get_many(unread))

    def _levels(self, keys: Sequence[str], *, read: bool) -> Iterator[list[str]]:
        """These keys, those to which they refer, and so on; each once in its level.

        Args:
            read: read the files whose references are not cached; else they have none.
        """
        references = self._context.references
        level = list(keys)
        while level:
            yield level
            if read:
                self._read([key for key in level if references.get(key) is None])
            referred = (references.get(key) or () for key in level)
            level = list(dict.fromkeys(chain.from_iterable(referred)))

    def _read(self, keys: Sequence[str]) -> None:
        """Cache the references of these files; those that are missing are put first."""
        cache = self._context.cache
        names = {key: self._name(key) for key in keys}
        kinds = {key: self.files.kinds[name.kind] for key, name in names.items()}
        referring = [key for key, kind in kinds.items() if kind.may_refer(names[key])]
        bodies = dict(zip(referring, cache.get_many(referring), strict=True))
        if missing := [key for key, body in bodies.items() if body is None]:
            self._restore(missing)
            bodies |= zip(missing, cache.get_many(missing), strict=True)
        for key, body in bodies.items():
            if body is None:
                raise ServiceUnavailable("the bucket of the virtual files fails")
            paths_of = kinds[key].paths
            paths = paths_of(body) if paths_of else []
            self._context.references.put(key, map(self._key_at, filter(self._is_virtual, paths)))

    def _restore(self, keys: Sequence[str]) -> None:
        """Put files of one level into the bucket."""
        names = [self._name(key) for key in keys]
        missing = {name for name in names if name.kind in MANIFESTS}
        for manifest_list in reversed(self.lists):  # the manifests of one list are read together
            if missing:
                listed = manifests_at(self.files.table, manifest_list.snapshot_id)
                to_restore = [manifest for manifest in listed if manifest.name in missing]
                cache_manifests(self.files, to_restore, manifest_list)
                missing.difference_update(manifest.name for manifest in to_restore)
        remaining = [
            name
            for name in names
            if name.kind != DATA_FILE and (name.kind not in MANIFESTS or name in missing)
        ]
        for number, name in enumerate(remaining, 1):
            self.files.restore(name, self.document.body if name.kind == Documents.kind else None)
            self.files.check_time("files", number, len(remaining))
        self._copy([name for name in names if name.kind == DATA_FILE])

    def _renew(self, keys: Sequence[str]) -> None:
        """Restart the lifetimes of these objects; those that are gone are put again."""
        names = {key: self._name(key) for key in keys}
        large = {key for key, name in names.items() if is_copied_in_parts(name)}
        self._restore(self.bucket.renew([key for key in keys if key not in large]))
        self._copy([name for key, name in names.items() if key in large], is_new=False)

    def _copy(self, names: Sequence[Name], *, is_new: bool = True) -> None:
        if names:
            self.files.files_of(AdaptedDataFiles).copy(names, is_new=is_new)

    @property
    def _context(self) -> BuildContext:
        return self.files.table.context

    def _name(self, key: str) -> Name:
        return parse(key, self._context.settings.virtual_prefix)

    def _is_virtual(self, location: str) -> bool:
        return location.startswith(f"{self._context.virtual_location}/")

    def _key_at(self, location: str) -> str:
        prefix = self._context.settings.virtual_prefix
        return prefix + location.removeprefix(self._context.virtual_location)
