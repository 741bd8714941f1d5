"""Inlined rows as Iceberg data files: the SQL of their values, their files, their partitions.

DuckLake keeps inlined rows in PostgreSQL in one table per schema version, with the column names of
that version and values in DuckDB's text forms. `inlined_rows` reads a row of an old version as
DuckLake reads it: columns by id, later ones from their default, types cast.

`rows_files` divides the rows into files. The rows that a snapshot added are in a file of their own,
which keeps its name while other snapshots add rows: a client that reads only what was added gets
exactly these rows, and one that replaces files finds them. When rows end, or the columns or the
partitioning change, or there are too many files, the rows that are left move to a new file, and the
snapshot shows the move.

`inlined_partitions` computes partition values from the text form of the rows.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, groupby
from typing import Any, NamedTuple

from ..ducklake.rows.files import Event
from ..ducklake.rows.lifetimes import InlinedTable, has_negative_zero, postgres_name
from ..ducklake.rows.objects import Column
from ..iceberg.manifest import PartitionField, PartitionSpec
from ..iceberg.parquet.generated_files import Rows, Texts
from ..iceberg.sandbox import HAS_ZONED_NANOSECONDS, literal, quoted
from ..iceberg.types import Field, List, Map, Primitive, Struct, Type, primitives, transformed
from ..types.names import ducklake_type, iceberg_type, value
from ..types.texts import blob
from .partitions import NULL_IN_PATH

FIRST_SECOND: Mapping[str, str] = (
    {}
    if HAS_ZONED_NANOSECONDS
    else dict.fromkeys(
        ("timestamp_ns", "timestamptz_ns"),
        "CASE WHEN starts_with({0}, '1677-09-21 00:12:43.') THEN make_timestamp_ns("
        "CAST(rpad(regexp_extract({0}, '[.]([0-9]+)', 1), 9, '0') AS BIGINT) - 1000000000 "
        "- 9223372036000000000) ELSE CAST({0} AS TIMESTAMP_NS) END",
    )
)
"""SQL that reads the texts of a type, in the range of whose numbers a second begins too early for
DuckDB 1.5: it cannot read the rest of this second."""


class Source:
    """The columns of one schema version, as a tree."""

    def __init__(self, columns: Sequence[Column], snapshot_id: int) -> None:
        visible = [column for column in columns if column.visible_at(snapshot_id)]
        self.by_id = {column.column_id: column for column in visible}
        # DuckDB 1.5.5 drops the default of a struct's field when the field is renamed; snapshots
        # from before show the default still.
        self._defaults = {
            column.column_id: column.initial_default
            for column in columns
            if column.initial_default is not None
        }
        self._children: dict[int | None, list[Column]] = {}
        for column in visible:
            self._children.setdefault(column.parent_column, []).append(column)

    def children(self, column: Column) -> list[Column]:
        """The members of a nested column, in their order."""
        return self._children.get(column.column_id, [])

    def sql_type(self, column: Column) -> str:
        """The DuckDB type whose literals the column holds."""
        inner = [self.sql_type(child) for child in self.children(column)]
        match column.column_type:
            case "struct":
                names = [quoted(child.column_name) for child in self.children(column)]
                fields = [f"{name} {type_}" for name, type_ in zip(names, inner, strict=True)]
                return f"STRUCT({', '.join(fields)})"
            case "list":
                return f"{inner[0]}[]"
            case "map":
                return f"MAP({inner[0]}, {inner[1]})"
            case "timestamptz_ns" if HAS_ZONED_NANOSECONDS:
                # DuckDB 2.0 drops the zone of a text that becomes a TIMESTAMP_NS; 1.5 respects it.
                return "TIMESTAMPTZ_NS"
            case name if name in FIRST_SECOND:
                return "VARCHAR"
        # A column of an unknown type is hidden: its value is not read, and VARCHAR can hold any.
        return ducklake_type(column.column_type).read_by or "VARCHAR"

    def default(self, column_id: int) -> str | None:
        """The text of the value that a column has in rows that are older than it; None for NULL."""
        return self._defaults.get(column_id)


def inlined_columns(
    table: InlinedTable, columns: Sequence[Column], fields: Sequence[Field]
) -> list[str]:
    """The columns of an inlined table that the schema still shows, by their PostgreSQL names."""
    source = Source(columns, table.schema_begin)
    shown = [source.by_id[field.field_id] for field in fields if field.field_id in source.by_id]
    return [postgres_name(column.column_name) for column in shown]


def inlined_rows(
    table: InlinedTable,
    columns: Sequence[Column],
    fields: Sequence[Field],
    rows: list[list[Any]],
) -> Rows:
    """Pair rows with the SQL that converts them to `fields`.

    Args:
        rows: values of the columns that `inlined_columns` names.
    """
    source = Source(columns, table.schema_begin)
    texts: list[Texts | None] = []
    select = []
    place = count()
    types = dict(zip(table.user_columns, table.user_types, strict=True))
    keeps_zeros = False
    for number, field in enumerate(fields):
        column = source.by_id.get(field.field_id)
        if column is None:
            texts.append(None)
            select.append(_default(field, source))
            continue
        nth = next(place)
        type_ = types[postgres_name(column.column_name)]
        is_binary = type_ == "bytea"
        values = [row[nth] for row in rows]
        keeps_zeros = keeps_zeros or has_negative_zero(type_, values)
        texts.append(("BLOB" if is_binary else "VARCHAR", values))
        # DuckLake keeps texts in PostgreSQL as bytea, too, in UTF-8.
        text = f"decode(c{number})" if is_binary and column.column_type != "blob" else f"c{number}"
        value = f"CAST({text} AS {source.sql_type(column)})"
        select.append(_value(value, column, field.type, source))
    return Rows(texts, select, len(rows), keeps_zeros)


def added_row(
    columns: Sequence[Column], fields: Sequence[Field], in_path: Mapping[int, str]
) -> Rows:
    """One row, of the values that fields have in the rows of a file that lacks them.

    Args:
        columns: all versions of the table's.
        in_path: the texts that the path of the file has for some of them, by column_id.
    """
    source = Source(columns, 0)
    values = (
        _value_in_path(field, in_path[field.field_id])
        if field.field_id in in_path
        else _default(field, source)
        for field in fields
    )
    return Rows([], [*values], 1)


def _value_in_path(field: Field, text: str) -> str:
    # As DuckDB reads paths.
    is_null = text.upper() == NULL_IN_PATH or (not text and field.type != Primitive("string"))
    return f"CAST({'NULL' if is_null else literal(text)} AS {_target_type(field.type)})"


def _default(field: Field, source: Source) -> str:
    """The value of a field that the rows' schema version did not have."""
    text = None if field.initial_default is None else source.default(field.field_id)
    return f"CAST({'NULL' if text is None else literal(text)} AS {_target_type(field.type)})"


