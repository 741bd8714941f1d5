"""What the faults of clients depend on, of one table at one snapshot."""

from dataclasses import dataclass

from polynya.ducklake.history import TableHistory, state_at, unservable_reason
from polynya.ducklake.paths import table_location
from polynya.ducklake.queries.listing.file_batches import early_files, file_batches
from polynya.ducklake.rows.listing import FileBatch

from ..generator import OpenedTable
from ..table_report import hidden_columns
from .columns import ColumnFact, column_facts
from .file_counts import FileCounts


@dataclass(frozen=True, slots=True)
class DefaultFact:
    """A column with a default, which files lack."""

    name: str
    type: str
    files: int
    """0: only files of the snapshot that added the column, some of which have it."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table as of a snapshot."""

    history: TableHistory
    location: str
    """Of the data."""
    columns: tuple[ColumnFact, ...]
    batches: tuple[FileBatch, ...]
    """The visible data files."""
    defaults: tuple[DefaultFact, ...]
    inlined_rows: int

    @property
    def files(self) -> int:
        """The number of visible data files."""
        return sum(batch.files for batch in self.batches)

    @property
    def added_files(self) -> int:
        """How many of them somebody has added as they were."""
        return sum(batch.files for batch in self.batches if batch.mapping_id is not None)

    @property
    def shown(self) -> tuple[ColumnFact, ...]:
        """The columns that Iceberg clients see."""
        return tuple(column for column in self.columns if column.is_shown)


def table_facts(table: OpenedTable) -> TableFacts:
    """Read what the faults of clients depend on, as of the snapshot of the table."""
    history = table.history
    at = (history.lake, history.table.table_id, history.snapshot_id)
    borns = _borns(history)
    late = {i: born for i, born in borns.items() if born > history.table.begin_snapshot}
    batches = file_batches(*at).run(table.con)
    early = early_files(*at, late).run(table.con)
    counts = FileCounts(batches, history.mapped_names, early, borns)
    columns = column_facts(history, counts, hidden_columns(table))
    inlined = state_at(history.events, history.snapshot_id)["inlined"]
    return TableFacts(
        history=history,
        location=table_location(history.lake, history.schema, history.table),
        columns=columns,
        batches=tuple(batches),
        defaults=tuple(_defaults(table, columns, counts)),
        inlined_rows=inlined.rows,
    )


def _defaults(
    table: OpenedTable, columns: tuple[ColumnFact, ...], counts: FileCounts
) -> list[DefaultFact]:
    now = table.history.snapshot_id
    lacking = {
        name
        for name, ranges in table.unservable_defaults().items()
        if unservable_reason(ranges, now) is not None
    }
    return [
        DefaultFact(column.name, column.type, counts.lacking(column.column_id))
        for column in columns
        if column.is_shown and column.name in lacking
    ]


def _borns(history: TableHistory) -> dict[int, int]:
    """The snapshot that added each column, by column_id."""
    borns: dict[int, int] = {}
    for column in history.columns:
        first = borns.get(column.column_id, column.begin_snapshot)
        borns[column.column_id] = min(first, column.begin_snapshot)
    return borns
