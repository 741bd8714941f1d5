"""A table as a commit finds it, within one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...access.readable_lake import ReadableLake
from ...ducklake import queries
from ...ducklake.column_tree import ColumnNode
from ...ducklake.connection.statements import run_batched
from ...ducklake.paths import table_location
from ...ducklake.rows.named_objects import Schema, Table
from ...ducklake.rows.partitions import PartitionColumn
from ...files.table_files import TableFiles
from ...iceberg.table_metadata import Snapshot, TableMetadata


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at the newest snapshot."""

    lake: ReadableLake
    schema: Schema
    table: Table
    files: TableFiles
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
        """It contains a fingerprint of all that clients know of the table."""
        return self.files.metadata_location(self.document)

    @property
    def head(self) -> Snapshot | None:
        """The snapshot of the branch `main`; None for a table without one."""
        return self.document.snapshots[-1] if self.document.snapshots else None

    @property
    def partition_id(self) -> int | None:
        """The partitioning of new files."""
        return self.files.history.partitioning.current

    @property
    def partition_keys(self) -> tuple[PartitionColumn, ...]:
        """The keys of that partitioning."""
        return tuple(self.files.history.partitioning.columns.get(self.partition_id, ()))

    @property
    def with_default(self) -> frozenset[int]:
        """The columns that files which lack them have another value than NULL in."""
        columns = self.files.history.columns
        return frozenset(c.column_id for c in columns if c.initial_default is not None)


def table_state(lake: ReadableLake, schema: Schema, table: Table, files: TableFiles) -> TableState:
    """Read a table.

    Raises:
        Refused: the table cannot be served exactly, so that nobody can write to it either.
    """
    table_id, document = table.table_id, files.metadata()
    now = run_batched(lake.con, queries.columns_now(table_id), queries.next_row_id(table_id))
    return TableState(lake, schema, table, files, document, document.json(refs_only=True), *now)
