"""The history of a table without columns that a caller may not see.

All that clients get of a table follows from its history: schemas, partitions, names of columns in
files, bounds. A column that is not in it is in none of these. Texts of people, which may speak of
its values, are left out too.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple

from ..ducklake.queries.history import TableHistory
from ..ducklake.rows.objects import Column, Partitioning
from .properties import FORMAT_VERSION, REGISTERED, REQUIRED_COLUMNS


class Hidden(NamedTuple):
    """Which columns a caller does not see."""

    column_ids: tuple[int, ...]
    """Those of the top level, by column_id, ascending."""
    names_key: str
    """A secret of the host. Fingerprints in names follow from hidden values too: with it nobody
    finds these by trying."""


KEPT_TAGS = frozenset((FORMAT_VERSION, REGISTERED, REQUIRED_COLUMNS))
"""The tags of a table that have neither a name nor a value of a column."""

NOT_EXACT = "its rows cannot be served exactly"


def without_columns(history: TableHistory, column_ids: Collection[int]) -> TableHistory:
    """The history without these columns, and without what clients and users say of the table."""
    hidden = _with_nested(history.columns, column_ids)
    columns = [column for column in history.columns if column.column_id not in hidden]
    shown = {column.column_id for column in columns}
    mapped_names = [name for name in history.mapped_names if name.target_field_id in shown]
    return replace(
        history,
        columns=columns,
        mapped_names=mapped_names,
        partitioning=_partitioning(history.partitioning, shown),
        # An expression may have anything in it.
        sort_keys=[],
        tags=[tag for tag in history.tags if tag.key in KEPT_TAGS],
        column_tags=[tag for tag in history.column_tags if tag.object_id in shown],
        identifiers=[of for of in history.identifiers if shown.issuperset(of.column_ids)],
        commits=[replace(commit, summary=None) for commit in history.commits],
        sink_commits=[],
        unservable=[replace(of, reason=NOT_EXACT) for of in history.unservable],
    )


def _with_nested(columns: Collection[Column], column_ids: Collection[int]) -> set[int]:
    """Columns, and all that are in them."""
    hidden, size = {*column_ids}, -1
    while size < len(hidden):
        size = len(hidden)
        hidden |= {column.column_id for column in columns if column.parent_column in hidden}
    return hidden


def _partitioning(partitioning: Partitioning, shown: Collection[int]) -> Partitioning:
    def those_of(names: Mapping[int, str]) -> dict[int, str]:
        return {column_id: name for column_id, name in names.items() if column_id in shown}

    return replace(
        partitioning,
        columns={
            partition_id: [column for column in columns if column.column_id in shown]
            for partition_id, columns in partitioning.columns.items()
        },
        column_types={id_: t for id_, t in partitioning.column_types.items() if id_ in shown},
        constants={of: those_of(names) for of, names in partitioning.constants.items()},
        mapped={of: ids.intersection(shown) for of, ids in partitioning.mapped.items()},
    )
