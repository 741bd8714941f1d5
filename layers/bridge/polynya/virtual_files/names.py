"""The names of virtual files: key <-> name, and which names the files of one table have.

    <prefix>/<table uuid>/g3/<kind>-<numbers>-<fingerprint><suffix>
    <prefix>/<table uuid>/g3/<snapshot>-table-<fingerprint>.metadata.json

`earlier` is the metadata document of a state before the one that its log belongs to.

A key has all on which the file's bytes depend: the generator's version, the table, the snapshot,
and a fingerprint of the catalog rows from which the file is built. Before the fingerprint is `v3`,
if the table shows columns that need format version 3 and has other files for clients that do not
see them; the columns that are hidden from a caller, by their ids (`h3.7`); and the clients that the
warehouse names, if others get other files. Names follow from the table's history alone, without a
query.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from ..ducklake.paths import file_location, table_location
from ..ducklake.queries.history import State, TableHistory
from ..ducklake.rows.files import ChunkSum, DataFile, DeleteFile, InlinedDelete
from ..ducklake.rows.objects import Window, no_changes
from ..iceberg.avro.container import COMPRESSOR
from ..iceberg.manifest import UNPARTITIONED, PartitionSpec
from ..iceberg.parquet.new_footer import largest_size
from ..iceberg.sandbox import WRITER
from ..iceberg.table_metadata import TableMetadata
from ..mapping.adaptations import NEVER, NOTHING, Adaptation, Adaptations, TableChanges
from ..mapping.hidden_columns import Hidden
from ..mapping.manifests import LENGTH, fingerprint, fingerprint_of_bytes, late_columns
from ..mapping.partitions import Partitions
from ..mapping.rows_files import ALL, RowsFile, RowsFiles, rows_files
from ..mapping.schemas import Schemas
from ..mapping.snapshots import SnapshotIds
from ..runtime.errors import Misconfigured, NoSuchKey
from ..runtime.settings import clients_of, words_for

GENERATOR = "g3"
"""The generator's version, which changes when the same rows have to give other bytes. The versions
of the compressor of Avro and of the writer of Parquet are in the fingerprints instead: cached files
of other versions can still be read."""


class Kind(NamedTuple):
    """How the names of one kind of files are formed."""

    numbers: tuple[str, ...]
    """What the numbers mean; the last one is always the snapshot whose state the file has."""
    suffix: str


WINDOW = ("base_id", "snapshot_id")
"""The changes of a manifest: from `base_id` to `snapshot_id`; none if both are the same."""

DATA_FILE = "data-file"
"""The kind of data files with a new footer, whose bytes are not all generated."""

CHUNK = ("spec_id", "first_data_file_id", "last_data_file_id", *WINDOW)

KINDS = {
    "table": Kind(("snapshot_id",), ".metadata.json"),
    "earlier": Kind(("earlier_id", "snapshot_id"), ".metadata.json"),
    "list": Kind(("snapshot_id",), ".avro"),
    "expired-list": Kind(("snapshot_id",), ".avro"),
    "data": Kind(CHUNK, ".avro"),
    "rows-manifest": Kind(("spec_id", *WINDOW), ".avro"),
    "rows": Kind(("part", "number", "snapshot_id"), ".parquet"),
    "deletes-manifest": Kind(CHUNK, ".avro"),
    "deletes": Kind(("data_file_id", "snapshot_id"), ".parquet"),
    "vector": Kind(("data_file_id", "snapshot_id"), ".puffin"),
    DATA_FILE: Kind(("size", "data_file_id", "snapshot_id"), ".parquet"),
    "padded-rows": Kind(("size", "part", "number", "snapshot_id"), ".parquet"),
    "padded-deletes": Kind(("size", "data_file_id", "snapshot_id"), ".parquet"),
}

DOCUMENTS = {"table", "earlier"}
"""The kinds of metadata documents."""

DELETES = {"deletes", "vector"}
"""The kinds of delete files that manifests name: up to format version 2, and from 3 on."""

NUMBER = r"(?:0|[1-9][0-9]{0,17})"  # one spelling for each number: one key for each file

VERSION_3 = "v3"

UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
"""A regular expression for the uuid of a table, with which the keys of its files begin."""

FILE = re.compile(
    rf"(?P<table_uuid>{UUID})"
    rf"/{GENERATOR}/(?P<version>(?:{NUMBER}-)?)(?P<kind>{'|'.join(KINDS)})(?P<numbers>(?:-{NUMBER})*)"
    rf"-(?P<version_3>(?:{VERSION_3}-)?)(?P<hidden>(?:h{NUMBER}(?:[.]{NUMBER})*-)?)"
    rf"(?P<clients>(?:[a-z][a-z.-]*-)?)"
    rf"(?P<fingerprint>[0-9a-f]{{{LENGTH}}})(?P<suffix>\.[a-z.]+)"
)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of one virtual file."""

    table_uuid: str
    kind: str
    numbers: tuple[int, ...]
    fingerprint: str
    shows_version_3: bool = False
    """The table shows columns that need format version 3."""
    clients: frozenset[str] | None = None
    """The clients whose faults the file makes up for; None: those of the settings."""
    hidden_ids: tuple[int, ...] = ()
    """The columns that the file does not have, by column_id, because a caller does not see them."""

    @property
    def snapshot_id(self) -> int:
        """The snapshot whose state the file has."""
        return self.numbers[-1]

    def key(self, prefix: str) -> str:
        """The key of the file; `prefix` is that of all virtual files."""
        words = [self.kind, *map(str, self.numbers)]
        if self.kind == "table":
            words.reverse()  # ClickHouse expects the version at the beginning of a document's name
        words += [VERSION_3] if self.shows_version_3 else []
        words += [f"h{'.'.join(map(str, self.hidden_ids))}"] if self.hidden_ids else []
        words += [] if self.clients is None else [".".join(words_for(self.clients))]
        words.append(self.fingerprint)
        file = f"{'-'.join(words)}{KINDS[self.kind].suffix}"
        return f"{prefix}/{self.table_uuid}/{GENERATOR}/{file}"


