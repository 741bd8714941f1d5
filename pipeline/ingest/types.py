"""Spark's types as DuckLake's, and which of them can be written into which column."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from polynya.ducklake.column_tree import DECIMAL, LIST, MAP, STRUCT, ColumnNode

from ...common.errors import BadInput
from ...common.spark import quoted

# By the name of the Spark type: `simpleString` without its parameters.
DUCKLAKE = {
    "boolean": "boolean",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "float": "float32",
    "double": "float64",
    "string": "varchar",
    "char": "varchar",
    "varchar": "varchar",
    "binary": "blob",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "time": "time",
}

# Other Spark types that a DuckLake type accepts: every value fits, or the job fails.
INTEGERS = ("tinyint", "smallint", "int", "bigint")
ALSO_ACCEPTS = {
    "int16": INTEGERS[:1],
    "int32": INTEGERS[:2],
    "int64": INTEGERS[:3],
    "uint8": INTEGERS,
    "uint16": INTEGERS,
    "uint32": INTEGERS,
    "uint64": (*INTEGERS, "decimal"),
    "float64": ("float",),
    "json": ("string",),
    "uuid": ("string",),
    "timestamp_s": ("timestamp_ntz",),
    "timestamp_ms": ("timestamp_ntz",),
    "timestamp_ns": ("timestamp_ntz",),
}

NESTED = {"array": LIST, "map": MAP, "struct": STRUCT}

# The Spark type with which text files are read for a column: it has all values of the column.
READ_AS = {
    **{theirs: name for name, theirs in DUCKLAKE.items() if name not in {"char", "varchar"}},
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "json": "string",
    "uuid": "string",
    "timestamp_s": "timestamp_ntz",
    "timestamp_ms": "timestamp_ntz",
    "timestamp_ns": "timestamp_ntz",
}


def columns_of(schema: Any, ids: Iterator[int]) -> tuple[ColumnNode, ...]:
    """New columns for the fields of a Spark schema, numbered from `ids`.

    Raises:
        BadInput: DuckLake has no such type, or two names differ only in their case.
    """
    columns = tuple(_column(f.name, f.dataType, ids, f.nullable, _comment(f)) for f in schema)
    check_names([column.column_name for column in columns], "the DataFrame")
    return columns


def _comment(field: Any) -> str | None:
    comment = field.metadata.get("comment")
    return comment if isinstance(comment, str) else None


def _column(
    name: str, type: Any, ids: Iterator[int], nullable: bool = True, comment: str | None = None
) -> ColumnNode:
    column_id, kind = next(ids), type.typeName()
    children: tuple[ColumnNode, ...] = ()
    if kind == "struct":
        check_names([field.name for field in type], f"the column {name}")
        children = tuple(_column(f.name, f.dataType, ids) for f in type)
        if not children:
            raise BadInput(f"the column {name} is a struct without fields")
    elif kind == "array":
        children = (_column("element", type.elementType, ids),)
    elif kind == "map":
        children = (_column("key", type.keyType, ids), _column("value", type.valueType, ids))
    column_type = NESTED.get(kind) or _primitive(name, type)
    return ColumnNode(column_id, name, column_type, nullable, None, children, comment)


def _primitive(name: str, type: Any) -> str:
    spark_type = type.simpleString()
    if spark_type.startswith("decimal"):
        return str(spark_type)
    if base(spark_type) not in DUCKLAKE:
        raise BadInput(
            f"the column {name} has Spark's type {spark_type}, which this job cannot write"
        )
    return DUCKLAKE[base(spark_type)]


def base(spark_type: str) -> str:
    """The name of a Spark type without its parameters."""
    return spark_type.partition("(")[0].partition(" ")[0]


def check_names(names: list[str], where: str) -> None:
    """DuckLake does not distinguish names by their case.

    Raises:
        BadInput: two names are the same to DuckLake, or a name is empty or contains NUL.
    """
    seen: dict[str, str] = {}
    for name in names:
        first = seen.setdefault(name.casefold(), name)
        if first != name or names.count(name) > 1:
            raise BadInput(f"{where} has two columns that are one to DuckLake: {first}, {name}")
        if not name or "\0" in name:
            raise BadInput(f"{where} has a column whose name is empty or contains NUL")


def with_new_fields(column: ColumnNode, type: Any, ids: Iterator[int]) -> ColumnNode:
    """The column with the fields that only the Spark type has, at the ends of its structs."""
    if NESTED.get(type.typeName()) != column.column_type:
        return column
    if column.column_type == LIST:
        return replace(
            column, children=(with_new_fields(column.children[0], type.elementType, ids),)
        )
    if column.column_type == MAP:
        key, value = column.children
        return replace(column, children=(key, with_new_fields(value, type.valueType, ids)))
    fields = {field.name.casefold(): field for field in type}
    children = []
    for child in column.children:
        field = fields.pop(child.column_name.casefold(), None)
        children.append(with_new_fields(child, field.dataType, ids) if field else child)
    children += (_column(field.name, field.dataType, ids) for field in fields.values())
    return replace(column, children=tuple(children))


def mismatches(
    type: Any, column: ColumnNode, path: str = "", *, evolve: bool = False
) -> Iterator[str]:
    """Why values of a Spark type cannot be written into `column`: one sentence for each reason.

    Args:
        evolve: structs may have other fields, except in the keys of a map.
    """
    path = path or column.column_name
    kind = type.typeName()
    if NESTED.get(kind) != (column.column_type if column.children else None):
        yield f"{path} is {column.column_type} in the table, {type.simpleString()} in the DataFrame"
    elif kind == "struct":
        yield from _struct_mismatches(type, column, path, evolve)
    elif kind == "array":
        element = column.children[0]
        yield from mismatches(type.elementType, element, f"{path}.element", evolve=evolve)
    elif kind == "map":
        yield from mismatches(type.keyType, column.children[0], f"{path}.key")
        value = column.children[1]
        yield from mismatches(type.valueType, value, f"{path}.value", evolve=evolve)
    elif not accepts(column.column_type, type.simpleString()):
        yield f"{path} is {column.column_type} in the table, {type.simpleString()} in the DataFrame"


def _struct_mismatches(type: Any, column: ColumnNode, path: str, evolve: bool) -> Iterator[str]:
    check_names([field.name for field in type], path)
    fields = {field.name.casefold(): field for field in type}
    children = {child.column_name.casefold(): child for child in column.children}
    for name in sorted(fields.keys() - children.keys()):
        if not evolve:
            yield f"{path}.{fields[name].name} is not in the table"
    for name in sorted(children.keys() - fields.keys()):
        if not evolve or children[name].default_value is not None:
            yield f"{path}.{children[name].column_name} is not in the DataFrame"
    for name in sorted(children.keys() & fields.keys()):
        below = f"{path}.{children[name].column_name}"
        yield from mismatches(fields[name].dataType, children[name], below, evolve=evolve)


def accepts(column_type: str, spark_type: str) -> bool:
    """Whether values of a primitive Spark type can be written into a primitive column type."""
    if DUCKLAKE.get(base(spark_type)) == column_type:
        return True
    wide, narrow = DECIMAL.fullmatch(column_type), DECIMAL.fullmatch(spark_type)
    if wide and narrow:
        scales = int(wide[2]) - int(narrow[2])
        return scales >= 0 and int(wide[1]) - int(narrow[1]) >= scales
    if column_type == "uint64" and narrow:
        return narrow[2] == "0"
    return base(spark_type) in ALSO_ACCEPTS.get(column_type, ())


def spark_type(column: ColumnNode) -> str:
    """The Spark type, as DDL, with which a text file is read for a column of the table.

    Raises:
        BadInput: Spark has no such type.
    """
    if column.column_type == LIST:
        return f"array<{spark_type(column.children[0])}>"
    if column.column_type == MAP:
        return "map<{},{}>".format(*map(spark_type, column.children))
    if column.column_type == STRUCT:
        fields = [f"{quoted(c.column_name)}:{spark_type(c)}" for c in column.children]
        return f"struct<{','.join(fields)}>"
    if DECIMAL.fullmatch(column.column_type):
        return column.column_type
    if column.column_type not in READ_AS:
        raise BadInput(f"Spark has no type for {column.column_name} ({column.column_type})")
    return READ_AS[column.column_type]
