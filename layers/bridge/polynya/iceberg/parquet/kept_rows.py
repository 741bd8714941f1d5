"""Which rows of data files are in other files, which copy-on-write puts in their place.

Rows are the same if all columns of the table's schema are. They are compared as values of the
schema's types, because DuckLake's file may have a narrower type than the client's, other names, or
lack a column.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

from ...runtime.isolation import isolated
from ...types.names import DUCKLAKE, ducklake_type, iceberg_type
from ...types.numbers import precision_and_scale
from ..deletion_vector import numbers, of_numbers
from ..sandbox import Sandbox, Unreadable, literal, sandbox
from ..types import Field, List, Map, Primitive, Struct, Type
from .footer_limits import checked

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Uncertain(ValueError):
    """It is not certain which rows stay. The message says why."""


class OldFile(NamedTuple):
    """A data file that is replaced."""

    body: bytes
    deleted: Sequence[int]
    """The positions of rows that are deleted already, ascending."""


FILE_SHIFT = 40
"""A place is the number of an old file in the bits above, and the position of a row below."""

# A place that is NULL is a row of a new file.
GROUPS = """
CREATE TABLE row_groups AS
SELECT count(place) AS old, count(*) - count(place) AS new,
  list(place) FILTER (place IS NOT NULL) AS places
FROM file_rows GROUP BY {columns}"""

UNMATCHED = """
SELECT count(*) FILTER (new > old), count(*) FILTER (new > 0 AND new < old) FROM row_groups"""

KEPT = """
CREATE TABLE kept AS SELECT unnest(places) AS place FROM row_groups WHERE new > 0"""

COUNTS = f"SELECT place >> {FILE_SHIFT} AS file, count(*) FROM kept GROUP BY file"

POSITIONS = f"SELECT place & {(1 << FILE_SHIFT) - 1} AS pos FROM kept ORDER BY place"


@isolated
def kept_rows(
    old: Sequence[OldFile], new: Sequence[bytes], fields: Sequence[Field]
) -> list[Sequence[int]]:
    """The positions of the rows that stay, ascending, for each old file.

    Equal rows stay or go together: if only some stayed, nobody could say which ones.

    Args:
        new: the files with the rows that stay.
        fields: the table's schema.

    Raises:
        Uncertain: new files have rows that old files do not have, or some of equal rows.
        Unreadable: a file is damaged.
        OutOfTime: no time is left in the budget.
    """
    columns = [f"k{number}" for number in range(len(fields))]
    typed = ", ".join(f"k{number} {_key_type(f.type)}" for number, f in enumerate(fields))
    with sandbox(reads_file=True) as box:
        box.con.execute(f"CREATE TABLE file_rows (place BIGINT, {typed})")
        for number, file in enumerate(old):
            with _written(box, f"old{number}", file.body) as path:
                _insert(box.con, path, fields, number << FILE_SHIFT, file.deleted)
        for number, body in enumerate(new):
            with _written(box, f"new{number}", body) as path:
                _insert(box.con, path, fields)
        box.con.execute(GROUPS.format(columns=", ".join(columns)))
        [[foreign, some]] = box.con.execute(UNMATCHED).fetchall()
        if foreign:
            raise Uncertain("it puts rows into them that the replaced files do not have")
        if some:
            raise Uncertain("it keeps some of several rows that differ in these columns alone")
        return _kept(box.con, len(old))


def _kept(con: "DuckDBPyConnection", files: int) -> list[Sequence[int]]:
    con.execute(KEPT)
    counts = dict(con.execute(COUNTS).fetchall())
    ends = accumulate((counts.get(file, 0) for file in range(files)), initial=0)
    positions = con.execute(POSITIONS).fetchnumpy()["pos"]
    return [of_numbers(positions[start:end]) for start, end in pairwise(ends)]


@contextmanager
def _written(box: Sandbox, name: str, body: bytes) -> Iterator[str]:
    """A file with these bytes. Each has another name: DuckDB caches by it what it has read."""
    path = box.path.with_name(f"{name}.parquet")
    path.write_bytes(checked(body))
    yield str(path)
    path.unlink()


def _insert(
    con: "DuckDBPyConnection",
    path: str,
    fields: Sequence[Field],
    first_place: int | None = None,
    deleted: Sequence[int] = (),
) -> None:
    """Insert the rows of a file.

    Args:
        first_place: of its first row; None: the file is a new one.
    """
    elements = _elements(con, path)
    by_id = {element.field_id: (f"c{n}", element) for n, element in enumerate(elements)}
    if None in by_id:
        raise Uncertain("a replaced file has no field ids (ducklake_add_data_files)")
    keys = [_key_of(field, *by_id.get(field.field_id, ("", None))) for field in fields]
    names = ", ".join(f"c{number}" for number in range(len(elements)))
    # Not DuckDB's file_row_number: a user's column may have that name.
    numbered = (
        "SELECT row_number() OVER () - 1 AS pos, * "
        f"FROM read_parquet(?, hive_partitioning = false) AS file({names})"
    )
    place = "NULL" if first_place is None else f"pos + {first_place}"
    # Rows that are deleted already are in no new file, and must not stay.
    con.register("deleted", {"deleted_pos": numbers(deleted)})
    con.execute(
        f"INSERT INTO file_rows SELECT {', '.join([place, *keys])} FROM ({numbered}) "
        "WHERE pos NOT IN (SELECT deleted_pos FROM deleted)",
        [path],
    )


@dataclass(frozen=True, slots=True)
class Element:
    """A column of a Parquet file, or one within it; the groups that only repeat are left out."""

    name: str
    field_id: int | None
    type: str
    """DuckDB's; empty for a column with others in it, `FIXED(16)` for byte strings of a length."""
    children: tuple["Element", ...]


