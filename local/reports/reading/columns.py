"""The columns of a table at a snapshot and before, and how many visible files hold each."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from polynya.ducklake.history import TableHistory
from polynya.ducklake.rows.columns import Column
from polynya.ducklake.rows.listing import FileBatch

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
    history: TableHistory, batches: list[FileBatch], hidden: Mapping[str, str]
) -> tuple[ColumnFact, ...]:
    """Every version of every column up to the snapshot of the history.

    Args:
        hidden: the dotted names that Iceberg clients do not get.
    """
    known: dict[int, Column] = {column.column_id: column for column in history.columns}
    mapped: dict[int | None, set[int]] = {}
    for name in history.mapped_names:
        if not name.is_partition:  # its values are in the path of the file
            mapped.setdefault(name.mapping_id, set()).add(name.target_field_id)

    def fact(column: Column) -> ColumnFact:
        lineage = [*_lineage(column, known)][::-1]
        paths = [
            ".".join(one.column_name for one in lineage[: at + 1]) for at in range(len(lineage))
        ]
        is_past = not column.visible_at(history.snapshot_id)
        is_hidden = any(path in hidden for path in paths)
        return ColumnFact(
            column.column_id,
            paths[-1],
            column.column_type,
            not is_past and not is_hidden,
            is_past,
            sum(batch.files for batch in batches if _holds(batch, column, mapped)),
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


def _holds(batch: FileBatch, column: Column, mapped: Mapping[int | None, set[int]]) -> bool:
    if batch.mapping_id is not None and column.column_id not in mapped.get(batch.mapping_id, ()):
        return False
    return column.visible_at(batch.begin_snapshot)
