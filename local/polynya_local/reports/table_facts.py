"""The facts about a table at a snapshot on which the faults of clients depend.

`column_facts` has the columns at the snapshot and before, and how many visible files hold each.
`FileCounts` counts these files; they may come in ten thousand batches.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate

from polynya.ducklake.paths import table_location
from polynya.ducklake.queries.history import TableHistory, state_at, unservable_reason
from polynya.ducklake.rows.objects import Column, MappedName, PartitionColumn
from polynya.mapping.adaptations import NOTHING, TableChanges
from polynya.mapping.partitions import client_specs, every_key
from polynya.mapping.schemas import born_at

from ..queries.listed_files import (
    FileBatch,
    early_files,
    file_batches,
    may_be_before_1970,
    may_be_from_2_31,
)
from .generator import OpenedTable


class FileCounts:
    """Counts of visible files by what they hold."""

    def __init__(
        self,
        batches: Iterable[FileBatch],
        mapped_names: Iterable[MappedName],
        early: Mapping[int, int],
        borns: Mapping[int, int],
    ) -> None:
        """Count the files by the snapshot that they begin with.

        Args:
            mapped_names: the columns in added files.
            early: by column_id, how many files began before a column and have it.
            borns: the snapshot that added each column, by column_id.
        """
        self._early, self._borns = early, borns
        batches = sorted(batches, key=lambda batch: batch.begin_snapshot)
        own = [batch for batch in batches if batch.mapping_id is None]
        self._begins = [batch.begin_snapshot for batch in own]
        self._sums = [0, *accumulate(batch.files for batch in own)]
        self._added = [batch for batch in batches if batch.mapping_id is not None]
        self._stored: dict[int | None, set[int]] = {}
        self._mapped: dict[int | None, set[int]] = {}
        for name in mapped_names:
            self._mapped.setdefault(name.mapping_id, set()).add(name.target_field_id)
            if not name.is_partition:  # otherwise its values are in the path of the file
                self._stored.setdefault(name.mapping_id, set()).add(name.target_field_id)

    def holding(self, column: Column) -> int:
        """The number of files that were written with this version of a column."""
        first = bisect_left(self._begins, column.begin_snapshot)
        last = len(self._begins)
        if column.end_snapshot is not None:
            last = bisect_left(self._begins, column.end_snapshot)
        is_first = column.begin_snapshot == self._borns.get(column.column_id)
        return (
            self._sums[max(first, last)]
            - self._sums[first]
            + (self._early.get(column.column_id, 0) if is_first else 0)
            + sum(
                batch.files
                for batch in self._added
                if column.visible_at(batch.begin_snapshot)
                and column.column_id in self._stored.get(batch.mapping_id, ())
            )
        )

    def lacking(self, column_id: int) -> int:
        """The number of files without a column that a snapshot added."""
        older = self._sums[bisect_left(self._begins, self._borns[column_id])]
        return (
            older
            - self._early.get(column_id, 0)
            + sum(
                batch.files
                for batch in self._added
                if column_id not in self._mapped.get(batch.mapping_id, ())
            )
        )


@dataclass(frozen=True, slots=True)
class ColumnFact:
    """One version of a column, at any level."""

    column_id: int
    name: str
    """With dots, as Iceberg has it."""
    type: str
    """DuckLake's."""
    is_shown: bool
    """Iceberg clients see it at the snapshot."""
    is_past: bool
    """It is not visible at the snapshot."""
    files: int
    """How many visible data files were written with it."""
    parents: tuple[int, ...]
    """Their column ids, outermost first."""
    begin_snapshot: int


def column_facts(
    history: TableHistory, counts: FileCounts, hidden: Mapping[str, str]
) -> tuple[ColumnFact, ...]:
    """Every version of every column up to the snapshot of the history.

    Args:
        hidden: the dotted names that Iceberg clients do not get.
    """
    columns: dict[int, Column] = {column.column_id: column for column in history.columns}

    def fact(column: Column) -> ColumnFact:
        lineage = [*_lineage(column, columns)][::-1]
        names = [ancestor.column_name for ancestor in lineage]
        paths = [".".join(names[: depth + 1]) for depth in range(len(names))]
        is_past = not column.visible_at(history.snapshot_id)
        is_hidden = any(path in hidden for path in paths)
        return ColumnFact(
            column.column_id,
            paths[-1],
            column.column_type,
            not is_past and not is_hidden,
            is_past,
            counts.holding(column),
            tuple(ancestor.column_id for ancestor in lineage[:-1]),
            column.begin_snapshot,
        )

    return tuple(fact(column) for column in history.columns)


def _lineage(column: Column, columns: Mapping[int, Column]) -> Iterator[Column]:
    """The column and its ancestors, the outermost last."""
    ancestor: Column | None = column
    ids: set[int] = set()
    # Where a catalog is wrong, a column can be its own ancestor.
    while ancestor is not None and ancestor.column_id not in ids:
        yield ancestor
        ids.add(ancestor.column_id)
        ancestor = None if ancestor.parent_column is None else columns.get(ancestor.parent_column)


