"""One table on its way into the store: what is there, what is missing, what its lists show."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pg8000.native import Connection
from polynya.ducklake import history
from polynya.ducklake.history import TableHistory
from polynya.ducklake.rows import Lake, Schema, Table
from polynya.files.names import GENERATOR, Name
from polynya.files.table_files import TableFiles
from polynya.files.table_names import Manifest
from polynya.iceberg.avro.manifests import manifest_paths
from polynya.iceberg.table_metadata import TableMetadata

from .destinations import Destination
from .pointer import Pointer
from .published_files import PublishedFiles
from .tasks import Part, name_of


@dataclass(slots=True)
class PublishedTable:
    """What became of a table."""

    name: str
    refused: str | None = None
    """Why it cannot be served, and so is not published."""
    snapshots: int = 0
    manifests_made: int = 0
    """With `dry_run`: to be made."""
    manifests_kept: int = 0
    lists_made: int = 0
    lists_kept: int = 0
    files: int = 0
    """All that were written."""
    bytes: int = 0
    metadata_location: str | None = None
    is_new: bool = False
    """Whether the metadata document is another than before."""


@dataclass
class Publication:
    """One table, read in the transaction of the driver."""

    place: Destination
    history: TableHistory
    files: TableFiles
    kept: PublishedFiles
    result: PublishedTable
    snapshot_limit: int | None
    plans: dict[int, list[Manifest]] = field(default_factory=dict)
    """By snapshot, the manifests of the lists that are to be made."""

    @classmethod
    def open(
        cls,
        con: Connection,
        lake: Lake,
        found: tuple[Schema, Table],
        place: Destination,
        snapshot_limit: int | None,
        writes: bool,
    ) -> "Publication":
        limit = place.settings.snapshot_limit
        read = history.read(con, lake, *found, lake.snapshot_id, limit=limit)
        kept = place.files(writes=writes)
        files = TableFiles(con, read, place.build_context(kept))
        schema, table = found
        result = PublishedTable(f"{schema.schema_name}.{table.table_name}")
        return cls(place, read, files, kept, result, snapshot_limit)

    @cached_property
    def document(self) -> TableMetadata:
        return self.files.metadata()

    @cached_property
    def lists(self) -> dict[int, Name]:
        """Of the newest snapshots, as many as are wanted."""
        ids = [snapshot.snapshot_id for snapshot in self.document.snapshots]
        return self.files.lists(ids[-self.snapshot_limit :] if self.snapshot_limit else ids)

    def look(self) -> None:
        """See what is there.

        Raises:
            Refused: the table cannot be served.
            NoSuchKey: a file that it needs is gone.
        """
        self.result.snapshots = len(self.lists)
        self.result.lists_made = len(self.unfinished)
        self.result.lists_kept = len(self.lists) - len(self.unfinished)

    @cached_property
    def unfinished(self) -> list[int]:
        """The snapshots whose list, or a manifest that it shows, is not kept."""
        names = list(self.lists.values())
        bodies = self.kept.get_many([self._key(name) for name in names])
        shown = {
            at: [self._of_location(path) for path in manifest_paths(body)]
            for (at, _), body in zip(self.lists.items(), bodies, strict=True)
            if body is not None
        }
        every = list(dict.fromkeys(name for names in shown.values() for name in names))
        missing = set(self.files.missing(every))
        self.result.manifests_kept = len(every) - len(missing)
        return [at for at in self.lists if at not in shown or not missing.isdisjoint(shown[at])]

    def to_plan(self, number: int) -> Iterator[Part]:
        if self.unfinished:
            yield Part(number, self.place, self.history, tuple(self.unfinished))

    def planned(self, answer: Iterable[Sequence[Any]]) -> None:
        """What an executor found."""
        for snapshot_id, keys in answer:
            names = [name_of(key, self.place) for key in keys]
            self.plans[snapshot_id] = [self.files.manifest(name) for name in names]

    def plan(self) -> None:
        """What no executor found."""
        for snapshot_id in self.unfinished:
            if snapshot_id not in self.plans:
                self.plans[snapshot_id] = self.files.manifests(snapshot_id)

    def missing(self) -> dict[int, list[Manifest]]:
        """The manifests to be made, each once, by the newest snapshot that shows it."""
        first_seen: dict[Manifest, int] = {}
        for snapshot_id in sorted(self.plans, reverse=True):
            for manifest in self.plans[snapshot_id]:
                first_seen.setdefault(manifest, snapshot_id)
        names = set(self.files.missing(manifest.name for manifest in first_seen))
        self.result.manifests_made = len(names)
        planned = len(first_seen) - len(names)
        self.result.manifests_kept = max(self.result.manifests_kept, planned)
        found: dict[int, list[Manifest]] = {}
        for manifest, snapshot_id in first_seen.items():
            if manifest.name in names:
                found.setdefault(snapshot_id, []).append(manifest)
        return found

    def to_make(self, number: int) -> Iterator[Part]:
        for snapshot_id, manifests in self.missing().items():
            keys = tuple(self._key(manifest.name) for manifest in manifests)
            yield Part(number, self.place, self.history, (snapshot_id,), keys)

    def made(self, files: int, size: int) -> None:
        self.result.files += files
        self.result.bytes += size

    def finish(self) -> None:
        """The lists, and the document that leads to them last."""
        for snapshot_id in sorted(self.plans):
            self.files.cache_list(self.lists[snapshot_id], self.plans[snapshot_id])
        if self.place.is_export:
            pointer = Pointer(self.place.directory)
            moved, location = pointer.move(self.document.body)
            self.result.is_new, self.result.metadata_location = moved, location
        elif len(self.lists) == len(self.document.snapshots):
            # Behind a plain bucket nothing is made when it is read: all that it names, or no name.
            before = self.kept.made
            self.files.cache_document(self.document)
            self.result.is_new = self.kept.made > before
            self.result.metadata_location = self.files.metadata_location(self.document)
        self.made(self.kept.made, self.kept.bytes_made)

    def _key(self, name: Name) -> str:
        return name.key(self.place.settings.virtual_prefix)

    def _of_location(self, location: str) -> Name:
        prefix = f"{self.place.settings.virtual_prefix}/{self.history.table.table_uuid}/{GENERATOR}"
        return name_of(f"{prefix}/{location.rpartition('/')[2]}", self.place)
