"""The manifests of one table: their entries are read from the catalog, and written as Avro.

Those of data files are built column by column with numpy: PostgreSQL reads and sorts the next
chunks while this process encodes those before.
"""

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

from ..ducklake import queries
from ..ducklake.faults import MAX_ID
from ..ducklake.paths import location, table_location
from ..ducklake.queries import lifetimes
from ..ducklake.queries.file_columns import FEW, Chunk, file_columns
from ..ducklake.queries.history import state_at, unservable_reason
from ..ducklake.rows.files import ChunkColumns, DataFile, FileColumns
from ..ducklake.rows.objects import Window, no_changes
from ..iceberg.avro.manifests import file_paths, live_file_paths, manifest_bytes, summary_of
from ..iceberg.manifest import UNPARTITIONED, ManifestContent, ManifestEntry, PartitionSpec
from ..iceberg.manifest import DataFile as DataFileEntry
from ..mapping.manifests import columns_with_metrics, delete_entry, rows_entry
from ..mapping.rows_files import RowsFile
from ..runtime.errors import NoSuchKey
from ..runtime.prefetch import AT_A_TIME, prefetch
from .cached_files import CachedFiles, FileKind, rewritten
from .contexts import TableContext
from .documents import NameMappedFiles
from .inlined_rows import InlinedRows
from .names import Manifest, Name
from .position_deletes import Deletes, deletes_at, listed_kind

if TYPE_CHECKING:
    from ..iceberg.avro.row_encoder import DataFiles
    from ..mapping.adaptations import ShownFile
    from ..mapping.claims import Doubt
    from ..mapping.data_files import PartitionTuples

TAIL = 16
"""The chunks of the newest files, where files are added, are this many times smaller."""


