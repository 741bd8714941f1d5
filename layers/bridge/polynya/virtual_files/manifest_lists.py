"""The manifest lists of one table."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

from ..ducklake.queries.history import state_at, unservable_reason
from ..ducklake.rows.files import Event
from ..iceberg.avro.manifests import manifest_file, manifest_list_bytes, manifest_paths
from ..iceberg.manifest import ManifestContent, ManifestFile
from ..runtime.errors import PolynyaError
from .cached_files import FileKind, Summary, rewritten
from .documents import Documents
from .manifests import cache_manifests, manifests_at
from .names import Manifest, Name

NO_SNAPSHOT = 0
"""DuckLake's first snapshot, at which there are no tables."""
LIVE = ("added_files_count", "existing_files_count")
"""The fields of a summary that count the entries which are not deleted."""


class LiveFiles:
    """How many data files a table has at each snapshot, by the rows of the catalog."""

    def __init__(self, events: Iterable[Event]) -> None:
        """`events` of the table, in ascending order."""
        data = [event for event in events if event.kind == "data"]
        self._snapshot_ids = [event.snapshot_id for event in data]
        self._counts = [0, *accumulate(event.sign * event.files for event in data)]

    def check(self, snapshot_id: int, listed: Iterable[tuple[Manifest, Summary]]) -> None:
        """Compare with the manifests of a snapshot's list: a cached manifest may be of other files.

        Raises:
            PolynyaError: the list would have too many files, or too few.
        """
        expected = self._counts[bisect_right(self._snapshot_ids, snapshot_id)]
        summaries = [summary for manifest, summary in listed if manifest.name.kind == "data"]
        live = sum(summary[field] for summary in summaries for field in LIVE)
        if live != expected:
            raise PolynyaError(
                f"the manifests of snapshot {snapshot_id} have {live} data files, and the catalog "
                f"has {expected}: nothing of it is served; please report it with the output of "
                "`polynya inspect`. Clear the cache to go on"
            )


class ManifestLists(FileKind):
    """The manifest lists of snapshots."""

    kind = "list"
    paths = staticmethod(manifest_paths)

    @cached_property
    def _live_files(self) -> LiveFiles:
        return LiveFiles(self.table.history.events)

    def build(self, name: Name) -> bytes:
        """The list of a snapshot. Raises: as `bytes_of`, and `FileKind.build`."""
        history, snapshot_id = self.table.history, name.snapshot_id
        touched = {snapshot.snapshot_id for snapshot in history.snapshots}
        state = state_at(history.events, snapshot_id)
        if (
            snapshot_id not in touched
            or unservable_reason(self.files.files_of(Documents).unservable, snapshot_id)
            or name != self.table.names.manifest_list(snapshot_id, state)
        ):
            raise rewritten()
        manifests = manifests_at(self.table, snapshot_id)
        cache_manifests(self.files, manifests, name)
        return self._bytes_of(snapshot_id, manifests)

    def bytes_of(self, snapshot_id: int, manifests: Sequence[Manifest]) -> bytes:
        """The list of these manifests; those that are missing are cached, those without entries are
        left out.

        Raises: as `cache_manifests`.
        """
        cache_manifests(self.files, manifests)
        return self._bytes_of(snapshot_id, manifests)

    def _bytes_of(self, snapshot_id: int, manifests: Sequence[Manifest]) -> bytes:
        summaries = self.files.summaries(manifest.name for manifest in manifests)
        self._live_files.check(snapshot_id, zip(manifests, summaries, strict=True))
        client_id = self.table.snapshot_ids.iceberg_id(snapshot_id)
        listed = (
            manifest_file(self.table.virtual_location(manifest.name), summary)
            for manifest, summary in zip(manifests, summaries, strict=True)
        )
        # A manifest without changes was added by no snapshot: others may have its files in other
        # chunks, and a reader of what a snapshot added would get them twice.
        files = [
            file
            if file.added_snapshot_id == client_id
            else replace(file, added_snapshot_id=NO_SNAPSHOT)
            for file in listed
            if file.has_entries
        ]
        return manifest_list_bytes(files, snapshot_id, client_id, self.table.format_version)


class ExpiredLists(FileKind):
    """The manifest lists of snapshots that have only a summary left.

    A reader of the files that such a snapshot has added finds none. A reader of its rows must not
    get an empty table, so the list names one manifest, which does not exist.
    """

    kind = "expired-list"

    def build(self, name: Name) -> bytes:
        """The list. Raises: as `FileKind.build`."""
        snapshot_id = name.snapshot_id
        is_committed = snapshot_id in self.table.snapshot_ids
        if not is_committed or name != self.table.names.expired_list(snapshot_id):
            raise rewritten()
        location = self.table.virtual_location(name).removesuffix(".avro")
        gone = ManifestFile(
            manifest_path=f"{location}-has-no-rows-any-more.avro",
            manifest_length=1,
            content=ManifestContent.DATA,
            sequence_number=snapshot_id,
            min_sequence_number=snapshot_id,
            added_snapshot_id=NO_SNAPSHOT,
            existing_files_count=1,
            existing_rows_count=1,
            partition_spec_id=self.table.partitions.specs[0].spec_id,
            first_row_id=0 if self.table.has_row_ids else None,
        )
        return manifest_list_bytes([gone], snapshot_id, None, self.table.format_version)