ELEMENTS = """
SELECT name, coalesce(num_children, 0), repetition_type, field_id, coalesce(converted_type, ''),
  CASE WHEN type = 'FIXED_LEN_BYTE_ARRAY' AND duckdb_type = 'BLOB'
    THEN concat('FIXED(', type_length, ')') ELSE coalesce(duckdb_type, '') END
FROM parquet_schema(?)"""


def _elements(con: "DuckDBPyConnection", path: str) -> tuple[Element, ...]:
    rows = iter(con.execute(ELEMENTS, [path]).fetchall())

    def walk(*, is_in_nested: bool = False) -> Iterator[Element]:
        name, count, repetition, field_id, converted, type_ = next(rows)
        is_nested = converted in {"LIST", "MAP"}
        inner = [e for _ in range(count) for e in walk(is_in_nested=is_nested)]
        if is_in_nested and repetition == "REPEATED" and count:
            yield from inner
        elif repetition == "REPEATED":
            raise Unreadable("a column of it is nested in an old form")
        else:
            yield Element(name, field_id, "" if count else type_, tuple(inner))

    _, count, *_ = next(rows)
    return tuple(element for _ in range(count) for element in walk())


def _key_of(field: Field, sql: str, element: Element | None, depth: int = 0) -> str:
    """SQL of a field's value in a file.

    Args:
        sql: that of its column.
        element: the column; None: the file lacks it.
        depth: how many lists and maps the column is in.
    """
    if element is not None:
        return _key(field.type, sql, element, depth)
    if field.initial_default is not None:
        raise Uncertain(f"a replaced file lacks the column {field.name}, which has a default")
    return f"CAST(NULL AS {_key_type(field.type)})"


def _key(type_: Type, sql: str, element: Element, depth: int) -> str:
    if isinstance(type_, Primitive):
        return _primitive_key(type_.name, sql, element.type)
    by_id = {child.field_id: child for child in element.children}
    if isinstance(type_, Struct):
        members = [(f, by_id.get(f.field_id)) for f in type_.fields]
        values = [f"f{f.field_id}: {_key_of(f, _member(sql, e), e, depth)}" for f, e in members]
        return f"CASE WHEN {sql} IS NOT NULL THEN {{{', '.join(values)}}} END"
    if any(member.field_id not in by_id for member in type_.members):
        raise Unreadable("a list or a map of it has other field ids than the table's")
    inner = f"x{depth}"
    if isinstance(type_, List):
        key = _key(type_.element, inner, by_id[type_.element_id], depth + 1)
        return f"list_transform({sql}, lambda {inner}: {key})"
    key = _key(type_.key, f"{inner}.key", by_id[type_.key_id], depth + 1)
    value = _key(type_.value, f"{inner}.value", by_id[type_.value_id], depth + 1)
    return (
        f"list_transform(map_entries({sql}), lambda {inner}: {{f{type_.key_id}: {key}, "
        f"f{type_.value_id}: {value}}})"
    )


def _member(sql: str, element: Element | None) -> str:
    return f"struct_extract({sql}, {literal(element.name)})" if element else ""


def _primitive_key(name: str, sql: str, file_type: str) -> str:
    if file_type not in _file_types(name) and not _is_decimal_within(file_type, name):
        raise Unreadable(f"it has {file_type} where the table has {name}")
    if name == "uuid":
        return (
            f"lower(hex({sql}))"
            if file_type == "FIXED(16)"
            else f"replace(CAST({sql} AS VARCHAR), '-', '')"
        )
    # A float from before a promotion has another text than the same number as a double.
    is_float = iceberg_type(name).is_float
    return f"CAST({f'CAST({sql} AS DOUBLE)' if is_float else sql} AS {_primitive_type(name)})"


def _is_decimal_within(file_type: str, name: str) -> bool:
    file, table = precision_and_scale(file_type.lower()), precision_and_scale(name)
    return bool(file and table and file[0] <= table[0] and file[1] == table[1])


@cache
def _file_types(name: str) -> frozenset[str]:
    """DuckDB's types in files all of whose values the Iceberg type has."""
    types = [
        type_
        for type_ in DUCKLAKE.values()
        if type_.iceberg and name in {type_.iceberg.name, type_.iceberg.promoted}
    ]
    return frozenset().union(*({type_.duckdb, *type_.in_files} for type_ in types))


def _primitive_type(name: str) -> str:
    """The type of a key; texts of floats tell the two zeros apart."""
    type_ = iceberg_type(name)
    is_text = type_.is_float or name == "uuid"
    return "VARCHAR" if is_text else ducklake_type(type_.ducklake).duckdb


def _key_type(type_: Type) -> str:
    match type_:
        case Primitive(name):
            return _primitive_type(name)
        case Struct(fields):
            return f"STRUCT({', '.join(f'f{f.field_id} {_key_type(f.type)}' for f in fields)})"
        case List(_, element):
            return f"{_key_type(element)}[]"
        case Map(key_id, key, value_id, value):
            entry = f"f{key_id} {_key_type(key)}, f{value_id} {_key_type(value)}"
            return f"STRUCT({entry})[]"
