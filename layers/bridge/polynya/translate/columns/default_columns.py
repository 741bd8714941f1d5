"""Columns with a default that readers must use for files that lack the column.

This is Iceberg's `initial-default`. A client that ignores it reads NULL silently: Trino 476,
Flink 2.1, Daft and ClickHouse do.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ...ducklake.rows.columns import Column, MappedName
from ...ducklake.rows.data_files import FileGroup
from ...ducklake.rows.lifetimes import Lifetime, UnservableRange
from ...iceberg.types import Field, Struct
from .schemas import Schemas

WAY_OUT = "DuckLake writes it into new files when all rows are updated"


class DefaultColumn(NamedTuple):
    """A column that is shown with a default."""

    column_id: int
    name: str
    """The path of the column, with dots."""
    born: int
    """The snapshot that added the column."""
    lifetimes: tuple[Lifetime, ...]
    """The snapshots that show it with its default."""


def default_columns(schemas: Schemas, columns: Iterable[Column]) -> list[DefaultColumn]:
    """The columns that some schema shows with a default."""
    born: dict[int, int] = {}
    for column in columns:
        born[column.column_id] = min(
            column.begin_snapshot, born.get(column.column_id, column.begin_snapshot)
        )
    names: dict[int, str] = {}
    lifetimes: dict[int, list[Lifetime]] = {}
    for lifetime, schema in schemas.spans():
        for column_id, name in _with_default(schema.fields):
            names[column_id] = name
            lifetimes.setdefault(column_id, []).append(lifetime)
    return [DefaultColumn(i, names[i], born[i], tuple(lifetimes[i])) for i in names]


def unservable_defaults(
    defaults: Iterable[DefaultColumn],
    lacking_files: Mapping[int, int | None],
    groups: Mapping[FileGroup, Lifetime],
    mapped_names: Iterable[MappedName],
) -> dict[str, list[UnservableRange]]:
    """The snapshots that show a file without a column that has a default, by the column's name.

    Args:
        lacking_files: by column, the end snapshot of the files that were written without it; None
            if some are visible now.
        groups: groups of data files; added files may lack a column that is older than they are.
    """
    known: dict[int | None, set[int]] = {}
    for row in mapped_names:
        known.setdefault(row.mapping_id, set()).add(row.target_field_id)
    found: dict[str, list[UnservableRange]] = {}
    for column in defaults:
        lacking = [
            group
            for key, group in groups.items()
            if key.mapping_id is not None and column.column_id not in known.get(key.mapping_id, ())
        ]
        if column.column_id in lacking_files:
            lacking.append(Lifetime(column.born, lacking_files[column.column_id]))
        reason = f"files lack the column {column.name}, which has a default: {WAY_OUT}"
        both = [lifetime.intersection(shown) for lifetime in lacking for shown in column.lifetimes]
        found.setdefault(column.name, []).extend(
            UnservableRange(*lifetime, reason) for lifetime in both if lifetime
        )
    return found


def _with_default(fields: Collection[Field], prefix: str = "") -> Iterator[tuple[int, str]]:
    for field in fields:
        if isinstance(field.type, Struct):
            yield from _with_default(field.type.fields, f"{prefix}{field.name}.")
        elif field.initial_default is not None:
            yield field.field_id, prefix + field.name
