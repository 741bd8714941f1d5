"""The virtual files of one table: which there are, and how each is made.

Everything is read from one connection, within the transaction of whoever asks. Files refer to each
other from the top: table metadata -> manifest lists -> manifests -> rows and delete files; they are
made from the bottom, for a name needs the length of what it names.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain

from pg8000.native import Connection

from .. import budget
from ..config import SECONDS_PER_DAY, Config
from ..ducklake import queries
from ..ducklake.faults import MAX_ID
from ..ducklake.history import TableHistory, state_at, states, unservable_reason
from ..ducklake.queries import lifetimes
from ..ducklake.rows import UnservableRange
from ..errors import NoSuchKey, ServiceUnavailable
from ..iceberg.avro.manifests import manifest_file, manifest_list_bytes
from ..iceberg.table_metadata import TableMetadata
from ..storage.file_cache import FileCache
from ..storage.object_reader import ObjectReader
from ..translate.columns.default_columns import default_columns, unservable_defaults
from ..translate.tables import check_table, metadata
from .bucket_files import BucketFiles, Leads
from .content.added_files import AddedFiles
from .content.deletes import deletes_at, deletes_bytes
from .content.inlined_rows import TableRows
from .content.manifests import TableManifests
from .metadata_cache import MetadataCache
from .names import Name
from .summarized_files import SummarizedFiles
from .table_context import table_context
from .table_names import FILE_KINDS, Manifest

NO_SNAPSHOT = 0
"""DuckLake's first snapshot, which no table has."""