def _value(sql: str, column: Column, type_: Type, source: Source) -> str:
    """SQL that converts `sql`, a value of the column's type, to `type_`; children match by id."""
    target = _target_type(type_)
    if _has_shape(column, type_, source):
        return f"CAST({sql} AS {target})"
    match type_:
        case Primitive():
            return FIRST_SECOND[column.column_type].format(sql)
        case Struct(fields):
            packed = ", ".join(f"{quoted(f.name)} := {_member(sql, f, source)}" for f in fields)
            # struct_pack alone would make a struct of NULLs of a struct that is NULL.
            return f"CASE WHEN {sql} IS NULL THEN NULL ELSE struct_pack({packed})::{target} END"
        case List(_, element):
            [child] = source.children(column)
            inner = _value("e", child, element, source)
            return f"CAST(list_transform({sql}, lambda e: {inner}) AS {target})"
        case Map(_, key, _, value):
            key_column, value_column = source.children(column)
            keys = _value("e.key", key_column, key, source)
            values = _value("e.value", value_column, value, source)
            pairs = f"list_transform(map_entries({sql}), lambda e: {{'k': {keys}, 'v': {values}}})"
            return f"CAST(map_from_entries({pairs}) AS {target})"
    raise AssertionError("there is no other type")


def _member(sql: str, field: Field, source: Source) -> str:
    child = source.by_id.get(field.field_id)
    if child is None:
        return _default(field, source)
    member = f"struct_extract({sql}, {literal(child.column_name)})"
    return _value(member, child, field.type, source)


def _has_shape(column: Column, type_: Type, source: Source) -> bool:
    """Whether the column has exactly the members of the type, so that a cast by name suffices."""
    if column.column_type in FIRST_SECOND:
        return False
    children = source.children(column)
    names = [(child.column_id, child.column_name) for child in children]
    if isinstance(type_, Struct) and names != [(f.field_id, f.name) for f in type_.fields]:
        return False
    return all(
        _has_shape(child, member.type, source)
        for child, member in zip(children, type_.members, strict=True)
    )


