"""One table as of a snapshot: its history, and what follows from that without a query."""

from collections.abc import Callable
from dataclasses import dataclass

from ..config import FileSettings
from ..ducklake.history import TableHistory
from ..ducklake.paths import file_location
from ..ducklake.rows.data_files import DataFile
from ..ducklake.rows.deletes import DeleteFile
from ..iceberg.row_lineage import lineage_fields
from ..iceberg.types import Field
from ..translate.columns.name_mappings import Mappings, mappings
from ..translate.columns.schemas import Schemas, schemas
from ..translate.partitions import Partitions, partitions
from ..translate.snapshot_ids import SnapshotIds, snapshot_ids
from .content.deletes import Deletes
from .names import Name
from .table_names import TableNames


@dataclass(frozen=True, slots=True)
class TableContext:
    """What all files of a table are built from."""

    history: TableHistory
    schemas: Schemas
    partitions: Partitions
    mappings: Mappings
    snapshot_ids: SnapshotIds
    names: TableNames
    prefix: str
    """The key prefix of the table's virtual files."""
    location: str
    """The same as a location, for clients."""

    @property
    def format_version(self) -> int:
        """The format version of the table."""
        return self.schemas.format_version

    @property
    def has_row_ids(self) -> bool:
        """Whether clients know the ids of rows."""
        return self.format_version >= 3

    def written(self, fields: tuple[Field, ...]) -> tuple[Field, ...]:
        """The columns of a file of inlined rows: these, and the ids of its rows."""
        return (*fields, *lineage_fields(fields)) if self.has_row_ids else fields

    def location_of(self, file: DataFile | DeleteFile) -> str:
        """The location of one of the lake's own files."""
        history = self.history
        return file_location(history.lake, history.schema, history.table, file)

    def deletes_name(self, deletes: Deletes) -> Name:
        """The name of the position deletes of a data file."""
        rows = (deletes.stored, deletes.inlined)
        return self.names.deletes(deletes.data_file, deletes.changed_at, *rows)


def table_context(
    history: TableHistory, settings: FileSettings, location: Callable[[str], str]
) -> TableContext:
    """The context of a table.

    Args:
        location: gives the location of a virtual file from its key.
    """
    table = history.table
    prefix = f"{settings.virtual_prefix}/{table.table_uuid}"
    table_location = location(prefix)
    shown = schemas(
        history.columns,
        table.begin_snapshot,
        history.snapshot_id,
        settings.hidden_types,
        has_added_files=bool(history.mapped_names),
        first_added_file=history.partitioning.first_added_file,
    )
    parts = partitions(history.partitioning, shown, history.snapshot_id)
    ids = snapshot_ids(history.commits)
    lists = {column.column_id for column in history.columns if column.column_type == "list"}
    return TableContext(
        history=history,
        schemas=shown,
        partitions=parts,
        mappings=mappings(history.mapped_names, lists),
        snapshot_ids=ids,
        names=TableNames(history, shown, parts, ids, table_location, settings.chunk_files),
        prefix=prefix,
        location=table_location,
    )
