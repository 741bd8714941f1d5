"""Generated files that a plan names before they are built: their names hold their sizes.

Such a file is built when it is first read, and filled up to the size in its name.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pg8000.native import Connection

from ..ducklake import queries
from ..ducklake.history import state_at
from ..ducklake.rows.files import Condition
from ..ducklake.rows.objects import no_changes
from ..iceberg.manifest import DataFile, FileContent
from ..iceberg.parquet.padding import deletes_size, padded, rows_size
from ..iceberg.types import Field
from ..mapping.inlined_rows import ALL
from ..mapping.scan_tasks import may_hold
from ..runtime.errors import Refused
from .contexts import TableContext
from .deletes import Deletes
from .inlined_rows import InlinedRows
from .names import Name

PADDED = "padded-"


class Sized(NamedTuple):
    """The content of a file of inlined rows."""

    partition: tuple[Any, ...] | None
    record_count: int
    text_bytes: int


@dataclass(frozen=True, slots=True)
class PaddedFiles:
    """Names the files of one table; implements `GeneratedFiles`."""

    con: Connection
    table: TableContext
    inlined: InlinedRows
    location: Callable[[Name], str]

    @property
    def uses_manifest_names(self) -> bool:
        """False."""
        return False

    def rows(self, snapshot_id: int, condition: Condition) -> list[DataFile]:
        """The files of inlined rows that may be selected: one for each partition value."""
        written_at = self.table.names.rows_files.changed_at(snapshot_id)
        spec = self.table.partitions.rows_spec(self.table.schemas.at(written_at).fields)
        return [
            DataFile(FileContent.DATA, self.location(name), group.record_count, name.numbers[0])
            for name, group in self.rows_names(snapshot_id)
            if may_hold(condition, spec, group.partition)
        ]

    def rows_names(self, snapshot_id: int) -> Iterator[tuple[Name, Sized]]:
        """The names of the files of inlined rows, and what each holds."""
        state = state_at(self.table.history.events, snapshot_id)
        if not state["inlined"].rows:
            return
        written_at = self.table.names.rows_files.changed_at(snapshot_id)
        manifest, *_ = self.table.names.rows_manifests(no_changes(written_at))
        fields = self.table.schemas.at(written_at).fields
        written = self.table.written(fields)
        for number, group in self._groups(written_at, fields, state["inlined"].rows):
            size = rows_size(written, group.record_count, group.text_bytes)
            yield _with_size(self.table.names.all_rows(manifest.name, number), size), group

    def _groups(
        self, written_at: int, fields: tuple[Field, ...], rows: int
    ) -> Iterable[tuple[int, Sized]]:
        """What each file holds; without a partition the rows are not read."""
        if self.table.partitions.rows_spec(fields).fields:
            return [
                (number, Sized(group.partition, group.record_count, group.text_bytes))
                for number, group in self.inlined.groups(ALL, written_at).items()
            ]
        text_bytes = queries.inlined_text_bytes(self.table.history.inlined.tables, written_at)
        return [(0, Sized(None, rows, text_bytes.run(self.con)))]

    def deletes(self, deletes: Sequence[Deletes]) -> list[DataFile]:
        """The delete file of each data file."""
        return [*map(self._delete_file, deletes)]

    def deletes_name(self, deletes: Deletes) -> Name:
        """The name of the delete file of a data file."""
        data_file = self.table.location_of(deletes.data_file)
        built = deletes_size(data_file, deletes.most_positions)
        copied = max((file.file_size_bytes for file in deletes.stored), default=0)
        return _with_size(self.table.deletes_name(deletes), max(built, copied))

    def _delete_file(self, deletes: Deletes) -> DataFile:
        name = self.deletes_name(deletes)
        return DataFile(
            content=FileContent.POSITION_DELETES,
            file_path=self.location(name),
            record_count=deletes.most_positions,
            file_size_in_bytes=name.numbers[0],
            referenced_data_file=self.table.location_of(deletes.data_file),
        )


def _with_size(name: Name, size: int) -> Name:
    return replace(name, kind=PADDED + name.kind, numbers=(size, *name.numbers))


def padded_body(name: Name, body: bytes) -> bytes:
    """The bytes of a padded file from those without padding.

    Raises:
        Refused: they do not fit.
    """
    try:
        return padded(body, name.numbers[0])
    except ValueError as error:
        raise Refused(
            f"a generated file does not fit into the size that was planned: {error}"
        ) from None