def _target_type(type_: Type) -> str:
    match type_:
        case Primitive(name):
            return ducklake_type(iceberg_type(name).ducklake).read_by or name
        case Struct(fields):
            inner = [f"{quoted(field.name)} {_target_type(field.type)}" for field in fields]
            return f"STRUCT({', '.join(inner)})"
        case List(_, element):
            return f"{_target_type(element)}[]"
        case Map(_, key, _, value):
            return f"MAP({_target_type(key)}, {_target_type(value)})"


OLDER, NEW, ALL = 0, 1, 2
"""Parts of the inlined rows. `ALL` is one file for scans that the server plans."""

MOST_NEW = 32
"""Files of rows that snapshots added one after the other; all are read in each scan. The next one
moves their rows to one file."""


class RowsFile(NamedTuple):
    """One file of inlined rows."""

    part: int
    """`OLDER`: rows from before the last move; `NEW`: rows that a snapshot added since."""
    record_count: int
    begin_snapshot: int
    """The sequence number: rows that only moved keep that of the table."""
    written_at: int
    """The snapshot as of which the rows are read."""
    hash: int
    """Sum of 64-bit hashes of the rows."""


@dataclass(frozen=True, slots=True)
class RowsFiles:
    """The files of the inlined rows of a table at each snapshot."""

    snapshot_ids: Sequence[int]
    """The snapshots that changed the files, ascending."""
    files: Sequence[tuple[RowsFile, ...]]
    """The files since each of these."""

    def files_at(self, snapshot_id: int) -> tuple[RowsFile, ...]:
        """The files at a snapshot."""
        number = bisect_right(self.snapshot_ids, snapshot_id)
        return self.files[number - 1] if number else ()

    def changed_at(self, snapshot_id: int) -> int:
        """The last snapshot, up to this one, that changed the files; 0 if there is none."""
        number = bisect_right(self.snapshot_ids, snapshot_id)
        return self.snapshot_ids[number - 1] if number else 0


def rows_files(events: Iterable[Event], moves: Iterable[int], table_begin: int) -> RowsFiles:
    """Divide inlined rows into files, for each snapshot.

    Args:
        events: the sums of all rows that began and ended, by snapshot.
        moves: the snapshots that changed the columns or the partitioning.
        table_begin: older rows were added at several snapshots; the table began before them all.
            Rows that begin before it, by a change of the catalog, become older rows.
    """
    inlined = (event for event in events if event.kind == "inlined")
    changes = {
        snapshot_id: list(group)
        for snapshot_id, group in groupby(inlined, key=lambda event: event.snapshot_id)
    }
    moves = frozenset(moves)
    if any(snapshot_id < table_begin for snapshot_id in changes):
        moves |= {table_begin}
    rows = hash_ = 0
    files: tuple[RowsFile, ...] = ()
    files_since: dict[int, tuple[RowsFile, ...]] = {}
    for snapshot_id in sorted(changes.keys() | moves):
        added = [event for event in changes.get(snapshot_id, ()) if event.sign > 0]
        ended = [event for event in changes.get(snapshot_id, ()) if event.sign < 0]
        new = sum(event.rows for event in added), sum(event.hash for event in added)
        rows += new[0] - sum(event.rows for event in ended)
        hash_ += new[1] - sum(event.hash for event in ended)
        if snapshot_id < table_begin:
            continue
        has_moved = snapshot_id in moves or bool(ended)
        if has_moved or len(files) > MOST_NEW:
            # If there are too many files, the snapshot is an `append` all the same, and must not
            # add older rows: their file is as old as the table
            # (docs/developers/decisions/0011-what-a-snapshot-says-of-itself.md).
            begin = snapshot_id if has_moved else table_begin
            files = (RowsFile(OLDER, rows - new[0], begin, snapshot_id, hash_ - new[1]),)
        files = tuple(
            f
            for f in (*files, RowsFile(NEW, new[0], snapshot_id, snapshot_id, new[1]))
            if f.record_count
        )
        files_since[snapshot_id] = files
    return RowsFiles(tuple(files_since), tuple(files_since.values()))


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

    def partition_value(row: Row) -> Any:
        text = source.default(field.source_id) if place is None else row[place]
        return transformed(field.transform, type_name, _partition_value(type_name, text))

    return partition_value


def _partition_value(type_name: str, text: str | bytes | None) -> Any:
    if text is None or (isinstance(text, bytes) and type_name == "binary"):
        return text
    if type_name == "binary":  # a default: binary values of rows are bytes
        return blob(str(text))
    return value(type_name, text.decode() if isinstance(text, bytes) else text)


def _tuple(values: Sequence[Callable[[Row], Any]], row: Row) -> tuple[Any, ...] | None:
    try:
        return tuple(of(row) for of in values)
    except ValueError:
        return None
