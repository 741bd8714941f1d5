"""Iceberg's sort orders as DuckLake's SORTED BY, or as a tag; and what renamings change in it."""

import re
from collections.abc import Iterable, Sequence

from ....ducklake.column_tree import ColumnNode, leaves
from ....ducklake.rows.columns import SortKey
from ....errors import BadRequest
from ....iceberg.commits.updates import SortOrder
from ....iceberg.table_metadata import SortField
from ...sort_orders import order_text

DIRECTIONS = {"asc": "ASC", "desc": "DESC"}
NULL_ORDERS = {"nulls-first": "NULLS_FIRST", "nulls-last": "NULLS_LAST"}

TRANSFORMS = re.compile(r"identity|year|month|day|hour|void|(bucket|truncate)\[[1-9][0-9]{0,8}\]")

Keys = tuple[tuple[str, str, str], ...]
"""Expression, direction and order of NULLs of each key."""


def sort_keys(order: SortOrder | None, columns: Sequence[ColumnNode]) -> Keys | None:
    """The sort keys of a table; None: DuckLake has no expression for the order.

    Raises:
        BadRequest: a field is of no column, or has a transform that Iceberg does not know.
    """
    _check(order, columns)
    names = {column.column_id: column.column_name for column in columns if not column.children}
    keys = []
    for field in order.fields if order else ():
        if field.transform != "identity" or field.source_id not in names:
            return None
        expression = quoted_name(names[field.source_id])
        keys.append((expression, DIRECTIONS[field.direction], NULL_ORDERS[field.null_order]))
    return tuple(keys)


def order_tag(order: SortOrder) -> str:
    """The tag that keeps an order for which there are no keys."""
    return order_text(
        SortField(field.source_id, field.direction, field.null_order, field.transform)
        for field in order.fields
    )


def _check(order: SortOrder | None, columns: Sequence[ColumnNode]) -> None:
    known = {leaf.column_id for leaf in leaves(columns)}
    for field in order.fields if order else ():
        if field.source_id not in known or not TRANSFORMS.fullmatch(field.transform):
            raise BadRequest(
                f"the table cannot be sorted by {field.transform[:50]} of field {field.source_id}"
            )


def quoted_name(name: str) -> str:
    """The SQL expression of a column."""
    return '"' + name.replace('"', '""') + '"'


def renamed_keys(
    keys: Sequence[SortKey], before: Iterable[ColumnNode], after: Iterable[ColumnNode]
) -> Keys | None:
    """The sort keys of a table with renamed columns; None if they stay the same.

    Raises:
        BadRequest: a column of the order is dropped, or the order is an expression, which may
            contain the name.
    """
    old = {column.column_name: column.column_id for column in before}
    new = {column.column_id: column.column_name for column in after}
    if all(new.get(column_id) == name for name, column_id in old.items()):
        return None
    by_expression = {name.casefold(): column_id for name, column_id in old.items()}
    by_expression |= {quoted_name(name).casefold(): id_ for name, id_ in old.items()}
    found, is_changed = [], False
    for key in keys:
        column_id = by_expression.get(key.expression.casefold())
        if column_id is None or column_id not in new:
            raise BadRequest(
                f"the table is SORTED BY {key.expression}: change that first, in DuckDB with ALTER "
                "TABLE … RESET SORTED BY"
            )
        name = new[column_id]
        is_changed |= old.get(name) != column_id
        expression = quoted_name(name) if old.get(name) != column_id else key.expression
        found.append((expression, key.sort_direction, key.null_order))
    return tuple(found) if is_changed else None
