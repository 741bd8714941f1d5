"""Types of Spark, DuckLake and Arrow: which can be written as which, and conversion of values.

Text files are read with the table's types under the names in the files. Arrays of Spark become
arrays of the Arrow types with which PyArrow writes Parquet as DuckLake does.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from polynya.ducklake.column_tree import ColumnNode
from polynya.types.names import DUCKLAKE, ducklake_type
from polynya.types.nested import LIST, MAP, NESTED, STRUCT
from polynya.types.numbers import precision_and_scale

from ..common.errors import BadInput
from ..common.spark import quoted

NEW_COLUMNS = {
    type_.spark: name for name, type_ in DUCKLAKE.items() if type_.spark
} | dict.fromkeys(("char", "varchar"), "varchar")
"""DuckLake's types of new columns, by the name of the Spark type without its parameters."""

NESTED_IN_SPARK = {type_.spark: name for name, type_ in NESTED.items()}


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
    column_type = NESTED_IN_SPARK.get(kind) or _primitive(name, type)
    return ColumnNode(column_id, name, column_type, nullable, None, children, comment)


def _primitive(name: str, type: Any) -> str:
    spark_type = type.simpleString()
    if spark_type.startswith("decimal"):
        return str(spark_type)
    if base(spark_type) not in NEW_COLUMNS:
        raise BadInput(
            f"the column {name} has Spark's type {spark_type}, which this job cannot write"
        )
    return NEW_COLUMNS[base(spark_type)]


def base(spark_type: str) -> str:
    """The name of a Spark type without its parameters."""
    return spark_type.partition("(")[0].partition(" ")[0]


def check_names(names: list[str], where: str) -> None:
    """Check the names of columns, which DuckLake does not distinguish by their case.

    Raises:
        BadInput: two names are the same to DuckLake, or a name is empty or contains NUL.
    """
    first_names: dict[str, str] = {}
    for name in names:
        first = first_names.setdefault(name.casefold(), name)
        if first != name or names.count(name) > 1:
            raise BadInput(f"{where} has two columns that are one to DuckLake: {first}, {name}")
        if not name or "\0" in name:
            raise BadInput(f"{where} has a column whose name is empty or contains NUL")


def add_new_fields(column: ColumnNode, type: Any, ids: Iterator[int]) -> ColumnNode:
    """The column with the fields that only the Spark type has, at the ends of its structs."""
    if NESTED_IN_SPARK.get(type.typeName()) != column.column_type:
        return column
    if column.column_type == LIST:
        return replace(
            column, children=(add_new_fields(column.children[0], type.elementType, ids),)
        )
    if column.column_type == MAP:
        key, value = column.children
        return replace(column, children=(key, add_new_fields(value, type.valueType, ids)))
    fields = {field.name.casefold(): field for field in type}
    children = []
    for child in column.children:
        field = fields.pop(child.column_name.casefold(), None)
        children.append(add_new_fields(child, field.dataType, ids) if field else child)
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
    if NESTED_IN_SPARK.get(kind) != (column.column_type if column.children else None):
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
    if NEW_COLUMNS.get(base(spark_type)) == column_type:
        return True
    wide, narrow = precision_and_scale(column_type), precision_and_scale(spark_type)
    if wide and narrow:
        scales = wide[1] - narrow[1]
        return scales >= 0 and wide[0] - narrow[0] >= scales
    # Spark has no unsigned integers: those from 2^63 up come as decimals.
    if column_type == "uint64" and narrow:
        return narrow[1] == 0
    return base(spark_type) in ducklake_type(column_type).accepts


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
    type_ = ducklake_type(column.column_type)
    if not (read_as := type_.spark or type_.read_as):
        raise BadInput(f"Spark has no type for {column.column_name} ({column.column_type})")
    return read_as