TAIL = 16
"""Where files come, chunks are this many times smaller."""


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What files are made with besides the catalog."""

    config: Config
    location: Callable[[str], str]
    """Where clients find a virtual file, by its key."""
    kept: FileCache
    object_reader: ObjectReader
    documents: MetadataCache = field(default_factory=MetadataCache)
    leads: Leads = field(default_factory=Leads)


class TableFiles:
    """The files that show a table as of `history.snapshot_id` and before."""

    def __init__(self, con: Connection, history: TableHistory, around: BuildContext) -> None:
        self._con = con
        self._must_end_at = budget.began_at() + around.config.build_seconds
        self._history = history
        self._around = around
        self._view = table_context(history, around.config, around.location)
        self._names = self._view.names
        self._files = SummarizedFiles(around.kept, self._key, self.build)
        self._added_files = AddedFiles(self._view, around.kept, around.object_reader)
        self._table_rows = TableRows(con, self._view)
        self._manifests = TableManifests(
            con=con,
            view=self._view,
            rows=self._table_rows,
            location=self._location_of,
            summaries=self._files.summaries,
            check_added_file=self._added_files.check,
        )

    @cached_property
    def history(self) -> TableHistory:
        """The table's history, with all its gaps."""
        view = self._view
        unservable = [*view.schemas.faults, *self._history.unservable, *view.partitions.unservable]
        unservable += self._added_files.unservable(self._con)
        if self._around.config.inexact_columns == "refuse":
            unservable += view.schemas.unservable
        if self._around.config.column_defaults == "refuse":
            unservable += chain.from_iterable(self.unservable_defaults().values())
        return replace(self._history, unservable=unservable)

    def unservable_defaults(self) -> dict[str, list[UnservableRange]]:
        """When files are visible that lack a column which has a default, by its dotted name."""
        history = self._history
        columns = default_columns(self._view.schemas, history.columns)
        borns = {column.column_id: column.born for column in columns}
        older = queries.older_files(history.lake, history.table.table_id, borns).run(self._con)
        return unservable_defaults(
            columns, older, history.partitioning.groups, history.mapped_names
        )

    def metadata(self) -> TableMetadata:
        """The table metadata.

        Raises:
            Refused: the table cannot be served exactly.
        """
        history = self.history
        check_table(history, self._view.schemas, self._view.mappings)
        return self._around.documents.once(history, partial(self._metadata, history))

    def _metadata(self, history: TableHistory, now_ms: int) -> TableMetadata:
        return metadata(
            history,
            self._view.schemas,
            self._view.partitions,
            self._view.mappings,
            self._view.location,
            manifest_list=lambda *of: self._location_of(self._names.manifest_list(*of)),
            snapshot_limit=self._around.config.snapshot_limit,
            now_ms=now_ms,
        )

    def metadata_location(self, document: TableMetadata) -> str:
        """Where clients find the document as a file."""
        return self._location_of(self._names.document(document))

    def keep(self, document: TableMetadata) -> None:
        """See to it that all files the document leads to are in the bucket, itself the last.

        Raises:
            ServiceUnavailable: that takes longer than one request may.
            Misconfigured: the bucket may not be listed.
        """
        around = self._around
        lists = [*self.lists(snapshot.snapshot_id for snapshot in document.snapshots).values()]
        name = self._names.document(document)
        BucketFiles(
            kept=around.kept,
            leads=around.leads,
            prefix=around.config.virtual_prefix,
            location=around.location(around.config.virtual_prefix),
            renew_seconds=around.config.cache_ttl_days * SECONDS_PER_DAY,
            restore=partial(self._restore, document, lists),
        ).keep(lists, name)

    def _restore(
        self, document: TableMetadata, lists: Sequence[Name], names: Sequence[Name]
    ) -> None:
        """Keep these again: the document, its lists, or what they lead to."""
        missing = {name for name in names if name.kind in FILE_KINDS.values()}
        for at in reversed(lists):  # manifests are read together, by a list that shows them
            if missing:
                shown = [m for m in self.manifests(at.snapshot_id) if m.name in missing]
                self.keep_manifests(shown)
                missing.difference_update(manifest.name for manifest in shown)
        others = [name for name in names if name.kind not in FILE_KINDS.values() or name in missing]
        for number, name in enumerate(others, 1):
            self._files.restore(name, document.body if name.kind == "table" else None)
            self._check_time("files", number, len(others))

    # What `keep` does, step by step: for many tables, many processes

    def lists(self, snapshot_ids: Iterable[int]) -> dict[int, Name]:
        """The manifest lists of snapshots, which come in ascending order."""
        found = states(self._history.events, snapshot_ids)
        return {at: self._names.manifest_list(at, state) for at, state in found}

    def manifests(self, snapshot_id: int) -> list[Manifest]:
        """The manifests that the list of a snapshot shows; some may prove to be empty."""
        size, table_id = self._around.config.chunk_files, self._history.table.table_id
        cuts = lifetimes.cuts(table_id, snapshot_id, size, max(1, size // TAIL)).run(self._con)
        manifests = self._chunk_manifests(snapshot_id, [0, *cuts], MAX_ID)
        state = state_at(self._history.events, snapshot_id)
        return [*manifests, *self._names.rows_manifests(snapshot_id, state)]

    def manifest(self, name: Name) -> Manifest:
        """One of those that `manifests` gave, by its name."""
        return self._names.manifest(name)

    def missing(self, names: Iterable[Name]) -> list[Name]:
        """Those manifests of which nothing is kept."""
        return self._files.missing(names)

    def keep_manifests(self, manifests: Iterable[Manifest]) -> None:
        """See to it that these are kept; those that are not are read together."""
        manifests = list(manifests)
        missing = set(self._files.missing(manifest.name for manifest in manifests))
        made = self._manifests.bodies(m for m in manifests if m.name in missing)
        for number, (name, body) in enumerate(made, 1):
            self._files.put(name, body)
            self._check_time("manifests", number, len(missing))

    def keep_list(self, name: Name, manifests: Sequence[Manifest]) -> None:
        """Keep the manifest list that shows these."""
        self._files.put(name, self._list_of(name.snapshot_id, manifests))

    def keep_document(self, document: TableMetadata) -> None:
        self._files.body(self._names.document(document))

    def build(self, name: Name) -> bytes:
        """Make the file of this name.

        Raises:
            NoSuchKey: today's rows give no file of this name: history was rewritten since.
            ServiceUnavailable: making what it leads to takes longer than one request may.
        """
        body = BUILDERS[name.kind](self, name)
        if body is None:
            raise NoSuchKey("DuckLake has rewritten this part of the table's history")
        return body

    # One method for each kind of file: its bytes, or None where the name is not of today's rows

    def _document(self, name: Name) -> bytes | None:
        document = self.metadata()
        if name != self._names.document(document):
            return None
        return document.body

    def _list(self, name: Name) -> bytes | None:
        snapshot_id = name.snapshot_id
        listed = {snapshot.snapshot_id for snapshot in self._history.snapshots}
        state = state_at(self._history.events, snapshot_id)
        if (
            snapshot_id not in listed
            or unservable_reason(self.history.unservable, snapshot_id)
            or name != self._names.manifest_list(snapshot_id, state)
        ):
            return None
        return self._list_of(snapshot_id, self.manifests(snapshot_id))

    def _list_of(self, snapshot_id: int, manifests: Sequence[Manifest]) -> bytes:
        """The manifest list of a snapshot that shows these; those that are not kept are made."""
        names = [manifest.name for manifest in manifests]
        self.keep_manifests(manifests)
        files = [
            manifest_file(self._location_of(name), summary)
            for name, summary in zip(names, self._files.summaries(names), strict=True)
        ]
        # Only the list of the snapshot itself says that it added a manifest: later ones may have
        # its files in manifests with other cuts, and who reads what was added would get them twice.
        files = [
            file
            if file.added_snapshot_id == snapshot_id
            else replace(file, added_snapshot_id=NO_SNAPSHOT)
            for file in files
            if file.has_entries
        ]
        return manifest_list_bytes(files, snapshot_id)

    def _chunk_manifest(self, name: Name) -> bytes | None:
        _, first, last, at = name.numbers
        return self._manifest(name, self._chunk_manifests(at, [first], last))

    def _rows_manifest(self, name: Name) -> bytes | None:
        state = state_at(self._history.events, name.snapshot_id)
        return self._manifest(name, self._names.rows_manifests(name.snapshot_id, state))

    def _rows(self, name: Name) -> bytes | None:
        """Inlined rows."""
        part, place, snapshot_id = name.numbers
        state = state_at(self._history.events, snapshot_id)
        manifests = self._names.rows_manifests(snapshot_id, state)
        is_known = any(name == self._names.rows(m.name, part, place) for m in manifests)
        return self._table_rows.body(part, place, snapshot_id) if is_known else None

    def _deletes(self, name: Name) -> bytes | None:
        data_file_id, snapshot_id = name.numbers
        span = (data_file_id, data_file_id)
        for deletes in deletes_at(self._con, self._history, snapshot_id, span):
            if name == self._view.deletes_name(deletes):
                return deletes_bytes(deletes, self._history, self._around.object_reader)
        return None

    def _chunk_manifests(self, snapshot_id: int, starts: list[int], last: int) -> list[Manifest]:
        """The manifests of chunks that begin at `starts`."""
        sums = self._history.lifetimes.chunks(snapshot_id, starts, last).run(self._con)
        return self._names.chunk_manifests(snapshot_id, sums)

    def _manifest(self, name: Name, manifests: Iterable[Manifest]) -> bytes | None:
        """The manifest of this name, if it is one of these."""
        wanted = [manifest for manifest in manifests if manifest.name == name]
        return next((body for _, body in self._manifests.bodies(wanted)), None)

    def _check_time(self, what: str, made: int, of: int) -> None:
        """What is made is kept, so that whoever asks again comes further."""
        if made < of and time.monotonic() > self._must_end_at:
            raise ServiceUnavailable(
                f"the first build of this table takes longer than one request may: {made} of {of} "
                f"{what} are made now; ask again to go on, or make them all by `polynya publish`"
            )

    def _key(self, name: Name) -> str:
        return name.key(self._around.config.virtual_prefix)

    def _location_of(self, name: Name) -> str:
        return self._around.location(self._key(name))


BUILDERS: dict[str, Callable[[TableFiles, Name], bytes | None]] = {
    "table": TableFiles._document,
    "list": TableFiles._list,
    "data": TableFiles._chunk_manifest,
    "rows-manifest": TableFiles._rows_manifest,
    "deletes-manifest": TableFiles._chunk_manifest,
    "rows": TableFiles._rows,
    "deletes": TableFiles._deletes,
}
