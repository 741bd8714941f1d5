"""The virtual files of one table at one snapshot: which there are, and how each is made.

Everything is read from one connection, within the transaction of whoever asks. Files refer to each
other from the top: table metadata -> manifest lists -> manifests -> rows and delete files; they are
made from the bottom, for a name needs the length of what it names.
"""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from pg8000.native import Connection

from .config import Config
from .ducklake import queries
from .ducklake.history import State, TableHistory, Totals, state_at, unservable
from .ducklake.partial_files import rows_until
from .ducklake.paths import file_location, table_location
from .ducklake.rows import DataFile, DeleteFile, InlinedDelete
from .errors import NoSuchKey
from .iceberg.avro import manifest_bytes, manifest_file, manifest_list_bytes
from .iceberg.delete_copy import delete_copy
from .iceberg.deletion_vector import deletion_vector_positions
from .iceberg.manifest import ManifestContent, ManifestEntry
from .iceberg.parquet import later_rows, position_deletes_bytes, positions, rows_bytes
from .iceberg.table_metadata import TableMetadata
from .translate.fingerprints import fingerprint
from .translate.inlined import inlined_columns, inlined_rows
from .translate.manifests import data_entries, delete_entry, rows_entry
from .translate.schemas import schemas
from .translate.tables import check_table, metadata
from .virtual_names import GENERATOR, Name

MAX_ID = 10**18 - 1
"""The end of the last chunk of data files: ids to come belong to it."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What files are made with besides the catalog."""

    config: Config
    location: Callable[[str], str]
    """Where clients find a virtual file, by its key."""
    make: Callable[[str, Callable[[], bytes]], bytes]
    """The bytes of a key: the kept ones, or those that the function makes, kept from now on."""
    read_object: Callable[[str], bytes]
    """A real file by its location."""
    read_range: Callable[[str, int, int], bytes]
    """The bytes of a real file from one position up to, not including, another."""


@dataclass(frozen=True, slots=True)
class Deletes:
    """All that hides rows of one data file at a snapshot."""

    snapshot_id: int
    data_file: DataFile
    stored: list[DeleteFile]
    inlined: list[InlinedDelete]

    @property
    def holds_later_rows(self) -> bool:
        """Whether the data file holds rows that came after the snapshot."""
        return (self.data_file.partial_max or 0) > self.snapshot_id

    @property
    def is_one_file(self) -> bool:
        """Whether one delete file says it all."""
        whole = [file for file in self.stored if (file.partial_max or 0) <= self.snapshot_id]
        alone = len(self.stored) == 1 and not self.inlined
        return bool(whole) and alone and not self.holds_later_rows

    @property
    def changed_at(self) -> int:
        """The newest snapshot, up to their own, at which they became what they are."""
        stored = [max(file.begin_snapshot, file.partial_max or 0) for file in self.stored]
        inlined = [row.begin_snapshot for row in self.inlined]
        own = [self.data_file.partial_max or 0]
        return min(self.snapshot_id, max(stored + inlined + own))


