"""The virtual files of one table: which there are, and how each is made.

Everything is read from one connection, within the transaction of whoever asks. Files refer to each
other from the top: table metadata -> manifest lists -> manifests -> rows and delete files; they are
made from the bottom, for a name needs the length of what it names.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from pg8000.native import Connection

from .added_files import AddedFiles
from .config import Config
from .ducklake import queries
from .ducklake.history import TableHistory, Totals, state_at, unservable
from .ducklake.paths import file_location
from .ducklake.rows import ColumnStats, DataFile
from .errors import NoSuchKey
from .iceberg.avro import manifest_bytes, manifest_file, manifest_list_bytes
from .iceberg.manifest import ManifestContent, ManifestEntry
from .iceberg.parquet import positions, rows_bytes
from .iceberg.partition import PartitionSpec
from .iceberg.table_metadata import TableMetadata
from .table_deletes import Deletes, RealFiles, deletes_at, deletes_bytes
from .table_names import MAX_ID, Manifest, TableNames
from .translate.inlined import inlined_columns, inlined_rows
from .translate.manifests import by_file, data_entries, delete_entry, rows_entry
from .translate.mappings import mappings
from .translate.partitions import partitions
from .translate.schemas import schemas
from .translate.tables import check_table, metadata
from .virtual_names import Name


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What files are made with besides the catalog."""

    config: Config
    location: Callable[[str], str]
    """Where clients find a virtual file, by its key."""
    make: Callable[[str, Callable[[], bytes]], bytes]
    """The bytes of a key: the kept ones, or those that the function makes, kept from now on."""
    real_files: RealFiles


