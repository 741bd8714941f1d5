"""The manifests of one table: their entries are read from the catalog, and written as Avro."""

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.rows.files import DataFile, FileGroup
from ..iceberg.avro.manifests import manifest_bytes
from ..iceberg.manifest import UNPARTITIONED, ManifestContent, ManifestEntry, PartitionSpec
from ..iceberg.manifest import DataFile as DataFileEntry
from ..mapping.inlined_rows import RowsFile
from ..mapping.manifests import delete_entry, rows_entry
from ..mapping.partitions import Constant
from .contexts import TableContext
from .deletes import Deletes, deletes_at
from .inlined_rows import InlinedRows
from .manifest_lists import Summary
from .names import Manifest, Name

PartitionTuples = dict[DataFile, tuple[PartitionSpec, tuple[Any, ...]]]
"""The partition spec and the partition values of data files."""


@dataclass(frozen=True, slots=True)
class TableManifests:
    """Builds the manifests of one table."""

    con: Connection
    table: TableContext
    rows: InlinedRows
    location: Callable[[Name], str]
    """Gives the location of a virtual file."""
    summaries: Callable[[Iterable[Name], Callable[[Name], bytes] | None], list[Summary]]
    """Gives the summaries of files to which manifests refer, in order; see SummarizedFiles."""
    deletes_body: Callable[[Deletes], bytes]
    """Gives the bytes of a delete file."""
    check_added_file: Callable[[DataFile], None]
    """Raises Refused for a file that clients would read differently."""

    def bodies(self, manifests: Iterable[Manifest]) -> Generator[tuple[Name, bytes], None, None]:
        """The name and the bytes of each manifest, in any order.

        Nothing else may use the connection until the generator ends or is closed.

        Raises:
            Refused: a manifest cannot be built exactly.
        """
        manifests = list(manifests)
        data = [manifest for manifest in manifests if manifest.kind == "data"]
        if data:
            from .data_manifests import data_manifests  # imports numpy

            yield from data_manifests(self.con, self.table, data, self.check_added_file)
        for manifest in manifests:
            if manifest.kind == "data":
                continue
            entries = ENTRIES[manifest.kind](self, manifest)
            is_delete = manifest.kind == "delete"
            content = ManifestContent.DELETES if is_delete else ManifestContent.DATA
            snapshot_id = manifest.name.snapshot_id
            schema = self.table.schemas.at(snapshot_id)
            body = manifest_bytes(
                entries,
                content,
                schema,
                manifest.spec,
                sequence_number=snapshot_id,
                snapshot_id=self.table.snapshot_ids.of(snapshot_id),
                format_version=self.table.format_version,
            )
            yield manifest.name, body

    def rows_files(self, manifest: Manifest) -> list[DataFileEntry]:
        """The files of inlined rows that a manifest lists as live; missing ones are built."""
        files = self.table.names.rows_files.at(manifest.name.snapshot_id)
        return [entry.data_file for entry in self._rows_file_entries(manifest, files)]

    # The entries of each kind of manifest

    def _rows_entries(self, manifest: Manifest) -> list[ManifestEntry]:
        names = self.table.names
        files = names.rows_files.at(manifest.name.snapshot_id)
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
        summaries = self.summaries((name for name, _, _ in files), None)
        return [
            rows_entry(
                self.location(name),
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
        fields = self.table.schemas.at(file.written_at).fields
        if not self.table.partitions.rows_spec(fields).fields:
            if spec == UNPARTITIONED:
                yield 0, (), file  # without a query for the rows
            return
        for number, group in self.rows.groups(file.part, file.written_at).items():
            if (group.partition is None) == (spec == UNPARTITIONED):
                part = file._replace(record_count=group.record_count)
                yield number, group.partition or (), part

    def _delete_entries(self, manifest: Manifest) -> list[ManifestEntry]:
        _, first, last, _, snapshot_id = manifest.name.numbers
        base_id = manifest.window.base_id
        live = self._deletes_at(snapshot_id, (first, last))
        before = self._deletes_at(base_id, (first, last)) if base_id < snapshot_id else {}
        replaced = {name: deletes for name, deletes in before.items() if name not in live}
        return [
            *self._delete_file_entries(live, manifest),
            *self._delete_file_entries(replaced, manifest, is_gone=True),
        ]

    def _deletes_at(self, snapshot_id: int, span: tuple[int, int]) -> dict[Name, Deletes]:
        file_deletes = deletes_at(self.con, self.table.history, snapshot_id, span)
        return {self.table.deletes_name(deletes): deletes for deletes in file_deletes}

    def _delete_file_entries(
        self, by_name: dict[Name, Deletes], manifest: Manifest, *, is_gone: bool = False
    ) -> list[ManifestEntry]:
        """The entries of delete files whose data files have the partition spec of the manifest."""
        _, *span, _, _ = manifest.name.numbers
        tuples = self._tuples([d.data_file for d in by_name.values()], span)
        names = [name for name, d in by_name.items() if tuples[d.data_file][0] == manifest.spec]
        # Not by their names: that would read the rows again, for each delete file.
        summaries = self.summaries(names, lambda name: self.deletes_body(by_name[name]))
        return [
            delete_entry(
                self.location(name),
                self.table.location_of(by_name[name].data_file),
                tuples[by_name[name].data_file][1],
                summary["record_count"],
                summary["file_size_in_bytes"],
                by_name[name].changed_at,
                manifest.window,
                self.table.snapshot_ids,
                is_gone=is_gone,
            )
            for name, summary in zip(names, summaries, strict=True)
        ]

    def _tuples(self, files: Sequence[DataFile], span: Sequence[int]) -> PartitionTuples:
        """The partition spec and values of each file."""
        if not files:
            return {}
        partitions, history = self.table.partitions, self.table.history
        table_id = history.table.table_id
        is_partitioned = any(spec.fields for spec in partitions.specs)
        texts = queries.partition_values(table_id, *span).run(self.con) if is_partitioned else {}
        constants: dict[int, dict[int, Constant]] = defaultdict(dict)
        column_ids = partitions.constant_ids
        if any(None in values.values() for values in texts.values()):
            column_ids |= partitions.time_ids
        if column_ids:
            for row in queries.column_stats(history.lake, table_id, *span).run(self.con):
                if row.column_id in column_ids:
                    constant = Constant(row.value_count, row.min_value, row.max_value)
                    constants[row.data_file_id][row.column_id] = constant
        return {
            file: partitions.spec_and_values(
                FileGroup(file.partition_id, file.mapping_id),
                texts.get(file.data_file_id, {}),
                constants[file.data_file_id],
            )
            for file in files
        }


ENTRIES = {
    "inlined": TableManifests._rows_entries,
    "delete": TableManifests._delete_entries,
}
"""The method that reads the entries, by the kind of a manifest."""