class TableFiles:
    """The files that show a table as of `history.snapshot_id` and before."""

    def __init__(self, con: Connection, history: TableHistory, around: Surroundings) -> None:
        table = history.table
        self._con = con
        self._history = history
        self._around = around
        self._schemas = schemas(
            history.columns,
            table.begin_snapshot,
            history.snapshot_id,
            around.config.hidden_types,
        )
        self._location = around.location(f"{around.config.virtual_prefix}/{table.table_uuid}")
        # Whatever else decides the bytes: how virtual files are called, and where data is.
        self._origin = (
            GENERATOR,
            self._location,
            table_location(history.lake, history.schema, table),
        )

    def metadata(self) -> TableMetadata:
        """The table metadata.

        Raises:
            Refused: the table cannot be served exactly.
        """
        check_table(self._history, self._schemas)
        return metadata(
            self._history,
            self._schemas,
            self._location,
            manifest_list=lambda *of: self._location_of(self.manifest_list(*of)),
            snapshot_limit=self._around.config.snapshot_limit,
            now_ms=int(time.time() * 1000),
        )

    def keep(self, document: TableMetadata) -> None:
        """See to it that all files the document leads to are kept, itself the last."""
        for snapshot in document.snapshots:
            state = state_at(self._history.events, snapshot.snapshot_id)
            self._make(self.manifest_list(snapshot.snapshot_id, state))
        self._make(self.document_name(document))

    def metadata_location(self, document: TableMetadata) -> str:
        """Where clients find the document as a file."""
        return self._location_of(self.document_name(document))

    def _make(self, name: Name) -> bytes:
        return self._around.make(self._key(name), partial(self.build, name))

    def _key(self, name: Name) -> str:
        return name.key(self._around.config.virtual_prefix)

    def _location_of(self, name: Name) -> str:
        return self._around.location(self._key(name))

    # Names

    def document_name(self, document: TableMetadata) -> Name:
        """As of the table's own last snapshot, whatever happened in the lake since."""
        changed_at = self._history.snapshots[-1].snapshot_id
        return self._name("table", (changed_at,), fingerprint(document.json()))

    def manifest_list(self, snapshot_id: int, state: State) -> Name:
        """The manifest list of a snapshot, whose fingerprint is that of all it leads to."""
        parts = [name.fingerprint for name in self._manifests(snapshot_id, state).values()]
        return self._name("list", (snapshot_id,), fingerprint(*self._origin, *parts))

    def _manifests(self, snapshot_id: int, state: State) -> dict[str, Name]:
        """The manifests of a snapshot by kind; each is named after the last change of its kind.

        A change of the schema counts: bounds are written in the type that the schema shows.
        """
        names = {}
        schema_begin, schema = self._schemas.begin_at(snapshot_id)
        for kind, manifest, span in (
            ("data", "data", (0, MAX_ID)),
            ("inlined", "rows-manifest", ()),
            ("delete", "deletes-manifest", ()),
        ):
            totals = state[kind]
            removed_now = totals.removed if totals.changed_at == snapshot_id else None
            partial = state["partial"] if kind == "delete" else Totals()
            if not totals.files and not partial.files and not (kind == "data" and removed_now):
                continue
            version = max(totals.changed_at, partial.changed_at, schema_begin)
            if partial.files:
                version = snapshot_id
            removed = totals.removed if totals.changed_at == version else None
            parts = (totals.hash, partial.hash, removed.hash if removed else 0, schema.json())
            numbers = (*span, version)
            names[kind] = self._name(manifest, numbers, fingerprint(*self._origin, kind, *parts))
        return names

    def _deletes_name(self, deletes: Deletes) -> Name:
        numbers = (deletes.data_file.data_file_id, deletes.changed_at)
        file = deletes.data_file  # whose end comes later and must not change the name
        of_file = (self._data_location(file), file.partial_max, file.partial_file_info)
        rows = [repr(row) for row in (*deletes.stored, *deletes.inlined)]
        return self._name("deletes", numbers, fingerprint(*self._origin, of_file, rows))

    def _name(self, kind: str, numbers: tuple[int, ...], fingerprint: str) -> Name:
        return Name(self._history.table.table_uuid, kind, numbers, fingerprint)

    def _data_location(self, file: DataFile | DeleteFile) -> str:
        history = self._history
        return file_location(history.lake, history.schema, history.table, file)

    # Bytes

    def build(self, name: Name) -> bytes:
        """Make the file of this name.

        Raises:
            NoSuchKey: today's rows give no file of this name: history was rewritten since.
        """
        body = BUILDERS[name.kind](self, name)
        if body is None:
            raise NoSuchKey("DuckLake has rewritten this part of the table's history")
        return body

    def _document(self, name: Name) -> bytes | None:
        document = self.metadata()
        if name != self.document_name(document):
            return None
        return json.dumps(document.json(), ensure_ascii=False, separators=(",", ":")).encode()

    def _list(self, name: Name) -> bytes | None:
        snapshot_id = name.snapshot_id
        listed = {snapshot.snapshot_id for snapshot in self._history.snapshots}
        state = state_at(self._history.events, snapshot_id)
        if (
            snapshot_id not in listed
            or unservable(self._history.odd_files, snapshot_id)
            or name != self.manifest_list(snapshot_id, state)
        ):
            return None
        manifests = []
        for manifest in self._manifests(snapshot_id, state).values():
            manifests.append(manifest_file(self._location_of(manifest), self._make(manifest)))
        return manifest_list_bytes(manifests, snapshot_id)

    def _manifest(self, name: Name, kind: str) -> bytes | None:
        state = state_at(self._history.events, name.snapshot_id)
        if name != self._manifests(name.snapshot_id, state).get(kind):
            return None
        content = ManifestContent.DELETES if kind == "delete" else ManifestContent.DATA
        entries = ENTRIES[kind](self, name, state[kind])
        schema = self._schemas.at(name.snapshot_id)
        return manifest_bytes(entries, content, schema, name.snapshot_id)

    def _data_entries(self, name: Name, totals: Totals) -> list[ManifestEntry]:
        first_id, last_id, snapshot_id = name.numbers
        lake, table_id = self._history.lake, self._history.table.table_id
        return data_entries(
            queries.data_files_at(self._con, lake, table_id, snapshot_id, first_id, last_id),
            queries.column_stats(self._con, lake, table_id, first_id, last_id),
            self._schemas,
            self._data_location,
            snapshot_id,
        )

    def _rows_entries(self, name: Name, totals: Totals) -> list[ManifestEntry]:
        rows = self._name("rows", name.numbers, name.fingerprint)
        size = len(self._make(rows))
        location = self._location_of(rows)
        return [rows_entry(location, totals.rows, size, totals.changed_at, name.snapshot_id)]

    def _delete_entries(self, name: Name, totals: Totals) -> list[ManifestEntry]:
        entries = []
        for deletes in self._deletes(name.snapshot_id):
            file = self._deletes_name(deletes)
            body = self._around.make(self._key(file), partial(self._deletes_bytes, deletes))
            entries.append(
                delete_entry(
                    self._location_of(file),
                    self._data_location(deletes.data_file),
                    len(positions(body)),
                    len(body),
                    deletes.changed_at,
                    name.snapshot_id,
                )
            )
        return entries

    def _rows(self, name: Name) -> bytes | None:
        """Inlined rows; the name shares its fingerprint with the manifest that leads to it."""
        snapshot_id = name.snapshot_id
        manifest = self._manifests(snapshot_id, state_at(self._history.events, snapshot_id))
        if "inlined" not in manifest or manifest["inlined"].fingerprint != name.fingerprint:
            return None
        fields = self._schemas.at(snapshot_id).fields
        columns = self._history.columns
        parts = []
        for table in self._history.inlined.tables:
            names = inlined_columns(table, columns, fields)
            rows = queries.inlined_rows_at(self._con, table, names, snapshot_id)
            if rows:
                parts.append(inlined_rows(table, columns, fields, rows))
        return rows_bytes(parts, fields)

    def _deletes_file(self, name: Name) -> bytes | None:
        data_file_id, snapshot_id = name.numbers
        for deletes in self._deletes(snapshot_id, data_file_id):
            if name == self._deletes_name(deletes):
                return self._deletes_bytes(deletes)
        return None

    def _deletes_bytes(self, deletes: Deletes) -> bytes:
        data_location = self._data_location(deletes.data_file)
        snapshot_id = deletes.snapshot_id
        stored = [self._around.read_object(self._data_location(f)) for f in deletes.stored]
        if deletes.is_one_file:
            copy = delete_copy(stored[0], data_location)
            if copy is not None:
                return copy
        # Several delete files on one data file occur; Iceberg's readers get their union.
        deleted = {row.position for row in deletes.inlined}
        for file, body in zip(deletes.stored, stored, strict=True):
            is_partial = (file.partial_max or 0) > snapshot_id
            deleted.update(POSITIONS[file.format](body, snapshot_id if is_partial else None))
        if deletes.holds_later_rows:
            deleted.update(self._later_rows(deletes.data_file, snapshot_id))
        return position_deletes_bytes(data_location, sorted(deleted))

    def _later_rows(self, data_file: DataFile, snapshot_id: int) -> Iterable[int]:
        """The positions of rows of a merged or flushed file that came after the snapshot."""
        if data_file.partial_file_info:
            return range(rows_until(data_file, snapshot_id), data_file.record_count)
        read = partial(self._around.read_range, self._data_location(data_file))
        return later_rows(read, data_file.file_size_bytes, snapshot_id)

    # Rows

    def _deletes(self, snapshot_id: int, data_file_id: int | None = None) -> list[Deletes]:
        """Deletes as of a snapshot by data file: of one, or of all that have any."""
        history = self._history
        lake, table_id = history.lake, history.table.table_id
        stored: dict[int, list[DeleteFile]] = defaultdict(list)
        for file in queries.delete_files_at(self._con, lake, table_id, snapshot_id, data_file_id):
            stored[file.data_file_id].append(file)
        inlined: dict[int, list[InlinedDelete]] = defaultdict(list)
        for row in queries.inlined_deletes_at(
            self._con, history.inlined, table_id, snapshot_id, data_file_id
        ):
            inlined[row.data_file_id].append(row)
        ids = (0, MAX_ID) if data_file_id is None else (data_file_id, data_file_id)
        candidates = [
            Deletes(snapshot_id, file, stored[file.data_file_id], inlined[file.data_file_id])
            for file in queries.data_files_at(self._con, lake, table_id, snapshot_id, *ids)
            if file.end_snapshot is None or file.end_snapshot > snapshot_id
        ]
        return [d for d in candidates if d.stored or d.inlined or d.holds_later_rows]


POSITIONS = {"parquet": positions, "puffin": deletion_vector_positions}
"""What reads the positions out of a delete file, by its format."""

BUILDERS: dict[str, Callable[[TableFiles, Name], bytes | None]] = {
    "table": TableFiles._document,
    "list": TableFiles._list,
    "data": lambda files, name: files._manifest(name, "data"),
    "rows-manifest": lambda files, name: files._manifest(name, "inlined"),
    "deletes-manifest": lambda files, name: files._manifest(name, "delete"),
    "rows": TableFiles._rows,
    "deletes": TableFiles._deletes_file,
}

ENTRIES = {
    "data": TableFiles._data_entries,
    "inlined": TableFiles._rows_entries,
    "delete": TableFiles._delete_entries,
}
