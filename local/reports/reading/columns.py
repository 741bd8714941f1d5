"""The columns of a table at a snapshot and before, and how many visible files hold each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polynya.ducklake.history import TableHistory
from polynya.ducklake.rows.columns import Column

from .file_counts import FileCounts

NESTED = frozenset(("struct", "list", "map"))


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
    known: dict[int, Column] = {column.column_id: column for column in history.columns}

    def fact(column: Column) -> ColumnFact:
        lineage = [*_lineage(column, known)][::-1]
        names = [one.column_name for one in lineage]
        paths = [".".join(names[: at + 1]) for at in range(len(names))]
        is_past = not column.visible_at(history.snapshot_id)
        is_hidden = any(path in hidden for path in paths)
        return ColumnFact(
            column.column_id,
            paths[-1],
            column.column_type,
            not is_past and not is_hidden,
            is_past,
            counts.holding(column),
            tuple(one.column_id for one in lineage[:-1]),
            column.begin_snapshot,
        )

    return tuple(fact(column) for column in history.columns)


def _lineage(column: Column, known: Mapping[int, Column]) -> Iterator[Column]:
    """The column, its parent, the parent of that …"""
    found: Column | None = column
    while found is not None:
        yield found
        found = None if found.parent_column is None else known.get(found.parent_column)