def manifests_at(table: TableContext, snapshot_id: int) -> list[Manifest]:
    """The manifests in the list of a snapshot; some may prove to be empty."""
    size, table_id = table.context.settings.chunk_files, table.history.table.table_id
    cuts = lifetimes.chunk_starts(table_id, snapshot_id, size, max(1, size // TAIL)).run(table.con)
    window = table.history.window(snapshot_id)
    manifests = _chunk_manifests(table, window, [0, *cuts], MAX_ID)
    return [*manifests, *table.names.rows_manifests(window)]


def _chunk_manifests(
    table: TableContext, window: Window, starts: list[int], last: int
) -> list[Manifest]:
    """The manifests of chunks that begin at these data file ids; the last ends at `last`."""
    sums = table.history.lifetimes.chunks(window, starts, last).run(table.con)
    return table.names.chunk_manifests(window, sums)


Bodies = Generator[tuple[Name, bytes], None, None]
"""The name and the bytes of each manifest, in any order."""


class Manifests(FileKind):
    """The manifests of one kind."""

    summary = staticmethod(summary_of)

    def build(self, name: Name) -> bytes:
        """The manifest of this name. Raises: as `bodies`, and `FileKind.build`."""
        current = self.current(name, self.table.names.window_of(name))
        matching = [manifest for manifest in current if manifest.name == name]
        with closing(self.bodies(matching)) as built:
            for _, body in built:
                return body
        raise rewritten()

    def current(self, name: Name, window: Window) -> list[Manifest]:
        """The manifests with the numbers of this name, as the rows of the catalog are now."""
        _, first, last, *_ = name.numbers
        return _chunk_manifests(self.table, window, [first], last)

    @abstractmethod
    def bodies(self, manifests: Sequence[Manifest]) -> Bodies:
        """The bytes of the manifests.

        Nothing else may use the connection until the generator ends or is closed.

        Raises:
            Refused: a manifest cannot be built exactly.
        """


CHUNKS_PER_QUERY = 32
"""A query sorts their statistics before its first row, while the chunks of the query before are
encoded. Without an index each query scans all statistics of the lake."""

FIRST_CHUNKS = 4
"""Chunks of the first query, during which there is nothing to encode; each query has twice as many
as the one before."""

COLUMNS_AHEAD = 640
"""The most columns of chunks that are read before they are encoded; a column of 2,048 files takes
some 130 kB of memory."""


class FoundChunk(NamedTuple):
    """A chunk as read from PostgreSQL."""

    chunk: Chunk
    columns: ChunkColumns
    added_files: list[DataFile]
    """The data files of the chunk, if any file was added to the table; else empty."""


class DataManifests(Manifests):
    """The manifests of data files; they refer to the lake's own files, and to adapted ones."""

    kind = "data"
    # What is gone since the snapshot before may have been removed from the lake.
    paths = staticmethod(live_file_paths)

    def may_refer(self, name: Name) -> bool:
        """As `FileKind.may_refer`; few tables have adapted files."""
        return bool(self.table.names.adaptations_at(name.snapshot_id))

    def bodies(self, manifests: Sequence[Manifest]) -> Bodies:
        """As `Manifests.bodies`; adjacent chunks are read together.

        The connection belongs to another thread until the generator ends or is closed.
        """
        from ..iceberg.avro.columnar import manifest_bytes

        added_files = NameMappedFiles(self.table)
        by_chunk: dict[Chunk, list[Manifest]] = defaultdict(list)
        for manifest in manifests:
            _, first, last, *_ = manifest.name.numbers
            by_chunk[Chunk(first, last, manifest.window)].append(manifest)
        chunks = sorted(by_chunk, key=lambda chunk: (chunk.first_id, chunk.last_id, chunk.version))
        with closing(self._read_chunks(chunks)) as read_chunks:
            for chunk, columns, files in read_chunks:
                for file in files:
                    added_files.check(file)
                entries = self._entries(chunk, columns, {m.spec for m in by_chunk[chunk]})
                for manifest in by_chunk[chunk]:
                    body = manifest_bytes(
                        entries[manifest.spec],
                        self.table.published.schema_at(chunk.version),
                        manifest.spec,
                        sequence_number=chunk.version,
                        snapshot_id=self.table.snapshot_ids.iceberg_id(chunk.version),
                    )
                    yield manifest.name, body

    def _read_chunks(self, chunks: Sequence[Chunk]) -> Generator[FoundChunk, None, None]:
        """The content of each chunk, read ahead if they are many."""
        read_chunks = self._read_in_runs(chunks)
        if len(chunks) <= FEW:  # PostgreSQL reads them at once
            return read_chunks
        columns = self._columns_with_metrics(chunks[-1].version)
        most = COLUMNS_AHEAD // (len(columns) or 1)
        return prefetch(read_chunks, min(max(1, most), CHUNKS_PER_QUERY))

    def _read_in_runs(self, chunks: Iterable[Chunk]) -> Generator[FoundChunk, None, None]:
        for run in _runs(chunks):
            for chunk, columns in zip(run, self._read(run), strict=True):
                yield FoundChunk(chunk, columns, self._added_files(chunk))

    def _read(self, run: Sequence[Chunk]) -> Iterator[ChunkColumns]:
        """The columns of each chunk, with the statistics that its version needs."""
        versions = {chunk.version for chunk in run}
        ids_by_version = {version: self._columns_with_metrics(version) for version in versions}
        history = self.table.history
        chunk_columns = file_columns(
            self.table.con,
            history.lake,
            history.table.table_id,
            run,
            set().union(*ids_by_version.values()),
            with_keys=self.table.partitions.has_keys,
            with_row_ids=self.table.has_row_ids,
            with_footer_sizes=any(map(self.table.names.adaptations_at, versions)),
        )
        for chunk, columns in zip(run, chunk_columns, strict=True):
            # Only its own columns: its bytes must not depend on which chunks are read with it.
            ids = ids_by_version[chunk.version]
            stats = [column for column in columns.stats if column.column_id in ids]
            yield columns._replace(stats=stats)

    def _columns_with_metrics(self, version: int) -> set[int]:
        return columns_with_metrics(self.table.schemas, self.table.partitions, version)

    def _added_files(self, chunk: Chunk) -> list[DataFile]:
        """The data files of a chunk, if any file was added to the table; else an empty list."""
        if not self.table.mappings.paths:
            return []
        lake, table_id = self.table.history.lake, self.table.history.table.table_id
        ids = (chunk.first_id, chunk.last_id)
        return queries.data_files_at(lake, table_id, chunk.version, *ids).run(self.table.con)

    def _entries(
        self, chunk: Chunk, columns: ChunkColumns, specs: Iterable[PartitionSpec]
    ) -> dict[PartitionSpec, "DataFiles"]:
        """The manifest entries of a chunk, by partition spec; those specs without files too."""
        from ..mapping.data_files import NO_FILES, NO_FILES_WITH_ROW_IDS, data_files

        table, history = self.table, self.table.history
        directory = table_location(history.lake, history.schema, history.table)
        files = data_files(
            columns,
            table.schemas,
            table.partitions,
            lambda path, is_relative: location((directory, False), (path, is_relative)),
            chunk.window,
            table.snapshot_ids,
            has_row_ids=table.has_row_ids,
            shown=self._shown(chunk, columns.files),
            without_bounds=table.names.changes_at(chunk.version).without_bounds,
        )
        nothing = NO_FILES_WITH_ROW_IDS if table.has_row_ids else NO_FILES
        return dict.fromkeys(specs, nothing) | files

    def _shown(self, chunk: Chunk, columns: FileColumns) -> dict[int, "ShownFile"]:
        """The data files that clients get under another name, by data_file_id."""
        from ..mapping.data_files import earliest, files_of

        names = self.table.names
        if not names.adaptations_at(chunk.version) or earliest(columns) > names.last_adapted:
            return {}
        shown, tells_since = {}, self.table.names.tells_since
        for file in files_of(columns):
            is_gone = file.end_snapshot is not None and file.end_snapshot <= chunk.version
            # Listed as DELETED under the name that it had before.
            snapshot_id = chunk.window.base_id if is_gone else chunk.version
            if (name := self.table.names.data_file(file, snapshot_id)) is not None:
                since = name.snapshot_id if tells_since else file.begin_snapshot
                shown[file.data_file_id] = self.table.shown_as(name)._replace(since=since)
            elif self.table.hidden_ids or self.table.needs_path(file):
                self.table.shown_file(file, snapshot_id)  # which raises
        return shown


def _runs(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Adjacent chunks, as many as one query reads."""
    run: list[Chunk] = []
    most = FIRST_CHUNKS
    for chunk in chunks:
        if run and (chunk.first_id != run[-1].last_id + 1 or len(run) == most):
            yield run
            run = []
            most = min(2 * most, CHUNKS_PER_QUERY)
        run.append(chunk)
    if run:
        yield run


def doubts(
    table: TableContext, snapshot_id: int, most_chunks: int | None = None
) -> "Iterator[Doubt]":
    """The statistics that data manifests of a snapshot omit, because they are, or may be, wrong.

    Args:
        most_chunks: of more chunks of files, some parts are read, which are spaced evenly, the
            newest files among them; None: all are.
    """
    from ..mapping import data_files

    history, partitions = table.history, table.partitions
    table_id, size = history.table.table_id, table.context.settings.chunk_files
    if not state_at(history.events, snapshot_id)["data"].files:
        return
    # The first file may be at the first cut: no chunk is empty.
    _, *starts = lifetimes.chunk_starts(table_id, snapshot_id, size, size).run(table.con) or [0]
    spans = lifetimes.spans([0, *starts], MAX_ID)
    column_ids = columns_with_metrics(table.schemas, partitions, snapshot_id)
    for part in sampled(spans, most_chunks):
        chunks = [Chunk(first, last, no_changes(snapshot_id)) for first, last in part]
        chunk_columns = file_columns(
            table.con, history.lake, table_id, chunks, column_ids, with_keys=partitions.has_keys
        )
        for columns in chunk_columns:
            yield from data_files.doubts(columns, table.schemas, partitions, snapshot_id)


PARTS = 5
"""The parts of a sample; each is read by three queries."""

Item = TypeVar("Item")


def sampled(items: Sequence[Item], most: int | None) -> list[Sequence[Item]]:
    """All items; if there are more than `most`, evenly spaced parts with the first and the last."""
    if most is None or len(items) <= most:
        return [items]
    size = max(1, most // PARTS)
    starts = (number * (len(items) - size) // (PARTS - 1) for number in range(PARTS))
    return [items[start : start + size] for start in starts]


class EntryManifests(Manifests):
    """Manifests whose entries are read and encoded one by one."""

    paths = staticmethod(file_paths)
    content: ClassVar[ManifestContent] = ManifestContent.DATA

    @abstractmethod
    def entries(self, manifest: Manifest) -> list[ManifestEntry]:
        """The entries of a manifest."""

    def bodies(self, manifests: Sequence[Manifest]) -> Bodies:
        """As `Manifests.bodies`."""
        for manifest in manifests:
            snapshot_id = manifest.name.snapshot_id
            body = manifest_bytes(
                self.entries(manifest),
                self.content,
                self.table.published.schema_at(snapshot_id),
                manifest.spec,
                sequence_number=snapshot_id,
                snapshot_id=self.table.snapshot_ids.iceberg_id(snapshot_id),
                format_version=self.table.format_version,
            )
            yield manifest.name, body


class RowsManifests(EntryManifests):
    """The manifests of inlined rows."""

    kind = "rows-manifest"

    def current(self, name: Name, window: Window) -> list[Manifest]:
        """As `Manifests.current`."""
        return self.table.names.rows_manifests(window)

    def rows_files(self, manifest: Manifest) -> list[DataFileEntry]:
        """The files of inlined rows that a manifest lists as live; missing ones are built."""
        files = self.table.names.rows_files.files_at(manifest.name.snapshot_id)
        return [entry.data_file for entry in self._rows_file_entries(manifest, files)]

    def entries(self, manifest: Manifest) -> list[ManifestEntry]:
        """The files of inlined rows, and those that moved within the window."""
        names = self.table.names
        files = names.rows_files.files_at(manifest.name.snapshot_id)
        gone = names.gone_rows_files(manifest.window)
        return [
            *self._rows_file_entries(manifest, files),
            *self._rows_file_entries(manifest, gone, is_gone=True),
        ]

    def _rows_file_entries(
        self, manifest: Manifest, rows_files: Iterable[RowsFile], *, is_gone: bool = False
    ) -> list[ManifestEntry]:
        """The entries of the files of inlined rows that have the partition spec of the manifest."""
        files = [
            (self.table.names.rows(whole, number), partition, file)
            for whole in rows_files
            for number, partition, file in self._split(manifest.spec, whole)
        ]
        summaries = self.files.summaries(name for name, _, _ in files)
        return [
            rows_entry(
                self.table.virtual_location(name),
                file,
                partition,
                summary["file_size_in_bytes"],
                manifest.window,
                self.table.snapshot_ids,
                is_gone=is_gone,
            )
            for (name, partition, file), summary in zip(files, summaries, strict=True)
        ]

    def _split(
        self, spec: PartitionSpec, file: RowsFile
    ) -> Iterator[tuple[int, tuple[Any, ...], RowsFile]]:
        """The files of a part of the inlined rows, with their numbers and partitions."""
        fields = self.table.schemas.schema_at(file.written_at).fields
        if not self.table.partitions.rows_spec(fields).fields:
            if spec == UNPARTITIONED:
                yield 0, (), file  # without a query for the rows
            return
        for number, group in (
            self.files.files_of(InlinedRows).groups(file.part, file.written_at).items()
        ):
            if (group.partition is None) == (spec == UNPARTITIONED):
                part = file._replace(record_count=group.record_count)
                yield number, group.partition or (), part


class DeletesManifests(EntryManifests):
    """The manifests of delete files."""

    kind = "deletes-manifest"
    content = ManifestContent.DELETES

    def entries(self, manifest: Manifest) -> list[ManifestEntry]:
        """The delete files, and those that were replaced within the window."""
        _, first, last, _, snapshot_id = manifest.name.numbers
        base_id = manifest.window.base_id
        live = self._deletes_at(snapshot_id, (first, last))
        # Those of a snapshot with a broken row were never served, and could not be read.
        was_seen = unservable_reason(self.table.history.unservable, base_id) is None
        is_changed = base_id < snapshot_id and was_seen
        before = self._deletes_at(base_id, (first, last)) if is_changed else {}
        replaced = {name: deletes for name, deletes in before.items() if name not in live}
        return [
            *self._delete_file_entries(live, manifest),
            *self._delete_file_entries(replaced, manifest, is_gone=True),
        ]

    def _deletes_at(self, snapshot_id: int, span: tuple[int, int]) -> dict[Name, Deletes]:
        file_deletes = deletes_at(self.table.con, self.table.history, snapshot_id, span)
        name_of = self.files.files_of(listed_kind(self.table)).name
        return {name_of(deletes): deletes for deletes in file_deletes}

    def _delete_file_entries(
        self, by_name: dict[Name, Deletes], manifest: Manifest, *, is_gone: bool = False
    ) -> list[ManifestEntry]:
        """The entries of delete files whose data files have the partition spec of the manifest."""
        if not by_name:
            return []
        tuples = self._tuples(manifest)
        of_names = {name: tuples[d.data_file.data_file_id] for name, d in by_name.items()}
        names = [name for name, (spec, _) in of_names.items() if spec == manifest.spec]
        # They are not built by their names: that would read the rows again for each delete file.
        body = self.files.files_of(listed_kind(self.table)).body
        summaries = self.files.summaries(names, lambda name: body(by_name[name]))
        return [
            delete_entry(
                self.table.virtual_location(name),
                summary,
                self.table.shown_file(by_name[name].data_file, name.snapshot_id).location,
                of_names[name][1],
                name.snapshot_id,
                manifest.window,
                self.table.snapshot_ids,
                is_gone=is_gone,
            )
            for name, summary in zip(names, summaries, strict=True)
            # DuckDB 1.5.5 fails over an empty delete file: all in it may begin later.
            if summary["record_count"]
        ]

    def _tuples(self, manifest: Manifest) -> "PartitionTuples":
        """The partition spec and values of each data file, as data manifests have them."""
        from ..mapping.data_files import partition_tuples

        table, history = self.table, self.table.history
        _, first, last, *_ = manifest.name.numbers
        partitions, chunk = table.partitions, Chunk(first, last, manifest.window)
        column_ids = partitions.constant_ids | partitions.source_ids
        [columns] = file_columns(
            table.con,
            history.lake,
            history.table.table_id,
            [chunk],
            column_ids,
            with_keys=partitions.has_keys,
        )
        return partition_tuples(columns, table.schemas, partitions, chunk.version)


MANIFESTS: dict[str, type[Manifests]] = {
    manifests.kind: manifests for manifests in (DataManifests, RowsManifests, DeletesManifests)
}


COST = {"data": 0.05, "deletes-manifest": 3, "rows-manifest": 0.02}
"""The approximate CPU time in milliseconds of a manifest for each file, or inlined row, in it."""
LONG = 200
"""In milliseconds: half of the time to start a process that builds manifests."""


def cache_manifests(
    files: CachedFiles, manifests: Iterable[Manifest], manifest_list: Name | None = None
) -> None:
    """Build and cache the manifests that are not cached yet; they are read together.

    Args:
        manifest_list: with it another process may build the manifests, if they are large.

    Raises:
        ServiceUnavailable: it takes longer than one request may.
        Refused: one of them cannot be built exactly.
    """
    to_build = _missing(files, manifests)
    milliseconds = sum(manifest.files * COST[manifest.name.kind] for manifest in to_build)
    if manifest_list and milliseconds > LONG and _build_elsewhere(files, manifest_list):
        to_build = _missing(files, to_build)
    number = 0
    # Closed, so that an error leaves no other thread with the connection.
    with closing(_bodies(files, to_build)) as built:
        while batch := [*islice(built, AT_A_TIME)]:
            files.put_many(batch)
            number += len(batch)
            files.check_time("manifests", number, len(to_build))


def _build_elsewhere(files: CachedFiles, manifest_list: Name) -> bool:
    """Let another process build a list and its manifests; False: there is none that does."""
    context = files.table.context
    if context.build_elsewhere is None:
        return False
    with suppress(NoSuchKey):  # the process may see a later state of the catalog
        context.build_elsewhere(files.table.key(manifest_list))
    if context.bucket is not None:
        context.bucket.list_again()
    return True


def _missing(files: CachedFiles, manifests: Iterable[Manifest]) -> list[Manifest]:
    manifests = list(manifests)
    missing = set(files.missing(manifest.name for manifest in manifests))
    return [manifest for manifest in manifests if manifest.name in missing]


def _bodies(files: CachedFiles, manifests: Sequence[Manifest]) -> Bodies:
    for kind, of_kind in MANIFESTS.items():
        to_build = [manifest for manifest in manifests if manifest.name.kind == kind]
        with closing(files.files_of(of_kind).bodies(to_build)) as built:
            yield from built