class TableFiles:
    """The files that show a table as of `history.snapshot_id` and before."""

    def __init__(self, con: Connection, history: TableHistory, around: Surroundings) -> None:
        table = history.table
        self._con = con
        self._history = history
        self._around = around
        self._prefix = f"{around.config.virtual_prefix}/{table.table_uuid}"
        self._location = around.location(self._prefix)
        self._schemas = schemas(
            history.columns,
            table.begin_snapshot,
            history.snapshot_id,
            around.config.hidden_types,
            has_added_files=bool(history.mapped_names),
        )
        self._partitions = partitions(history.partitioning, self._schemas, history.snapshot_id)
        lists = {column.column_id for column in history.columns if column.column_type == "list"}
        self._mappings = mappings(history.mapped_names, lists)
        self._added_files = AddedFiles(
            history, self._mappings, self._prefix, around.make, around.real_files
        )
        self._names = TableNames(history, self._schemas, self._partitions, self._location)

    @cached_property
    def history(self) -> TableHistory:
        """The table's history, with all its gaps."""
        gaps = [*self._history.gaps, *self._partitions.gaps, *self._added_files.gaps(self._con)]
        if self._around.config.inexact_columns == "refuse":
            gaps += self._schemas.gaps
        return replace(self._history, gaps=gaps)

    def metadata(self) -> TableMetadata:
        """The table metadata.

        Raises:
            Refused: the table cannot be served exactly.
        """
        check_table(self.history, self._schemas, self._mappings)
        return metadata(
            self.history,
            self._schemas,
            self._partitions,
            self._mappings,
            self._location,
            manifest_list=lambda *of: self._location_of(self._names.manifest_list(*of)),
            snapshot_limit=self._around.config.snapshot_limit,
            now_ms=int(time.time() * 1000),
        )

    def metadata_location(self, document: TableMetadata) -> str:
        """Where clients find the document as a file."""
        return self._location_of(self._names.document(document))

    def keep(self, document: TableMetadata) -> None:
        """See to it that all files the document leads to are kept, itself the last."""
        for snapshot in document.snapshots:
            state = state_at(self._history.events, snapshot.snapshot_id)
            self._make(self._names.manifest_list(snapshot.snapshot_id, state))
        self._make(self._names.document(document))

    def build(self, name: Name) -> bytes:
        """Make the file of this name.

        Raises:
            NoSuchKey: today's rows give no file of this name: history was rewritten since.
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
        return json.dumps(document.json(), ensure_ascii=False, separators=(",", ":")).encode()

    def _list(self, name: Name) -> bytes | None:
        snapshot_id = name.snapshot_id
        listed = {snapshot.snapshot_id for snapshot in self._history.snapshots}
        state = state_at(self._history.events, snapshot_id)
        if (
            snapshot_id not in listed
            or unservable(self.history.gaps, snapshot_id)
            or name != self._names.manifest_list(snapshot_id, state)
        ):
            return None
        manifests = [
            manifest_file(self._location_of(manifest.name), self._make(manifest.name))
            for manifest in self._names.manifests(snapshot_id, state)
        ]
        return manifest_list_bytes([m for m in manifests if m.has_entries], snapshot_id)

    def _manifest(self, name: Name) -> bytes | None:
        state = state_at(self._history.events, name.snapshot_id)
        manifest = self._names.manifest(name, state)
        if manifest is None:
            return None
        entries = ENTRIES[manifest.kind](self, manifest, state[manifest.kind])
        is_delete = manifest.kind == "delete"
        content = ManifestContent.DELETES if is_delete else ManifestContent.DATA
        schema = self._schemas.at(name.snapshot_id)
        return manifest_bytes(entries, content, schema, manifest.spec, name.snapshot_id)

    def _rows(self, name: Name) -> bytes | None:
        """The inlined rows."""
        state = state_at(self._history.events, name.snapshot_id)
        manifests = self._names.manifests(name.snapshot_id, state)
        part, snapshot_id = name.numbers
        named = [self._names.rows(m.name, part) for m in manifests if m.kind == "inlined"]
        if name not in named or part not in SINCE:
            return None
        since, until = SINCE[part](snapshot_id)
        fields = self._schemas.at(name.snapshot_id).fields
        columns = self._history.columns
        parts = []
        for table in self._history.inlined.tables:
            names = inlined_columns(table, columns, fields)
            rows = queries.inlined_rows_at(self._con, table, names, snapshot_id, since, until)
            if rows:
                parts.append(inlined_rows(table, columns, fields, rows))
        return rows_bytes(parts, fields) if parts else None

    def _deletes(self, name: Name) -> bytes | None:
        data_file_id, snapshot_id = name.numbers
        for deletes in self._deletes_at(snapshot_id, (data_file_id, data_file_id)):
            if name == self._deletes_name(deletes):
                return deletes_bytes(deletes, self._history, self._around.real_files)
        return None

    # The entries of each kind of manifest

    def _data_entries(self, manifest: Manifest, totals: Totals) -> list[ManifestEntry]:
        _, *span, snapshot_id = manifest.name.numbers
        lake, table_id = self._history.lake, self._history.table.table_id
        stats = queries.column_stats(self._con, lake, table_id, *span)
        tuples = self._tuples(
            queries.data_files_at(self._con, lake, table_id, snapshot_id, *span), stats, span
        )
        files = [file for file, (spec, _) in tuples if spec == manifest.spec]
        for file in files:
            self._added_files.check(file)
        values = {file.data_file_id: values for file, (_, values) in tuples}
        return data_entries(
            files,
            stats,
            self._schemas,
            self._data_location,
            lambda file: values[file.data_file_id],
            snapshot_id,
        )

    def _rows_entries(self, manifest: Manifest, totals: Totals) -> list[ManifestEntry]:
        snapshot_id = manifest.name.snapshot_id
        is_change = totals.changed_at == snapshot_id and totals.added is not None
        added = totals.added.rows if is_change and totals.added else 0
        counts = {OLDER: totals.rows - added, NEW: added}
        # When the older ones came is not one snapshot; the table's own is before them all.
        begins = {OLDER: self._history.table.begin_snapshot, NEW: snapshot_id}
        entries = []
        for part, count in counts.items():
            if count:
                rows = self._names.rows(manifest.name, part)
                size, at = len(self._make(rows)), self._location_of(rows)
                entries.append(rows_entry(at, count, size, begins[part], snapshot_id))
        return entries

    def _delete_entries(self, manifest: Manifest, totals: Totals) -> list[ManifestEntry]:
        snapshot_id = manifest.name.snapshot_id
        every = (0, MAX_ID)
        found = {d.data_file.data_file_id: d for d in self._deletes_at(snapshot_id, every)}
        lake, table_id = self._history.lake, self._history.table.table_id
        stats = queries.column_stats(self._con, lake, table_id, *every)
        tuples = self._tuples([d.data_file for d in found.values()], stats, every)
        entries = []
        for data_file, (spec, values) in tuples:
            if spec != manifest.spec:
                continue
            deletes = found[data_file.data_file_id]
            name = self._deletes_name(deletes)
            body = self._make(name)
            entries.append(
                delete_entry(
                    self._location_of(name),
                    self._data_location(data_file),
                    values,
                    len(positions(body)),
                    len(body),
                    deletes.changed_at,
                    snapshot_id,
                )
            )
        return entries

    # What these are made of

    def _tuples(
        self, files: list[DataFile], stats: list[ColumnStats], span: Any
    ) -> list[tuple[DataFile, tuple[PartitionSpec, tuple[Any, ...]]]]:
        """Each file with its partition spec and values."""
        table_id = self._history.table.table_id
        texts = queries.partition_values(self._con, table_id, *span)
        stats_of = by_file(stats)
        return [
            (
                file,
                self._partitions.spec_and_values(
                    file, texts.get(file.data_file_id, {}), stats_of.get(file.data_file_id, [])
                ),
            )
            for file in files
        ]

    def _deletes_at(self, snapshot_id: int, data_file_ids: tuple[int, int]) -> list[Deletes]:
        return deletes_at(self._con, self._history, snapshot_id, data_file_ids)

    def _deletes_name(self, deletes: Deletes) -> Name:
        rows = (deletes.stored, deletes.inlined)
        return self._names.deletes(deletes.data_file, deletes.changed_at, *rows)

    def _data_location(self, file: DataFile) -> str:
        history = self._history
        return file_location(history.lake, history.schema, history.table, file)

    def _make(self, name: Name) -> bytes:
        return self._around.make(self._key(name), partial(self.build, name))

    def _key(self, name: Name) -> str:
        return name.key(self._around.config.virtual_prefix)

    def _location_of(self, name: Name) -> str:
        return self._around.location(self._key(name))


OLDER, NEW = 0, 1
"""The two files of inlined rows that a manifest can lead to: what its snapshot added, and the rest.
They are apart so that whoever reads only what a snapshot added gets just that."""

SINCE: dict[int, Callable[[int], tuple[int, int]]] = {
    OLDER: lambda snapshot_id: (0, snapshot_id),
    NEW: lambda snapshot_id: (snapshot_id, MAX_ID),
}
"""By part: the snapshots, from and up to but not including, at which its rows began."""

BUILDERS: dict[str, Callable[[TableFiles, Name], bytes | None]] = {
    "table": TableFiles._document,
    "list": TableFiles._list,
    "data": TableFiles._manifest,
    "rows-manifest": TableFiles._manifest,
    "deletes-manifest": TableFiles._manifest,
    "rows": TableFiles._rows,
    "deletes": TableFiles._deletes,
}

ENTRIES = {
    "data": TableFiles._data_entries,
    "inlined": TableFiles._rows_entries,
    "delete": TableFiles._delete_entries,
}
