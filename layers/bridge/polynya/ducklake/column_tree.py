"""Columns with their nested columns; ids are numbered depth first, as DuckLake does.

`column_fault` finds rows of ducklake_column that do not form a tree; `never_null` finds the columns
that had no NULL in any row.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..runtime.errors import REMEDY
from ..types.names import ducklake_name
from ..types.nested import NESTED, WITHOUT_NOT_NULL
from .rows.objects import Column

MAX_FIELD_ID = 2147483447
"""The largest id that Iceberg does not reserve (specification, "Reserved Field IDs")."""

MAX_DEPTH = 100
"""Levels of nesting. Readers and writers of JSON, Avro and Parquet recurse, also in clients."""


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


def column_version(*row: Any) -> Column:
    """A version of a column, whose type has DuckLake's name, however the catalog spells it."""
    column = Column(*row)
    return replace(column, column_type=_type_name(column.column_type))


def column_node(*row: Any) -> ColumnNode:
    """A column without its nested columns, as `column_version`."""
    column = ColumnNode(*row)
    return replace(column, column_type=_type_name(column.column_type))


def _type_name(stored: str) -> str:
    return stored and ducklake_name(stored)  # a broken row has NULL


def column_tree(rows: Iterable[tuple[ColumnNode, int | None]]) -> tuple[ColumnNode, ...]:
    """Build the tree from columns and the ids of their parents, as `ducklake_column` has them."""
    children: dict[int | None, list[ColumnNode]] = {}
    for column, parent in rows:
        children.setdefault(parent, []).append(column)

    def children_of(parent: int | None) -> tuple[ColumnNode, ...]:
        return tuple(
            replace(column, children=children_of(column.column_id))
            for column in children.get(parent, ())
        )

    return children_of(None)


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


def column_ids(columns: Iterable[ColumnNode]) -> Iterator[int]:
    """The ids of columns at every level, depth first."""
    for column in columns:
        yield column.column_id
        yield from column_ids(column.children)


def greatest_id(columns: Iterable[ColumnNode]) -> int:
    """The greatest id of columns at any level."""
    return max(column_ids(columns), default=0)


def column_fault(columns: Sequence[Column]) -> str | None:
    """Why the columns that are visible at one snapshot are not a schema; None if they are."""
    reason = next(filter(None, map(_own_fault, columns)), None)
    reason = reason or _repeated(columns) or _nesting_fault(columns)
    return reason and f"broken rows in ducklake_column: {reason}{REMEDY}"


def _own_fault(column: Column) -> str | None:
    # Columns of the catalog may be NULL, although the types here say otherwise.
    if column.column_id is None or not 0 <= column.column_id <= MAX_FIELD_ID:
        return f"{column.column_id} is no column_id"
    if not column.column_name:
        return f"the column {column.column_id} has no name"
    if not column.column_type:
        return f"the column {column.column_name!r} has no type"
    return None


def _repeated(columns: Sequence[Column]) -> str | None:
    ids = Counter(column.column_id for column in columns)
    # DuckDB takes names for the same that differ in the case of ASCII letters.
    names = Counter(
        (column.parent_column, column.column_name.encode().lower().decode()) for column in columns
    )
    for column_id, times in ids.items():
        if times > 1:
            return f"the column_id {column_id} is there {times} times at one snapshot"
    for (_, name), times in names.items():
        if times > 1:
            return f"{times} columns have the name {name!r}"
    return None


def _nesting_fault(columns: Sequence[Column]) -> str | None:
    children: dict[int | None, list[Column]] = defaultdict(list)
    for column in columns:
        children[column.parent_column].append(column)
    level, depth, visited = children[None], 0, 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return f"{level[0].column_name!r} is nested deeper than {MAX_DEPTH} levels"
        for column in level:
            nested, count = NESTED.get(column.column_type), len(children[column.column_id])
            if nested and not nested.fewest <= count <= (nested.most or count):
                return f"the {column.column_type} {column.column_name!r} has {count} children"
        visited += len(level)
        level = [child for column in level for child in children[column.column_id]]
    if visited < len(columns):
        return "a parent_column names no column that is there, or columns are inside each other"
    return None


def never_null(
    columns: Iterable[Column], table_begin: int, required_later: Collection[int] = ()
) -> frozenset[int]:
    """The top-level columns that have been NOT NULL in every row that the table ever had.

    Args:
        columns: every version of every column.
        table_begin: the snapshot that created the table.
        required_later: the columns that were added when all rows of the table ended.
    """
    versions: dict[int, list[Column]] = defaultdict(list)
    for column in columns:
        versions[column.column_id].append(column)
    return frozenset(
        column_id
        for column_id, history in versions.items()
        # All versions: a column that became NOT NULL later may have NULL in the deleted rows of its
        # files.
        if all(column.parent_column is None and not column.nulls_allowed for column in history)
        and WITHOUT_NOT_NULL.isdisjoint(column.column_type for column in history)
        and (
            column_id in required_later
            or min(column.begin_snapshot for column in history) <= table_begin
        )
    )
