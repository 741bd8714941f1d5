"""A column with its nested columns; ids are numbered depth first, as DuckLake does."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class ColumnNode:
    """A row of ducklake_column with its nested columns.

    `rows.objects.Column` is one version of it, with the snapshots at which it is visible.
    """

    column_id: int
    """Also the Parquet field id."""
    column_name: str
    column_type: str
    nulls_allowed: bool = True
    default_value: str | None = None
    """The value in new rows; None: no default, for which DuckLake writes the text NULL."""
    children: tuple["ColumnNode", ...] = ()
    comment: str | None = None
    initial_default: str | None = None
    """The value in older files, of a column that is new."""

    @property
    def leaves(self) -> Iterator["ColumnNode"]:
        """The columns that Parquet stores, in Parquet's order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves


def column_tree(rows: Iterable[tuple[ColumnNode, int | None]]) -> tuple[ColumnNode, ...]:
    """Build the tree from columns and the ids of their parents, as `ducklake_column` has them."""
    children: dict[int | None, list[ColumnNode]] = {}
    for column, parent in rows:
        children.setdefault(parent, []).append(column)

    def below(parent: int | None) -> tuple[ColumnNode, ...]:
        return tuple(
            replace(column, children=below(column.column_id)) for column in children.get(parent, ())
        )

    return below(None)


class NewColumn(NamedTuple):
    """A column that a table does not have yet, with its nested columns."""

    column: ColumnNode
    parent_column: int | None
    """The id of the existing struct that it becomes a field of; None: a top-level column."""
    path: str
    """Dotted, from the top level."""


def new_columns(
    columns: Iterable[ColumnNode], last_column_id: int, parent: int | None = None, above: str = ""
) -> Iterator[NewColumn]:
    """The columns with ids greater than `last_column_id`, at any level of the tree."""
    for column in columns:
        path = above + column.column_name
        if column.column_id > last_column_id:
            yield NewColumn(column, parent, path)
        else:
            yield from new_columns(column.children, last_column_id, column.column_id, f"{path}.")


def leaves(columns: Iterable[ColumnNode]) -> list[ColumnNode]:
    """The columns that Parquet stores, in Parquet's order."""
    return [leaf for column in columns for leaf in column.leaves]