def is_virtual(key: str, prefix: str) -> bool:
    """Whether a key is below the prefix of virtual files: no real object is served for it."""
    return key.startswith(f"{prefix}/")


def parse(key: str, prefix: str) -> Name:
    """The file that a key names.

    Raises:
        NoSuchKey: the key does not have the form of a virtual file's name.
    """
    match = FILE.fullmatch(key.removeprefix(f"{prefix}/")) if is_virtual(key, prefix) else None
    if match is not None:
        numbers = tuple(map(int, re.findall("[0-9]+", match["version"] + match["numbers"])))
        hidden_ids = tuple(map(int, re.findall("[0-9]+", match["hidden"])))
        own = bool(match["version_3"]), _clients(match["clients"]), hidden_ids
        name = Name(match["table_uuid"], match["kind"], numbers, match["fingerprint"], *own)
        if len(numbers) == len(KINDS[name.kind].numbers) and name.key(prefix) == key:
            return name
    raise NoSuchKey("no virtual file has this name")


def _clients(text: str) -> frozenset[str] | None:
    """The clients in a name. Raises NoSuchKey: the text names none."""
    if not text:
        return None
    try:
        return clients_of(text[:-1].replace(".", ","))
    except Misconfigured:
        raise NoSuchKey("no virtual file has this name") from None


PARTIAL = {"partial", "partial_delete"}
"""Kinds of files that hold rows or deletes of more than one snapshot."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest that a manifest list refers to."""

    spec: PartitionSpec
    name: Name
    window: Window
    """The changes that it lists as ADDED or DELETED."""
    files: int = field(default=0, compare=False)
    """How many data files, delete files or inlined rows it is built from, if that is known."""


class ShownTable(NamedTuple):
    """The form of a table for certain clients."""

    schemas: Schemas
    published: Schemas
    """The same, or without the defaults of columns that clients find in all files."""
    has_vectors: bool
    """Deletes are deletion vectors."""
    shows_version_3: bool
    """It shows columns that need format version 3, which others do not see."""
    partitions: Partitions
    adaptations: Adaptations | None
    """The changes in data files; None: there are none."""


