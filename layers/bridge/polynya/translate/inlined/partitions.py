"""Partition values of inlined rows, from their text form."""

from collections.abc import Callable, Sequence
from typing import Any

from ...ducklake.rows.columns import Column
from ...ducklake.rows.inlined_tables import InlinedTable, postgres_name
from ...iceberg.partition import PartitionField, PartitionSpec
from ...iceberg.transforms import transformed
from ...iceberg.types import Field, primitives
from ..values import value
from .rows import Source, inlined_columns

Row = Sequence[str | bytes | None]


def inlined_partitions(
    spec: PartitionSpec,
    table: InlinedTable,
    columns: Sequence[Column],
    fields: tuple[Field, ...],
    rows: Sequence[Row],
) -> list[tuple[Any, ...] | None]:
    """The partition tuple of each row; None if a value is not certain.

    Args:
        fields: the schema of the rows; it has the columns of the spec.
        rows: the columns that `inlined_columns` names.
    """
    source = Source(columns, table.schema_begin)
    names = inlined_columns(table, columns, fields)
    types = primitives(fields)
    values = [_values(field, types[field.source_id], source, names) for field in spec.fields]
    return [_tuple(values, row) for row in rows]


def _values(
    field: PartitionField, type_name: str, source: Source, names: Sequence[str]
) -> Callable[[Row], Any]:
    """A function from a row to the value of a partition field."""
    column = source.by_id.get(field.source_id)
    # A row that is older than the column has the default.
    place = None if column is None else names.index(postgres_name(column.column_name))

    def of(row: Row) -> Any:
        text = source.default(field.source_id) if place is None else row[place]
        return transformed(field.transform, type_name, _value(type_name, text))

    return of


def _value(type_name: str, text: str | bytes | None) -> Any:
    if text is None or (isinstance(text, bytes) and type_name == "binary"):
        return text
    return value(type_name, text.decode() if isinstance(text, bytes) else text)


def _tuple(values: Sequence[Callable[[Row], Any]], row: Row) -> tuple[Any, ...] | None:
    try:
        return tuple(of(row) for of in values)
    except ValueError:
        return None