@dataclass(frozen=True, slots=True)
class DefaultFact:
    """A column with a default, which files lack."""

    name: str
    type: str
    files: int
    """0: only files of the snapshot that added the column may lack it."""


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table as of a snapshot."""

    history: TableHistory
    location: str
    """The location of the data, with the scheme."""
    columns: tuple[ColumnFact, ...]
    batches: tuple[FileBatch, ...]
    """The visible data files."""
    defaults: tuple[DefaultFact, ...]
    inlined_rows: int
    deleted: int
    """How many of the data files have deleted rows."""
    vectors: int
    """How many of the data files have a deletion vector in Iceberg."""
    may_be_before_1970: Callable[[int], bool]
    """Whether a column may have a date or a time before 1970, by its column_id."""
    changes: TableChanges
    """What differs for clients in every file; `NOTHING` if an added file is served as it is."""
    filled_in: frozenset[int]
    """The column_ids of the columns that clients get in files that lack them."""
    adapts_added: bool
    """Clients get added files with field ids and all columns."""
    partition_ids: frozenset[int]
    """The column_ids of the columns by which files are partitioned for clients."""
    promoted_floats: frozenset[int]
    """The column_ids of the columns whose statistics are left out of files that have them as
    FLOAT."""
    may_be_from_2_31: Callable[[int], bool]
    """Whether a column of unsigned integers may have 2147483648 or more, by its column_id."""

    @property
    def files(self) -> int:
        """The number of visible data files."""
        return sum(batch.files for batch in self.batches)

    @property
    def added_files(self) -> int:
        """How many of them were added as they were, not written by DuckLake."""
        return sum(batch.files for batch in self.batches if batch.mapping_id is not None)

    @property
    def partition_keys(self) -> Mapping[int | None, Sequence[PartitionColumn]]:
        """The keys of each partitioning that the table has or had, as far as clients get them."""
        every = every_key(self.history.partitioning, client_specs(self.history.tags))
        return {
            partition_id: [key for key in keys if key.column_id in self.partition_ids]
            for partition_id, keys in every.items()
        }

    @property
    def shown(self) -> tuple[ColumnFact, ...]:
        """The columns that Iceberg clients see."""
        return tuple(column for column in self.columns if column.is_shown)


def table_facts(table: OpenedTable) -> TableFacts:
    """Read what the faults of clients depend on, as of the snapshot of the table.

    Raises:
        Refused: clients do not get the table.
    """
    history, hidden = table.history, table.hidden_columns
    arguments = (table.lake, table.table_id, table.snapshot_id)
    borns = born_at(history.columns)
    late = {i: born for i, born in borns.items() if born > history.table.begin_snapshot}
    edges = (edge for c in history.columns for edge in (c.begin_snapshot, c.end_snapshot))
    batches = file_batches(*arguments, filter(None, edges)).run(table.con)
    early = early_files(*arguments, late).run(table.con)
    counts = FileCounts(batches, history.mapped_names, early, borns)
    columns = column_facts(history, counts, hidden)
    state = state_at(history.events, table.snapshot_id)
    names = table.files.table.names
    stay = not names.adapts_added and any(batch.mapping_id is not None for batch in batches)
    has_vectors = table.files.table.format_version >= 3
    return TableFacts(
        history=history,
        location=table_location(history.lake, history.schema, history.table),
        columns=columns,
        batches=tuple(batches),
        defaults=tuple(_defaults(table, columns, counts)),
        inlined_rows=state["inlined"].rows,
        deleted=state["hidden"].files,
        vectors=state["hidden"].files if has_vectors else 0,
        may_be_before_1970=cache(partial(_may_be_before_1970, table)),
        changes=NOTHING if stay else names.changes_at(table.snapshot_id),
        filled_in=names.filled_in,
        adapts_added=names.adapts_added,
        partition_ids=frozenset(table.files.table.partitions.source_ids),
        promoted_floats=names.promoted_floats_at(table.snapshot_id),
        may_be_from_2_31=cache(partial(_may_be_from_2_31, table)),
    )


MOST_FILES = 20_000
"""With more files, the statistics of a column are not read, because that takes seconds."""


def _may_be_before_1970(table: OpenedTable, column_id: int) -> bool:
    state = state_at(table.history.events, table.snapshot_id)
    if state["data"].files > MOST_FILES:
        return True
    arguments = (table.lake, table.table_id, column_id, table.snapshot_id)
    statement = may_be_before_1970(*arguments, inlined=bool(state["inlined"].rows))
    return statement.run(table.con)


def _may_be_from_2_31(table: OpenedTable, column_id: int) -> bool:
    if state_at(table.history.events, table.snapshot_id)["data"].files > MOST_FILES:
        return True
    arguments = (table.lake, table.table_id, column_id, table.snapshot_id)
    return may_be_from_2_31(*arguments).run(table.con)


def _defaults(
    table: OpenedTable, columns: tuple[ColumnFact, ...], counts: FileCounts
) -> list[DefaultFact]:
    lacking = {
        name
        for name, ranges in table.files.unservable_defaults().items()
        if unservable_reason(ranges, table.snapshot_id) is not None
    }
    return [
        DefaultFact(column.name, column.type, counts.lacking(column.column_id))
        for column in columns
        if column.is_shown and column.name in lacking
    ]
