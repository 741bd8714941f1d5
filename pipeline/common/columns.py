"""The columns of a table as a tree; ids count depth first, as DuckLake gives them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

LIST, MAP, STRUCT = "list", "map", "struct"


@dataclass(frozen=True, slots=True)
class Column:
    column_id: int
    """Also the Parquet field id."""
    column_name: str
    column_type: str
    nulls_allowed: bool = True
    default_value: str | None = None
    """None: there is none. DuckLake writes the text NULL then."""
    children: tuple["Column", ...] = ()
    comment: str | None = None

    @property
    def leaves(self) -> Iterator["Column"]:
        """The columns that Parquet stores, in its order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves

    @property
    def all(self) -> Iterator["Column"]:
        yield self
        for child in self.children:
            yield from child.all


def tree(rows: Iterable[tuple[Column, int | None]]) -> tuple[Column, ...]:
    """Columns with their parent's id, as `ducklake_column` has them, put into each other."""
    children: dict[int | None, list[Column]] = {}
    for column, parent in rows:
        children.setdefault(parent, []).append(column)

    def below(parent: int | None) -> tuple[Column, ...]:
        return tuple(
            Column(
                one.column_id,
                one.column_name,
                one.column_type,
                one.nulls_allowed,
                one.default_value,
                below(one.column_id),
                one.comment,
            )
            for one in children.get(parent, ())
        )

    return below(None)


class Added(NamedTuple):
    """A column that a table does not have yet, with all that is in it."""

    column: Column
    parent_column: int | None
    """The struct of the table that it becomes a field of."""
    path: str


def added(
    columns: Iterable[Column], last_column_id: int, parent: int | None = None, above: str = ""
) -> Iterator[Added]:
    """The columns with ids after `last_column_id`, wherever in the tree they stand."""
    for column in columns:
        path = above + column.column_name
        if column.column_id > last_column_id:
            yield Added(column, parent, path)
        else:
            yield from added(column.children, last_column_id, column.column_id, f"{path}.")


def leaves(columns: Iterable[Column]) -> list[Column]:
    return [leaf for column in columns for leaf in column.leaves]
