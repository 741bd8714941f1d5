"""The columns of a PostgreSQL table of inlined rows: those of the snapshot that made the table.

DuckLake creates such a table at CREATE TABLE and at an ALTER, and then ducklake_schema_versions
says at which snapshot. If nothing was inlined before, it creates one at the first small INSERT,
with a schema version that no other row has; and the snapshot may have expired since. Then the other
versions say between which snapshots it was created, and the names of its columns decide.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pg8000.native import Connection

from . import queries
from .rows.lifetimes import Inlined, InlinedOrigin, InlinedTable, UnservableRange, postgres_name
from .rows.objects import Column

Shape = tuple[int, str, str, int | None]
"""What determines how a column is read; its default does not."""

UNCERTAIN = (
    "it is not certain which columns the rows in {} have: snapshots have expired since they were "
    "inlined, or that table was changed by hand"
)


def with_columns(
    con: Connection, inlined: Inlined, columns: Sequence[Column], snapshot_id: int
) -> tuple[Inlined, list[UnservableRange]]:
    """The tables that a reader at `snapshot_id` needs, each with the snapshot of its columns.

    If that is not certain, the snapshots that show rows of the table are unservable.
    """
    tables, unservable = [], []
    for table in inlined.tables:
        if table.schema_begin > snapshot_id:
            continue
        created_at = made_by(table, columns, snapshot_id)
        if created_at is None:
            origin = queries.inlined_origin(table).run(con)
            if origin.first_row is None:
                continue
            created_at = made_by(narrowed(table, origin), columns, snapshot_id)
            if created_at is None:
                reason = UNCERTAIN.format(table.table_name)
                unservable.append(UnservableRange(origin.first_row, origin.last_row, reason))
                continue
        tables.append(replace(table, schema_begin=created_at, schema_until=created_at))
    return Inlined(tuple(tables), inlined.delete_columns), unservable


def made_by(table: InlinedTable, columns: Sequence[Column], snapshot_id: int) -> int | None:
    """A snapshot at which the table's columns are visible; None if these are not certain."""
    names = set(table.user_columns)
    shapes: dict[tuple[Shape, ...], int] = {}
    for candidate in _candidates(table, columns, snapshot_id):
        visible = [column for column in columns if column.visible_at(candidate)]
        if {postgres_name(c.column_name) for c in visible if c.parent_column is None} == names:
            shapes.setdefault(tuple(map(_shape, visible)), candidate)
    return next(iter(shapes.values())) if len(shapes) == 1 else None


def narrowed(table: InlinedTable, origin: InlinedOrigin) -> InlinedTable:
    """The table, with a narrower range of snapshots that may have made it."""
    if origin.same is not None:
        return replace(table, schema_begin=origin.same, schema_until=origin.same)
    begin = table.schema_begin if origin.before is None else origin.before + 1
    ends = (table.schema_until, origin.after, origin.first_row)
    return replace(
        table,
        schema_begin=max(table.schema_begin, begin),
        schema_until=min((end for end in ends if end is not None), default=None),
    )


def _candidates(table: InlinedTable, columns: Iterable[Column], snapshot_id: int) -> Iterator[int]:
    """The first snapshot that may have made the table, and those at which columns changed."""
    begin, until = table.schema_begin, table.schema_until
    yield begin
    if until == begin:
        return
    until = snapshot_id if until is None else min(until, snapshot_id)
    edges = {edge for c in columns for edge in (c.begin_snapshot, c.end_snapshot) if edge}
    yield from sorted(edge for edge in edges if begin < edge <= until)


def _shape(column: Column) -> Shape:
    return column.column_id, column.column_name, column.column_type, column.parent_column
