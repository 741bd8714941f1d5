"""The snapshots of one table that cannot be served exactly, and why."""

from dataclasses import dataclass
from itertools import chain

from pg8000.native import Connection

from ..config import FileSettings
from ..ducklake import queries
from ..ducklake.rows.lifetimes import UnservableRange
from ..translate.columns.default_columns import default_columns, unservable_defaults
from .content.added_files import AddedFiles
from .table_context import TableContext


@dataclass(frozen=True, slots=True)
class UnservableSnapshots:
    """What the rows of the catalog, the columns and the added files of one table say."""

    con: Connection
    table: TableContext
    added_files: AddedFiles
    settings: FileSettings

    def ranges(self) -> list[UnservableRange]:
        """All ranges of snapshots that cannot be served, with the most basic reasons first.

        Raises:
            ServiceUnavailable: an added file cannot be read now.
        """
        table = self.table
        ranges = [
            *table.schemas.faults,
            *table.history.unservable,
            *table.partitions.unservable,
            *self.added_files.unservable(self.con),
        ]
        if self.settings.inexact_columns == "refuse":
            ranges += table.schemas.unservable
        if self.settings.column_defaults == "refuse":
            ranges += chain.from_iterable(self.defaults().values())
        return ranges

    def defaults(self) -> dict[str, list[UnservableRange]]:
        """By the dotted name of a column with a default: when files that lack it are visible."""
        history = self.table.history
        columns = default_columns(self.table.schemas, history.columns)
        begin_snapshots = {column.column_id: column.born for column in columns}
        lacking = queries.lacking_files(history.lake, history.table.table_id, begin_snapshots)
        return unservable_defaults(
            columns, lacking.run(self.con), history.partitioning.groups, history.mapped_names
        )
