"""One table as of a snapshot: its history, and what follows from it without asking anybody."""

from collections.abc import Callable
from dataclasses import dataclass

from ..config import Config
from ..ducklake.history import TableHistory
from ..ducklake.paths import file_location
from ..ducklake.rows import DataFile, DeleteFile
from ..translate.columns.name_mappings import Mappings, mappings
from ..translate.columns.schemas import Schemas, schemas
from ..translate.partitions import Partitions, partitions
from .content.deletes import Deletes
from .names import Name
from .table_names import TableNames


@dataclass(frozen=True, slots=True)
class TableContext:
    history: TableHistory
    schemas: Schemas
    partitions: Partitions
    mappings: Mappings
    names: TableNames
    prefix: str
    """Of the keys of the table's virtual files."""
    location: str
    """Where that is for clients."""

    def location_of(self, file: DataFile | DeleteFile) -> str:
        """Where a real file is."""
        history = self.history
        return file_location(history.lake, history.schema, history.table, file)

    def deletes_name(self, deletes: Deletes) -> Name:
        rows = (deletes.stored, deletes.inlined)
        return self.names.deletes(deletes.data_file, deletes.changed_at, *rows)


def table_context(
    history: TableHistory, config: Config, location: Callable[[str], str]
) -> TableContext:
    """`location` gives the place of a virtual file from its key."""
    table = history.table
    prefix = f"{config.virtual_prefix}/{table.table_uuid}"
    at = location(prefix)
    shown = schemas(
        history.columns,
        table.begin_snapshot,
        history.snapshot_id,
        config.hidden_types,
        has_added_files=bool(history.mapped_names),
    )
    parts = partitions(history.partitioning, shown, history.snapshot_id)
    lists = {column.column_id for column in history.columns if column.column_type == "list"}
    return TableContext(
        history=history,
        schemas=shown,
        partitions=parts,
        mappings=mappings(history.mapped_names, lists),
        names=TableNames(history, shown, parts, at, config.chunk_files),
        prefix=prefix,
        location=at,
    )
