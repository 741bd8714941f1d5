"""The virtual files of one table: which there are, and how each is built.

Everything is read from one connection, within the caller's transaction. Files refer to each other
from the top: table metadata -> manifest lists -> manifests -> rows and delete files. They are built
from the bottom, because a file holds the length of the files to which it refers.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import islice

from pg8000.native import Connection

from ..ducklake.faults import MAX_ID
from ..ducklake.history import TableHistory, state_at, states, unservable_reason
from ..ducklake.paths import table_location
from ..ducklake.queries import lifetimes
from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import Window
from ..iceberg.table_metadata import TableMetadata
from ..mapping.properties import write_properties
from ..mapping.tables import check_table, metadata
from ..runtime import budget
from ..runtime.errors import NoSuchKey, ServiceUnavailable
from ..runtime.prefetch import AT_A_TIME
from .bucket_files import BuildContext
from .contexts import NameMappedFiles, TableContext, UnservableSnapshots, table_context
from .deletes import Deletes, deletes_at, deletes_bytes
from .inlined_rows import InlinedRows, LiveRows
from .manifest_lists import LiveFiles, SummarizedFiles, manifest_list
from .manifests import TableManifests
from .names import Manifest, Name, parse
from .padded import PaddedFiles, padded_body
from .scan_files import ListedFiles, ScanFiles

TAIL = 16
"""The chunks of the newest files, where files are added, are this many times smaller."""


class VirtualTable:
    """The files of a table as of `history.snapshot_id` and before."""

    def __init__(self, con: Connection, history: TableHistory, context: BuildContext) -> None:
        self.history = history
        """The table's rows in the catalog; `unservable` says what they do not let us serve."""
        self._con = con
        self._context = context
        self._settings = context.settings
        self._deadline = budget.started_at() + context.settings.build_seconds
        self._table = table_context(history, context.settings, context.location)
        self._names = self._table.names
        self._files = SummarizedFiles(context.cache, self._key, self.build)
        self._rows = InlinedRows(con, self._table)
        added_files = NameMappedFiles(self._table, context.cache, context.object_reader)
        self._unservable = UnservableSnapshots(con, self._table, added_files, self._settings)
        self._manifests = TableManifests(
            con=con,
            table=self._table,
            rows=self._rows,
            location=self._location,
            summaries=self._files.summaries,
            deletes_body=self._deletes_body,
            check_added_file=added_files.check,
        )
        self._padded = PaddedFiles(con, self._table, self._rows, self._location)

    @property
    def table(self) -> TableContext:
        """The table's columns and partitions for clients, also if it cannot be served."""
        return self._table

    @cached_property
    def unservable(self) -> list[UnservableRange]:
        """The ranges of snapshots that cannot be served exactly, with the reasons."""
        return self._unservable.ranges()

    def unservable_defaults(self) -> dict[str, list[UnservableRange]]:
        """The snapshots that show files without a column that has a default, by its dotted name."""
        return self._unservable.defaults()

    # The metadata document

    def metadata(self) -> TableMetadata:
        """The metadata document of the table.

        Raises:
            Refused: the table cannot be served exactly.
        """
        check_table(self.history, self.unservable, self._table.schemas, self._table.mappings)
        documents = self._context.documents
        return documents.get_or_build(self.history, self.unservable, self._build_metadata)

    def _build_metadata(self, now_ms: int) -> TableMetadata:
        return metadata(
            self.history,
            self.unservable,
            self._table.schemas,
            self._table.partitions,
            self._table.mappings,
            self._table.snapshot_ids,
            self._names.rows_files,
            self._table.location,
            manifest_list=lambda *args: self._location(self._names.manifest_list(*args)),
            snapshot_limit=self._settings.snapshot_limit,
            now_ms=now_ms,
            own_properties=self._write_properties(),
        )

    def _write_properties(self) -> dict[str, str]:
        staging = self._context.staging_location
        if staging is None:
            return {}
        history = self.history
        location = table_location(history.lake, history.schema, history.table)
        return write_properties(location, history.table.table_uuid, staging, history.lake.data_path)

    def list_body(self, snapshot_id: int) -> bytes:
        """The manifest list of a listed snapshot, from the cache or built. Raises: as `build`."""
        [name] = self.lists([snapshot_id]).values()
        return self._files.body(name)

    def body_at(self, location: str) -> bytes | None:
        """The bytes of the virtual file at a location; None if this table has no such file.

        Raises: as `build`.
        """
        name = self.name_at(location)
        return self._files.body(name) if name else None

    def name_at(self, location: str) -> Name | None:
        """The name of the virtual file at a location; None if it is not one of this table.

        Raises:
            NoSuchKey: the location is below that of virtual files, but is no virtual file's name.
        """
        prefix = self._context.virtual_location
        if not location.startswith(f"{prefix}/"):
            return None
        key = self._settings.virtual_prefix + location.removeprefix(prefix)
        name = parse(key, self._settings.virtual_prefix)
        return name if name.table_uuid == self.history.table.table_uuid else None

    def live_rows(self) -> LiveRows:
        """The live rows of the table."""
        return LiveRows(self._con, self._table, self._rows, self._context.object_reader)

    def document_name(self, document: TableMetadata) -> Name:
        """The name of the document as a file."""
        return self._names.document(document)

    def metadata_location(self, document: TableMetadata) -> str:
        """Where clients find the document as a file."""
        return self._location(self.document_name(document))

    def scan_files(self) -> ScanFiles:
        """The files of the table for scans that this server plans."""
        return ScanFiles(
            con=self._con,
            table=self._table,
            generated=self._padded if self._context.bucket is None else self._listed(),
            check_added_file=self._manifests.check_added_file,
        )

    def _listed(self) -> ListedFiles:
        return ListedFiles(
            table=self._table,
            manifests=self._manifests,
            location=self._location,
            summaries=self._files.summaries,
            check_time=self.check_time,
        )

    # Manifest lists and manifests by snapshot

    def lists(self, snapshot_ids: Iterable[int]) -> dict[int, Name]:
        """The manifest lists of snapshots, by snapshot id.

        Args:
            snapshot_ids: in ascending order.
        """
        return {
            snapshot_id: self._names.manifest_list(snapshot_id, state)
            for snapshot_id, state in states(self.history.events, snapshot_ids)
        }

    def manifests(self, snapshot_id: int) -> list[Manifest]:
        """The manifests in the list of a snapshot; some may prove to be empty."""
        size, table_id = self._settings.chunk_files, self.history.table.table_id
        cuts = lifetimes.cuts(table_id, snapshot_id, size, max(1, size // TAIL)).run(self._con)
        window = self.history.window(snapshot_id)
        manifests = self._chunk_manifests(window, [0, *cuts], MAX_ID)
        return [*manifests, *self._names.rows_manifests(window)]

    def manifest(self, name: Name) -> Manifest:
        """One of the results of `manifests`, by its name."""
        return self._names.manifest(name)

    # Files in the cache

    def missing(self, names: Iterable[Name]) -> list[Name]:
        """The files that are not cached, in order."""
        return self._files.missing(names)

    def cache_manifests(self, manifests: Iterable[Manifest]) -> None:
        """Build and cache those of the manifests that are not cached; they are read together.

        Raises:
            ServiceUnavailable: it takes longer than one request may.
            Refused: one of them cannot be built exactly.
        """
        manifests = list(manifests)
        missing = set(self._files.missing(manifest.name for manifest in manifests))
        to_build = [manifest for manifest in manifests if manifest.name in missing]
        number = 0
        # Closed, so that an error leaves no other thread with the connection.
        with closing(self._manifests.bodies(to_build)) as built:
            while batch := [*islice(built, AT_A_TIME)]:
                self._files.put_many(batch)
                number += len(batch)
                self.check_time("manifests", number, len(missing))

    def cache_list(self, name: Name, manifests: Sequence[Manifest]) -> None:
        """Build and cache the manifest list of these manifests. Raises: as `cache_manifests`."""
        self._files.put(name, self._list_bytes(name.snapshot_id, manifests))

    def cache_document(self, document: TableMetadata) -> None:
        """Cache the metadata document as a file. Raises: as `metadata`."""
        self._files.body(self.document_name(document))

    def restore(self, name: Name, body: bytes | None) -> None:
        """Cache a file again that the store has lost; without `body` it is built. Raises: as
        `build`."""
        self._files.restore(name, body)

    def check_time(self, what: str, built: int, total: int) -> None:
        """Stop a build that takes too long. What is built is cached, so the next request goes on.

        Args:
            what: the kind of files, for the error's message.

        Raises:
            ServiceUnavailable: BUILD_SECONDS are over, and not all files are built.
        """
        if built < total and time.monotonic() > self._deadline:
            raise ServiceUnavailable(
                f"the first build of this table takes longer than one request may: {built} of "
                f"{total} {what} are built now; ask again to go on, or build them all with "
                "`polynya publish`"
            )

    # Bytes by name

    def build(self, name: Name) -> bytes:
        """Build the file of this name.

        Raises:
            NoSuchKey: the rows of the catalog give no file of this name: they were rewritten.
            ServiceUnavailable: building the files to which it refers takes longer than one request
                may.
            Refused: it cannot be built exactly.
        """
        body = BUILDERS[name.kind](self, name)
        if body is None:
            raise NoSuchKey("DuckLake has rewritten this part of the table's history")
        return body

    # One method for each kind of file: its bytes, or None if the rows now give another name

    def _build_document(self, name: Name) -> bytes | None:
        document = self.metadata()
        if name != self.document_name(document):
            return None
        return document.body

    def _build_list(self, name: Name) -> bytes | None:
        snapshot_id = name.snapshot_id
        touched = {snapshot.snapshot_id for snapshot in self.history.snapshots}
        state = state_at(self.history.events, snapshot_id)
        if (
            snapshot_id not in touched
            or unservable_reason(self.unservable, snapshot_id)
            or name != self._names.manifest_list(snapshot_id, state)
        ):
            return None
        return self._list_bytes(snapshot_id, self.manifests(snapshot_id))

    def _list_bytes(self, snapshot_id: int, manifests: Sequence[Manifest]) -> bytes:
        """The manifest list of a snapshot; those of its manifests that are missing are cached."""
        self.cache_manifests(manifests)
        names = [manifest.name for manifest in manifests]
        summaries = self._files.summaries(names)
        self._live_files.check(snapshot_id, zip(manifests, summaries, strict=True))
        listed = zip(map(self._location, names), summaries, strict=True)
        ids = self._table.snapshot_ids.of(snapshot_id), snapshot_id
        return manifest_list(*ids, listed, self._table.format_version)

    @cached_property
    def _live_files(self) -> LiveFiles:
        return LiveFiles(self.history.events)

    def _build_chunk_manifest(self, name: Name) -> bytes | None:
        _, first, last, *_ = name.numbers
        window = self._names.window_of(name)
        return self._manifest_bytes(name, self._chunk_manifests(window, [first], last))

    def _build_rows_manifest(self, name: Name) -> bytes | None:
        window = self._names.window_of(name)
        return self._manifest_bytes(name, self._names.rows_manifests(window))

    def _manifest_bytes(self, name: Name, manifests: Iterable[Manifest]) -> bytes | None:
        """The manifest of this name, if it is one of these."""
        matching = [manifest for manifest in manifests if manifest.name == name]
        with closing(self._manifests.bodies(matching)) as built:
            return next((body for _, body in built), None)

    def _build_rows(self, name: Name) -> bytes | None:
        part, number, snapshot_id = name.numbers
        files = self._names.rows_files.at(snapshot_id)
        is_named = any(name == self._names.rows(file, number) for file in files)
        return self._rows.body(part, number, snapshot_id) if is_named else None

    def _build_deletes(self, name: Name) -> bytes | None:
        data_file_id, snapshot_id = name.numbers
        span = (data_file_id, data_file_id)
        for deletes in deletes_at(self._con, self.history, snapshot_id, span):
            if name == self._table.deletes_name(deletes):
                return self._deletes_body(deletes)
        return None

    def _build_padded_rows(self, name: Name) -> bytes | None:
        _, part, number, snapshot_id = name.numbers
        if all(name != rows_name for rows_name, _ in self._padded.rows_names(snapshot_id)):
            return None
        body = self._rows.body(part, number, snapshot_id)
        return None if body is None else padded_body(name, body)

    def _build_padded_deletes(self, name: Name) -> bytes | None:
        _, data_file_id, snapshot_id = name.numbers
        span = (data_file_id, data_file_id)
        for deletes in deletes_at(self._con, self.history, snapshot_id, span):
            if name == self._padded.deletes_name(deletes):
                return padded_body(name, self._deletes_body(deletes))
        return None

    def _deletes_body(self, deletes: Deletes) -> bytes:
        # As of the snapshot in the name.
        deletes = replace(deletes, snapshot_id=deletes.changed_at)
        return deletes_bytes(deletes, self.history, self._context.object_reader)

    def _chunk_manifests(self, window: Window, starts: list[int], last: int) -> list[Manifest]:
        """The manifests of chunks that begin at these data file ids; the last ends at `last`."""
        sums = self.history.lifetimes.chunks(window, starts, last).run(self._con)
        return self._names.chunk_manifests(window, sums)

    def _key(self, name: Name) -> str:
        return name.key(self._settings.virtual_prefix)

    def _location(self, name: Name) -> str:
        return self._context.location(self._key(name))


BUILDERS: dict[str, Callable[[VirtualTable, Name], bytes | None]] = {
    "table": VirtualTable._build_document,
    "list": VirtualTable._build_list,
    "data": VirtualTable._build_chunk_manifest,
    "rows-manifest": VirtualTable._build_rows_manifest,
    "deletes-manifest": VirtualTable._build_chunk_manifest,
    "rows": VirtualTable._build_rows,
    "deletes": VirtualTable._build_deletes,
    "padded-rows": VirtualTable._build_padded_rows,
    "padded-deletes": VirtualTable._build_padded_deletes,
}
"""The method that builds a file, by its kind."""