def read_types(inferred: Any, columns: Iterable[ColumnNode], *, evolve: bool) -> str:
    """The schema to read with, as DDL.

    Args:
        inferred: the schema that Spark has inferred.
        evolve: also read fields that the table's columns lack.

    Raises:
        BadInput: without `evolve`, there are such fields; or two names differ only in their case.
    """
    surplus: list[str] = []
    ddl = ", ".join(f"{name} {kind}" for name, kind in _fields(inferred, columns, "", surplus))
    if surplus and not evolve:
        paths = ", ".join(dict.fromkeys(surplus))
        raise BadInput(
            f"fields in the files that the table does not have: {paths}; --evolve adds them"
        )
    return ddl


def _fields(
    inferred: Any, columns: Iterable[ColumnNode], above: str, surplus: list[str]
) -> Iterator[tuple[str, str]]:
    """Name and type of each inferred field; paths that the columns lack are added to `surplus`."""
    check_names([field.name for field in inferred], above.rstrip(".") or "a file")
    by_name = {column.column_name.casefold(): column for column in columns}
    # Under the names in the files: Spark's JSON reader finds a field by its exact name, and drops
    # fields that the schema lacks.
    for field in inferred:
        path, column = above + field.name, by_name.get(field.name.casefold())
        if column is None:
            if above:  # a new top-level column is detected when the job is planned
                surplus.append(path)
            yield quoted(field.name), _ddl(field.dataType)
        else:
            yield quoted(field.name), _read_as(field.dataType, column, path, surplus)


def _read_as(inferred: Any, column: ColumnNode, path: str, surplus: list[str]) -> str:
    """The DDL of the type to read a field with: that of the column, and fields that only it has."""
    kind = inferred.typeName()
    if kind == "array" and column.column_type == LIST:
        element = _read_as(inferred.elementType, column.children[0], f"{path}.element", surplus)
        return f"array<{element}>"
    if kind == "struct" and column.column_type == MAP and len(inferred):  # as JSON's are inferred
        key, value = column.children
        of_all = reduce(_union, (field.dataType for field in inferred))
        return f"map<{spark_type(key)},{_read_as(of_all, value, f'{path}.value', surplus)}>"
    if kind == "struct" and column.column_type == STRUCT:
        fields = dict(_fields(inferred, column.children, f"{path}.", surplus))
        names = {field.name.casefold() for field in inferred}
        absent = [child for child in column.children if child.column_name.casefold() not in names]
        fields |= {quoted(child.column_name): spark_type(child) for child in absent}
        return _struct(fields.items())
    return spark_type(column)


def _ddl(type: Any) -> str:
    """A Spark type as DDL, with quoted names."""
    kind = type.typeName()
    if kind == "struct":
        return _struct((quoted(field.name), _ddl(field.dataType)) for field in type)
    return f"array<{_ddl(type.elementType)}>" if kind == "array" else str(type.simpleString())


def _struct(fields: Iterable[tuple[str, str]]) -> str:
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in fields)}>"


def _union(left: Any, right: Any) -> Any:
    """The type that Spark infers for values of both types."""
    from pyspark.sql.types import ArrayType, DoubleType, StringType, StructField, StructType

    kinds = {left.typeName(), right.typeName()}
    if kinds == {"struct"}:
        types = {field.name: field.dataType for field in left}
        for field in right:
            first = types.get(field.name)
            types[field.name] = field.dataType if first is None else _union(first, field.dataType)
        return StructType([StructField(name, kind) for name, kind in types.items()])
    if kinds == {"array"}:
        return ArrayType(_union(left.elementType, right.elementType))
    if left == right:
        return left
    return DoubleType() if kinds == {"long", "double"} else StringType()


def arrow_type(column: ColumnNode) -> pa.DataType:
    """The Arrow type of a column, with field ids at every level.

    Raises:
        BadInput: PyArrow cannot write this type as DuckLake does.
    """
    if column.column_type == STRUCT:
        return pa.struct([arrow_field(child) for child in column.children])
    if column.column_type == LIST:
        return pa.list_(arrow_field(column.children[0]))
    if column.column_type == MAP:
        key, value = map(arrow_field, column.children)
        return pa.map_(key.with_nullable(False), value)  # Arrow's maps have no NULL keys
    if parameters := precision_and_scale(column.column_type):
        return pa.decimal128(*parameters)
    if not (arrow := ducklake_type(column.column_type).arrow):
        raise BadInput(
            f"the column {column.column_name} has DuckLake's type {column.column_type}, which "
            "Spark does not have: write this table with DuckDB"
        )
    function, *arguments = arrow
    return getattr(pa, function)(*arguments)


