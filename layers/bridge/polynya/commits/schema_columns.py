"""Iceberg's schema of a new table, or of a new column, as DuckLake's columns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, pairwise

from ....ducklake.column_tree import LIST, MAP, STRUCT, ColumnNode
from ....errors import BadRequest
from ....iceberg.types import Field, List, Map, Primitive, Struct, Type
from ...columns.faults import MAX_DEPTH, MAX_FIELD_ID
from ...columns.types import is_decimal
from .checks import check_names

TYPES = {
    "boolean": "boolean",
    "int": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "date": "date",
    "time": "time",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "string": "varchar",
    "uuid": "uuid",
    "binary": "blob",
}


def ducklake_type(name: str, column: str) -> str:
    """The DuckLake type of an Iceberg primitive type.

    Args:
        column: its name, for the message.

    Raises:
        BadRequest: DuckLake has no such type.
    """
    if is_decimal(name):
        return name.replace(" ", "")
    if name not in TYPES:
        raise BadRequest(
            f"the column {column} has the type {name}, which has no exact form in DuckLake; "
            f"these have one: {', '.join(TYPES)}, decimal, struct, list, map"
        )
    return TYPES[name]


def column_nodes(
    fields: Sequence[Field], docs: Mapping[int, str], above: str = "", depth: int = 0
) -> tuple[ColumnNode, ...]:
    """The columns of fields, under the ids of the fields.

    Args:
        docs: comments by field id.

    Raises:
        BadRequest: DuckLake cannot have such columns.
    """
    if depth > MAX_DEPTH:
        raise BadRequest(f"{above} is nested more than {MAX_DEPTH} levels deep")
    check_names((field.name for field in fields), above)
    for field in fields:
        if field.initial_default is not None:
            raise BadRequest(
                f"the default of {above}{field.name} is set in DuckDB: ALTER TABLE … ADD COLUMN … "
                "DEFAULT …"
            )
    return tuple(
        ColumnNode(
            field.field_id,
            field.name,
            _type(field.type, above + field.name),
            not field.required,
            children=_children(field.type, docs, f"{above}{field.name}.", depth + 1),
            comment=docs.get(field.field_id),
        )
        for field in fields
    )


def _type(type_: Type, name: str) -> str:
    match type_:
        case Primitive(primitive):
            return ducklake_type(primitive, name)
        case Struct():
            return STRUCT
        case List():
            return LIST
        case Map():
            return MAP


def _children(
    type_: Type, docs: Mapping[int, str], above: str, depth: int
) -> tuple[ColumnNode, ...]:
    match type_:
        case Struct(fields):
            if not fields:
                raise BadRequest(f"the struct {above[:-1]} has no fields")
            return column_nodes(fields, docs, above, depth)
        case List(element_id, element):
            return column_nodes([Field(element_id, "element", element)], docs, above, depth)
        case Map(key_id, key, value_id, value):
            pair = [Field(key_id, "key", key), Field(value_id, "value", value)]
            return column_nodes(pair, docs, above, depth)
    return ()


def numbered(columns: Sequence[ColumnNode], first_id: int = 1) -> tuple[ColumnNode, ...]:
    """The columns with new ids, depth first, as DuckLake numbers them."""
    ids = count(first_id)

    def visit(columns: Iterable[ColumnNode]) -> Iterator[ColumnNode]:
        for column in columns:
            column_id = next(ids)
            yield replace(column, column_id=column_id, children=tuple(visit(column.children)))

    return tuple(visit(columns))


def check_ids(columns: Sequence[ColumnNode]) -> None:
    """Check the ids of a table that a client creates with ids of its own.

    Raises:
        BadRequest: an id is used twice, is reserved, or siblings are not in the order of their ids,
            which is the order that DuckLake writes inlined rows in.
    """
    every = list(_ids(columns))
    if len(every) != len(set(every)) or not all(0 < one <= MAX_FIELD_ID for one in every):
        raise BadRequest("the field ids of a schema must be different positive numbers")
    _check_order(columns)


def _check_order(columns: Sequence[ColumnNode]) -> None:
    for one, other in pairwise(columns):
        if one.column_id > other.column_id:
            raise BadRequest(
                f"the column {other.column_name} has a smaller id than {one.column_name} before "
                "it; use the ids that the answer to the creation has assigned"
            )
    for column in columns:
        _check_order(column.children)


def _ids(columns: Iterable[ColumnNode]) -> Iterator[int]:
    for column in columns:
        yield column.column_id
        yield from _ids(column.children)
