"""What the virtual files of one table are called: pure, from the table's history alone."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from .ducklake.history import State, TableHistory, Totals
from .ducklake.paths import file_location, table_location
from .ducklake.rows import DataFile, DeleteFile, InlinedDelete
from .iceberg.partition import PartitionSpec
from .iceberg.table_metadata import TableMetadata
from .translate.fingerprints import fingerprint
from .translate.partitions import Partitions
from .translate.schemas import Schemas
from .virtual_names import GENERATOR, Name

MAX_ID = 10**18 - 1
"""The end of the last chunk of data files: ids to come belong to it."""


MANIFESTS: dict[str, tuple[str, tuple[int, ...], bool]] = {
    "data": ("data", (0, MAX_ID), True),
    "inlined": ("rows-manifest", (), False),
    "delete": ("deletes-manifest", (), True),
}
"""By kind: what its manifests are called, their numbers, and whether there is one per spec.
Inlined rows are unpartitioned."""


class Manifest(NamedTuple):
    kind: str
    """`data`, `inlined` or `delete`: the kind of a state that it shows."""
    spec: PartitionSpec
    name: Name


class TableNames:
    """The names of a table's files, as of any snapshot up to that of its history."""

    def __init__(
        self, history: TableHistory, schemas: Schemas, partitions: Partitions, location: str
    ) -> None:
        """`location`: the table's, below which virtual files are."""
        self._history = history
        self._schemas = schemas
        self._partitions = partitions
        self._schema_prints = {
            schema.schema_id: fingerprint(schema.json()) for schema in schemas.distinct()
        }
        # Whatever else decides the bytes: how virtual files are called, and where data is.
        table = history.table
        self._origin = (
            GENERATOR,
            location,
            table_location(history.lake, history.schema, table),
        )

    def document(self, document: TableMetadata) -> Name:
        """As of the table's own last snapshot, whatever happened in the lake since."""
        changed_at = self._history.snapshots[-1].snapshot_id
        return self._name("table", (changed_at,), fingerprint(document.json()))

    def manifest_list(self, snapshot_id: int, state: State) -> Name:
        """The manifest list of a snapshot, whose fingerprint is that of all it leads to."""
        parts = [manifest.name.fingerprint for manifest in self.manifests(snapshot_id, state)]
        return self._name("list", (snapshot_id,), fingerprint(*self._origin, *parts))

    def manifests(self, snapshot_id: int, state: State) -> list[Manifest]:
        """The manifests of a snapshot: one for each kind and spec; some may prove to be empty."""
        manifests = []
        for kind, (file_kind, span, is_by_spec) in MANIFESTS.items():
            version = self._version(kind, snapshot_id, state)
            if version is None:
                continue
            at, *parts = version
            for spec in self._partitions.specs_at(at)[: None if is_by_spec else 1]:
                digest = fingerprint(*self._origin, kind, *parts, spec.json())
                spec_id = (spec.spec_id,) if is_by_spec else ()
                name = self._name(file_kind, (*spec_id, *span, at), digest)
                manifests.append(Manifest(kind, spec, name))
        return manifests

    def manifest(self, name: Name, state: State) -> Manifest | None:
        """The manifest of this name, if it is one of the snapshot that the name ends in."""
        manifests = self.manifests(name.snapshot_id, state)
        return next((manifest for manifest in manifests if manifest.name == name), None)

    def rows(self, manifest: Name, part: int) -> Name:
        """A file of inlined rows to which a manifest leads: of the same rows, so it shares the
        fingerprint."""
        return self._name("rows", (part, *manifest.numbers), manifest.fingerprint)

    def deletes(
        self,
        data_file: DataFile,
        changed_at: int,
        stored: Sequence[DeleteFile],
        inlined: Sequence[InlinedDelete],
    ) -> Name:
        """The position deletes of a data file, by what they come from."""
        numbers = (data_file.data_file_id, changed_at)
        # Not the file's end, which comes later and must not change the name.
        of_file = (data_file.partial_max, data_file.partial_file_info)
        parts = (self._location_of(data_file), of_file, [repr(row) for row in (*stored, *inlined)])
        return self._name("deletes", numbers, fingerprint(*self._origin, *parts))

    def _version(self, kind: str, snapshot_id: int, state: State) -> tuple[int, Any, Any] | None:
        """The last change of a kind, and what its bytes hang on; None where it has none.

        A change of the schema counts: bounds are written in the type that the schema shows.
        """
        schema_begin, schema = self._schemas.begin_at(snapshot_id)
        totals = state[kind]
        partial = state["partial"] if kind == "delete" else Totals()
        removed_now = kind == "data" and totals.changed_at == snapshot_id and totals.removed
        if not (totals.files or partial.files or removed_now):
            return None
        # Until a partial file's last snapshot, each snapshot hides other rows of it.
        last_change = max(totals.changed_at, partial.changed_at, schema_begin)
        at = snapshot_id if partial.files else last_change
        removed = totals.removed if totals.changed_at == at else None
        hashes = (totals.hash, partial.hash, removed.hash if removed else 0)
        return at, hashes, self._schema_prints[schema.schema_id]

    def _location_of(self, file: DataFile) -> str:
        history = self._history
        return file_location(history.lake, history.schema, history.table, file)

    def _name(self, kind: str, numbers: tuple[int, ...], digest: str) -> Name:
        return Name(self._history.table.table_uuid, kind, numbers, digest)
