"""Generated files that a plan names before they are built: their names hold their sizes.

Such a file is built when it is first read, and filled up to the size in its name.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.history import state_at
from ...errors import Refused
from ...iceberg.manifest import DataFile, FileContent
from ...iceberg.parquet.padding import deletes_size, padded, rows_size
from ...translate.inlined.rows_files import ALL
from ..content.deletes import Deletes
from ..names import Name
from ..table_context import TableContext

PADDED = "padded-"


@dataclass(frozen=True, slots=True)
class PaddedFiles:
    """Names the files of one table; implements `GeneratedFiles`."""

    con: Connection
    table: TableContext
    location: Callable[[Name], str]

    def rows(self, snapshot_id: int) -> list[DataFile]:
        """The files of all inlined rows: at most one."""
        inlined = state_at(self.table.history.events, snapshot_id)["inlined"]
        return [
            DataFile(FileContent.DATA, self.location(name), inlined.rows, name.numbers[0])
            for name in self.rows_names(snapshot_id)
        ]

    def rows_names(self, snapshot_id: int) -> Iterator[Name]:
        """The name of the file of all inlined rows, if there are any."""
        history = self.table.history
        state = state_at(history.events, snapshot_id)
        if not state["inlined"].rows:
            return
        manifest, *_ = self.table.names.rows_manifests(snapshot_id, state)
        text_bytes = queries.inlined_text_bytes(history.inlined.tables, snapshot_id).run(self.con)
        fields = self.table.schemas.at(snapshot_id).fields
        size = rows_size(fields, state["inlined"].rows, text_bytes)
        yield _with_size(self.table.names.rows(manifest.name, ALL, 0), size)

    def deletes(self, deletes: Sequence[Deletes]) -> list[DataFile]:
        """The delete file of each data file."""
        return [self._delete_file(one) for one in deletes]

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