def arrow_field(column: ColumnNode) -> pa.Field:
    """The Arrow field of a column, with its field id."""
    field_id = {"PARQUET:field_id": str(column.column_id)}
    return pa.field(column.column_name, arrow_type(column), metadata=field_id)


def arrow_schema(columns: tuple[ColumnNode, ...]) -> pa.Schema:
    """The Arrow schema of a table's columns.

    Raises:
        BadInput: PyArrow cannot write a type as DuckLake does.
    """
    return pa.schema([arrow_field(column) for column in columns])


UUID_BYTES = 16


def conformed(array: pa.Array, column: ColumnNode) -> pa.Array:
    """The array in the type of `column`, with field ids; no value changes.

    Raises:
        BadInput: a value does not fit the type, or is NULL in a NOT NULL column.
    """
    if not column.nulls_allowed and array.null_count:
        raise BadInput(f"a NULL in the column {column.column_name}, which is NOT NULL")
    try:
        return _conformed(array, column)
    except (pa.ArrowInvalid, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            f"a value does not fit into the column {column.column_name} "
            f"({column.column_type}): {reason}"
        ) from None


def nulls(column: ColumnNode, length: int) -> pa.Array:
    """An array of NULLs, for a column or field that the DataFrame lacks."""
    return _typed(arrow_type(column), pa.nulls(length, _storage(arrow_type(column))))


def _conformed(array: pa.Array, column: ColumnNode) -> pa.Array:
    type = arrow_type(column)
    if array.offset:  # the children below are used without an offset
        array = pa.concat_arrays([array, array[:0]])
    if column.column_type == STRUCT:
        fields = {array.type.field(i).name.casefold(): i for i in range(array.type.num_fields)}
        children = [
            nulls(child, len(array)) if index is None else _conformed(array.field(index), child)
            for child in column.children
            for index in [fields.get(child.column_name.casefold())]
        ]
        return pa.Array.from_buffers(type, len(array), array.buffers()[:1], children=children)
    if column.column_type == LIST:
        values = _conformed(array.values, column.children[0])
        return pa.Array.from_buffers(type, len(array), array.buffers()[:2], children=[values])
    if column.column_type == MAP:
        key, value = column.children
        arrays = [_conformed(array.keys, key), _conformed(array.items, value)]
        entries = pa.StructArray.from_arrays(arrays, fields=[type.key_field, type.item_field])
        return pa.Array.from_buffers(type, len(array), array.buffers()[:2], children=[entries])
    if column.column_type == "uuid":
        return _typed(type, uuids(array))
    return _typed(type, array.cast(_storage(type)))


def _storage(type: pa.DataType) -> pa.DataType:
    return type.storage_type if isinstance(type, pa.BaseExtensionType) else type


def _typed(type: pa.DataType, storage: pa.Array) -> pa.Array:
    if isinstance(type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type, storage)
    return storage


def uuids(texts: pa.Array) -> pa.Array:
    """UUIDs as 16 bytes, from texts with or without hyphens and braces."""
    digits = pc.replace_substring(texts.cast(pa.string()), "-", "")
    digits = pc.replace_substring_regex(digits, r"^\{(.*)\}$", r"\1")
    filled = pc.fill_null(digits, "0" * 2 * UUID_BYTES)
    wrong = pc.invert(pc.match_substring_regex(filled, r"^[0-9a-fA-F]{32}$"))
    if pc.any(wrong).as_py():
        raise ValueError(f"{texts.filter(wrong)[0].as_py()!r} is not a UUID")
    data = pa.py_buffer(bytes.fromhex("".join(filled.to_pylist())))
    validity = pc.is_valid(texts)
    mask = validity.buffers()[1] if texts.null_count else None
    return pa.Array.from_buffers(pa.binary(UUID_BYTES), len(texts), [mask, data])