class VirtualFileNames:
    """The names of a table's files as of any snapshot up to that of its history."""

    def __init__(
        self,
        history: TableHistory,
        shown: ShownTable,
        snapshot_ids: SnapshotIds,
        location: str,
        chunk_files: int,
        clients: frozenset[str] | None,
        hidden: Hidden | None = None,
    ) -> None:
        """No query is sent yet.

        Args:
            location: of the table, below which its virtual files are.
            chunk_files: how many data files a manifest lists, on average.
            clients: are part of the names, because others get other files.
            hidden: the columns that the history does not have.
        """
        self._clients = clients
        self._hidden_ids = hidden.column_ids if hidden else ()
        self._shows_version_3 = shown.shows_version_3
        self._history = history
        self._adaptations = shown.adaptations
        self._schemas = shown.schemas
        self._partitions = shown.partitions
        self._snapshot_ids = snapshot_ids
        self._schema_prints = {
            schema.schema_id: fingerprint(schema.json()) for schema in shown.schemas.distinct()
        }
        self._chunk_files = chunk_files
        # The bytes also depend on the names of virtual files and the locations of data.
        table, format_version = history.table, shown.published.format_version
        self._origin = (
            GENERATOR,
            location,
            table_location(history.lake, history.schema, table),
            # Row ids and deletion vectors. Names of files of format version 2 do not have it.
            *((f"v{format_version}",) if format_version > 2 else ()),
            *(("vectors",) if shown.has_vectors else ()),
            *(("hidden", *hidden) if hidden else ()),
            *WRITER,
        )
        self._avro_origin = (*self._origin, COMPRESSOR)

    def document(self, document: TableMetadata) -> Name:
        """The metadata document, as of the table's own last snapshot."""
        return self._name("table", (self._changed_at,), _document_digest(document))

    def earlier(self, document: TableMetadata) -> list[Name]:
        """The documents in the metadata log of a document, from which they follow."""
        digest, changed_at = _document_digest(document), self._changed_at
        ids = (state.sequence_number for state in document.earlier)
        return [self._name("earlier", (id_, changed_at), digest) for id_ in ids]

    @property
    def _changed_at(self) -> int:
        return self._history.document_snapshots[-1].snapshot_id  # also one that is not listed

    def manifest_list(self, snapshot_id: int, state: State) -> Name:
        """The manifest list of a snapshot; its fingerprint is that of all that it depends on."""
        sums = [
            (kind, totals.changed_at, totals.hash, totals.past) for kind, totals in state.items()
        ]
        begin, schema = self._schemas.begin_at(snapshot_id)
        schema_print = (begin, self._schema_prints[schema.schema_id])
        specs = [spec.json() for spec in self._partitions.specs]
        ids = self._snapshot_ids.digests(snapshot_id)
        window = self._history.window(snapshot_id)
        # Inlined rows are listed in the table's current partition spec.
        rows = {manifest.name.fingerprint for manifest in self.rows_manifests(window)}
        adapted = self.adaptations_at(snapshot_id)
        digest = fingerprint(
            *(*self._avro_origin, self._chunk_files, sums, schema_print, specs, *ids, *rows),
            *(_window_values(window), *adapted),
        )
        return self._name("list", (snapshot_id,), digest)

    def expired_list(self, snapshot_id: int) -> Name:
        """The manifest list of a snapshot that has only a summary left."""
        spec_id = self._partitions.specs[0].spec_id
        digest = fingerprint(*self._avro_origin, snapshot_id, spec_id)
        return self._name("expired-list", (snapshot_id,), digest)

    def chunk_manifests(self, window: Window, sums: Iterable[ChunkSum]) -> list[Manifest]:
        """The manifests of data files and deletes: one for each chunk and partition spec.

        Some may prove to be empty.

        Args:
            window: of the snapshot.
            sums: of the chunks at the snapshot.
        """
        snapshot_id = window.snapshot_id
        chunks: dict[tuple[str, int, int], list[ChunkSum]] = defaultdict(list)
        for chunk in sums:
            kind = "data" if chunk.kind in {"data", "again"} else "delete"
            chunks[kind, chunk.first_id, chunk.last_id].append(chunk)
        manifests = []
        for (kind, *span), parts in sorted(chunks.items()):
            version = self._version(kind, snapshot_id, parts)
            # Clients take the record of a manifest from the first list that has it. So the list of
            # the snapshot that changed a chunk names a manifest of its own, with the changes, and
            # later lists one without them.
            is_own = version > window.base_id
            has_ended = is_own and any(part.version == version for part in parts)
            if not has_ended and not any(part.files for part in parts):
                continue
            # A chunk's last change may be older than the manifest's: a column's new type.
            rows: list[tuple[Any, ...]] = [
                (p.kind, p.hash, p.ended if is_own and p.version == version else 0) for p in parts
            ]
            schema = self._schema_prints[self._schemas.schema_at(version).schema_id]
            if kind == "data" and (late := late_columns(self._schemas, self._partitions, version)):
                rows.append((kind, late))
            rows += [(kind, digest) for digest in self._snapshot_ids.digests(version)]
            if adapted := self.adaptations_at(version):
                rows.append((kind, *adapted))
            # A spec disappears with its column, and its files are in the unpartitioned one then.
            rows.append((kind, self._partitions.fields_of({part.group for part in parts})))
            of_manifest = window if is_own else no_changes(version)
            files = sum(part.files for part in parts)
            for spec in self._partitions.specs_of(part.group for part in parts):
                digest = fingerprint(*self._avro_origin, kind, rows, schema, spec.json())
                numbers = (spec.spec_id, *span, of_manifest.base_id, version)
                word = "data" if kind == "data" else "deletes-manifest"
                name = self._name(word, numbers, digest)
                manifests.append(Manifest(spec, name, of_manifest, files))
        return manifests

    def manifest(self, name: Name) -> Manifest:
        """The manifest of a name that one of these methods gave."""
        return Manifest(self._partitions.specs[name.numbers[0]], name, self.window_of(name))

    def window_of(self, name: Name) -> Window:
        """The changes that the manifest of this name lists."""
        base_id, snapshot_id = name.numbers[-2:]
        has_changes = base_id < snapshot_id
        return self._history.window(snapshot_id) if has_changes else no_changes(snapshot_id)

    @cached_property
    def rows_files(self) -> RowsFiles:
        """The files of the inlined rows at each snapshot."""
        history = self._history
        return rows_files(history.events, history.layout_changes, history.table.begin_snapshot)

    def rows_manifests(self, window: Window) -> list[Manifest]:
        """The manifests of the inlined rows: one for each partition spec that they can have.

        There are none if there are no rows, and none ended in the window of the snapshot. One of
        them may prove to be empty.
        """
        changed_at = self.rows_files.changed_at(window.snapshot_id)
        if changed_at <= window.base_id:
            window = no_changes(changed_at)
        files, gone = self.rows_files.files_at(window.snapshot_id), self.gone_rows_files(window)
        if not files and not gone:
            return []
        snapshot_id = window.snapshot_id
        schema = self._schemas.schema_at(snapshot_id)
        specs = dict.fromkeys((UNPARTITIONED, self._partitions.rows_spec(schema.fields)))
        digest = fingerprint(
            *(*self._avro_origin, files, gone, self._schema_prints[schema.schema_id]),
            *([spec.json() for spec in specs], self._snapshot_ids.digests(snapshot_id)),
            *self.changes_at(snapshot_id).rows_changes,
        )
        window_numbers = (window.base_id, snapshot_id)
        names = {
            spec: self._name("rows-manifest", (spec.spec_id, *window_numbers), digest)
            for spec in specs
        }
        rows = sum(file.record_count for file in files)
        return [Manifest(spec, name, window, rows) for spec, name in names.items()]

    def gone_rows_files(self, window: Window) -> tuple[RowsFile, ...]:
        """The files of inlined rows that were listed before the window, and are not after it."""
        files = self.rows_files.files_at(window.snapshot_id)
        return tuple(f for f in self.rows_files.files_at(window.base_id) if f not in files)

    def rows(self, file: RowsFile, number: int) -> Name:
        """A file of inlined rows.

        Args:
            number: 0 without a partition, then one for each partition value.
        """
        schema = self._schemas.schema_at(file.written_at)
        digest = fingerprint(
            *(*self._origin, file.part, file.record_count, file.hash),
            self._schema_prints[schema.schema_id],
            self._partitions.rows_spec(schema.fields).json(),
            *self.changes_at(file.written_at).rows_changes,
        )
        return self._name("rows", (file.part, number, file.written_at), digest)

    def all_rows(self, manifest: Name, number: int) -> Name:
        """All inlined rows of a partition value; they are those that the manifest lists."""
        return self._name("rows", (ALL, number, manifest.snapshot_id), manifest.fingerprint)

    def adaptations_at(self, snapshot_id: int) -> tuple[Any, ...]:
        """The changes in data files at a snapshot; empty if the table has no adapted files."""
        return self._adaptations.fingerprint_parts(snapshot_id) if self._adaptations else ()

    def adapted_at(self, snapshot_id: int) -> str:
        """The changes in data files at a snapshot, in words; empty if there are none."""
        return self._adaptations.described_at(snapshot_id) if self._adaptations else ""

    def changes_at(self, snapshot_id: int) -> TableChanges:
        """The changes in all data files of DuckLake at a snapshot, besides added columns."""
        return self._adaptations.changes_at(snapshot_id) if self._adaptations else NOTHING

    def promoted_floats_at(self, snapshot_id: int) -> frozenset[int]:
        """As `Adaptations.promoted_floats_at`."""
        return (
            self._adaptations.promoted_floats_at(snapshot_id) if self._adaptations else frozenset()
        )

    @property
    def adapts_added(self) -> bool:
        """Whether files that somebody has added are changed for clients."""
        return self._adaptations is not None and self._adaptations.adapts_added

    @property
    def filled_in(self) -> frozenset[int]:
        """The columns that data files get if they lack them."""
        return self._adaptations.filled_in if self._adaptations else frozenset()

    @property
    def tells_since(self) -> bool:
        """As `Adaptations.tells_since`."""
        return self._adaptations is not None and self._adaptations.tells_since

    @property
    def last_adapted(self) -> float:
        """As `Adaptations.last_changed`."""
        return self._adaptations.last_changed if self._adaptations else NEVER

    def adaptation(self, file: DataFile, snapshot_id: int) -> Adaptation | None:
        """The changes in a data file for clients. Args: as `data_file`."""
        return self._adaptations.adaptation_at(file, snapshot_id) if self._adaptations else None

    def data_file(self, file: DataFile, snapshot_id: int) -> Name | None:
        """The name of a data file with another footer; None: clients get the file itself.

        Args:
            snapshot_id: as of which the file is read.
        """
        adaptation = self.adaptation(file, snapshot_id)
        if adaptation is None:
            return None
        added, changes, names = adaptation.added, adaptation.changes, adaptation.names
        ids = () if adaptation.shown_ids is None else ("shown", sorted(adaptation.shown_ids))
        sizes = file.file_size_bytes, file.footer_size or 0
        size = largest_size(*sizes, file.record_count, added, changes.logical_types, names)
        if size is None:
            return None
        columns = [
            (f.field_id, f.name, repr(f.type), f.initial_default, *([*of] if any(of) else ()))
            for f, *of in added
        ]
        in_path = adaptation.in_path, adaptation.has_plain_milliseconds
        of_added = () if names is None else (sorted(names.items()), *in_path)
        floats = (adaptation.doubles,) if adaptation.doubles else ()
        digest = fingerprint(
            *(*self._origin, self._data_location(file), *sizes, columns, *changes),
            *(*of_added, *floats, *ids),
        )
        return self._name(DATA_FILE, (size, file.data_file_id, adaptation.snapshot_id), digest)

    def deletes(
        self,
        kind: str,
        data_file: DataFile,
        changed_at: int,
        stored: Sequence[DeleteFile],
        inlined: Sequence[InlinedDelete],
        snapshot_id: int,
    ) -> Name:
        """The position deletes of a data file; the name depends on the rows that they come from.

        Args:
            kind: one of `DELETES`.
            changed_at: the snapshot at which they became what they are.
            snapshot_id: as of which the data file is read.
        """
        shown = self.data_file(data_file, snapshot_id)
        # They name the location of the data file. A name is of a snapshot that has the table.
        since = shown.snapshot_id if shown else 0
        changed_at = max(changed_at, since, self._history.table.begin_snapshot)
        numbers = (data_file.data_file_id, changed_at)
        # Not the file's end_snapshot, which is set later and must not change the name.
        partial = (data_file.partial_max, data_file.partial_file_info)
        parts = (
            self._data_location(data_file),
            partial,
            [repr(row) for row in (*stored, *inlined)],
            *([shown.fingerprint] if shown else ()),
        )
        return self._name(kind, numbers, fingerprint(*self._origin, *parts))

    def _version(self, kind: str, snapshot_id: int, parts: Iterable[ChunkSum]) -> int:
        """The snapshot of the last change to a manifest's content."""
        if any(part.kind in PARTIAL and part.files for part in parts if kind == "delete"):
            # Up to a partial file's last snapshot, each snapshot hides other rows of it.
            return snapshot_id
        retyped_at = self._schemas.retyped_at(snapshot_id) if kind == "data" else 0
        adapted_at = self._adaptations.changed_at(snapshot_id) if self._adaptations else 0
        return max([retyped_at, adapted_at, *(part.version for part in parts)])

    def _data_location(self, file: DataFile) -> str:
        history = self._history
        return file_location(history.lake, history.schema, history.table, file)

    def _name(self, kind: str, numbers: tuple[int, ...], digest: Any) -> Name:
        table_uuid = self._history.table.table_uuid
        own = self._shows_version_3, self._clients, self._hidden_ids
        return Name(table_uuid, kind, numbers, digest, *own)


_window_values = attrgetter(*(field.name for field in fields(Window)))
"""As `astuple`, which copies deeply: the name of each listed snapshot has them."""


def _document_digest(document: TableMetadata) -> str:
    """A fingerprint of a document and of those in its log, whose names have it."""
    digest = fingerprint_of_bytes(document.content)
    if not document.has_log:
        return digest
    return fingerprint(digest, document.log_states)
