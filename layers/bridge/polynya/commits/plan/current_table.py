"""A table as a commit reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...access.authorized_lake import AuthorizedLake
from ...ducklake import queries
from ...ducklake.column_tree import ColumnNode
from ...ducklake.connection.catalog_connection import run_batched
from ...ducklake.paths import table_location
from ...ducklake.queries.history import State, state_at
from ...ducklake.rows.objects import PartitionColumn, Schema, Table
from ...iceberg.manifest import PartitionField
from ...iceberg.table_metadata import Snapshot as ListedSnapshot
from ...iceberg.table_metadata import TableMetadata
from ...mapping.partitions import client_specs
from ...virtual_files.virtual_files import VirtualTable


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at the newest snapshot."""

    lake: AuthorizedLake
    schema: Schema
    table: Table
    files: VirtualTable
    document: TableMetadata
    json: Mapping[str, Any]
    """The table metadata as clients know it, with the current snapshot alone."""
    columns: tuple[ColumnNode, ...]
    """All columns, also those that clients do not see."""
    next_row_id: int
    """The first row id that the table never had."""

    @property
    def location(self) -> str:
        """The directory of the table, with a slash at its end."""
        return table_location(self.lake.lake, self.schema, self.table)

    @property
    def metadata_location(self) -> str:
        """Where the metadata file is; its name has a fingerprint of all that clients know."""
        return self.files.metadata_location(self.document)

    @property
    def head(self) -> ListedSnapshot | None:
        """The snapshot of the branch `main`; None for a table without one."""
        return self.document.snapshots[-1] if self.document.snapshots else None

    @property
    def totals(self) -> State:
        """Its files and rows by kind, also those of which all rows are deleted."""
        return state_at(self.files.history.events, self.files.history.snapshot_id)

    @property
    def partition_id(self) -> int | None:
        """The partitioning of new files."""
        return self.files.history.partitioning.current

    @property
    def partition_keys(self) -> tuple[PartitionColumn, ...]:
        """The keys of that partitioning."""
        return tuple(self.files.history.partitioning.columns.get(self.partition_id, ()))

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The fields of that partitioning as a client gave them; empty if none did."""
        return client_specs(self.files.history.tags).get(self.partition_id or 0, ())

    @property
    def default_column_ids(self) -> frozenset[int]:
        """Ids of columns with an initial default, which are not NULL in files without them."""
        columns = self.files.history.columns
        return frozenset(c.column_id for c in columns if c.initial_default is not None)


def table_state(
    lake: AuthorizedLake, schema: Schema, table: Table, files: VirtualTable
) -> TableState:
    """Read a table.

    Raises:
        Refused: the table cannot be served exactly, so that nobody can write to it either.
    """
    table_id, document = table.table_id, files.metadata()
    now = run_batched(lake.con, queries.columns_now(table_id), queries.next_row_id(table_id))
    return TableState(lake, schema, table, files, document, document.json(refs_only=True), *now)
