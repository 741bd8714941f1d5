"""SQL that reads the columns of a Parquet file as values of a table's schema.

A file may have narrower types than the table has now, other names, or lack a column. Two values are
the same if DuckDB finds that these are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from ...types.names import DUCKLAKE, ducklake_type, iceberg_type
from ...types.numbers import precision_and_scale
from ..sandbox import Unreadable, literal
from ..types import Field, List, Map, Primitive, Struct, Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Element:
    """A column of a Parquet file at any level, without the repeated groups of lists and maps."""

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


def elements(con: "DuckDBPyConnection", path: str) -> tuple[Element, ...]:
    """The columns at the top level of a file.

    Raises:
        Unreadable: it has a list in the form of programs from before 2014.
    """
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


def value_of(field: Field, sql: str, element: Element | None, depth: int = 0) -> str:
    """SQL of a field's value in a file: NULL or its default, if the file lacks it.

    Args:
        sql: that of its column.
        element: the column; None: the file lacks it.
        depth: how many lists and maps the column is in.

    Raises:
        Unreadable: the file has a type there whose values the table's type cannot hold.
    """
    if element is not None:
        return _value(field.type, sql, element, depth)
    if field.initial_default is not None and isinstance(field.type, Primitive):
        return _default(field.type.name, field.initial_default)
    return f"CAST(NULL AS {value_type(field.type)})"


def _default(name: str, default: Any) -> str:
    """SQL of a default, which is in JSON single-value form."""
    text = literal(str(default).lower() if isinstance(default, bool) else str(default))
    type_ = ducklake_type(iceberg_type(name).ducklake).duckdb
    value = f"unhex({text})" if type_ == "BLOB" else f"CAST({text} AS {type_})"
    return _primitive_value(name, value, type_)


def _value(type_: Type, sql: str, element: Element, depth: int) -> str:
    if isinstance(type_, Primitive):
        return _primitive_value(type_.name, sql, element.type)
    by_id = {child.field_id: child for child in element.children}
    if isinstance(type_, Struct):
        members = [(f, by_id.get(f.field_id)) for f in type_.fields]
        values = [f"f{f.field_id}: {value_of(f, _member(sql, e), e, depth)}" for f, e in members]
        return f"CASE WHEN {sql} IS NOT NULL THEN {{{', '.join(values)}}} END"
    if any(member.field_id not in by_id for member in type_.members):
        raise Unreadable("a list or a map of it has other field ids than the table's")
    inner = f"x{depth}"
    if isinstance(type_, List):
        key = _value(type_.element, inner, by_id[type_.element_id], depth + 1)
        return f"list_transform({sql}, lambda {inner}: {key})"
    key = _value(type_.key, f"{inner}.key", by_id[type_.key_id], depth + 1)
    value = _value(type_.value, f"{inner}.value", by_id[type_.value_id], depth + 1)
    return (
        f"list_transform(map_entries({sql}), lambda {inner}: {{f{type_.key_id}: {key}, "
        f"f{type_.value_id}: {value}}})"
    )


def _member(sql: str, element: Element | None) -> str:
    return f"struct_extract({sql}, {literal(element.name)})" if element else ""


def _primitive_value(name: str, sql: str, file_type: str) -> str:
    if file_type not in _file_types(name) and not _is_decimal_within(file_type, name):
        raise Unreadable(f"it has {file_type} where the table has {name}")
    if name == "uuid":
        return (
            f"lower(hex({sql}))"
            if file_type == "FIXED(16)"
            else f"replace(CAST({sql} AS VARCHAR), '-', '')"
        )
    # A float that was written before a promotion has another text than the same number as a double.
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


def value_type(type_: Type) -> str:
    """DuckDB's type of the values of `value_of`."""
    match type_:
        case Primitive(name):
            return _primitive_type(name)
        case Struct(fields):
            return f"STRUCT({', '.join(f'f{f.field_id} {value_type(f.type)}' for f in fields)})"
        case List(_, element):
            return f"{value_type(element)}[]"
        case Map(key_id, key, value_id, value):
            entry = f"f{key_id} {value_type(key)}, f{value_id} {value_type(value)}"
            return f"STRUCT({entry})[]"
