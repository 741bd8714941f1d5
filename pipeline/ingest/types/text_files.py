"""The schema with which text files are read: the table's types, under the names in the files.

Spark's JSON reader finds a field by its exact name, and drops fields that the schema lacks.
"""

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

from polynya.ducklake.column_tree import LIST, MAP, STRUCT, ColumnNode

from ...common.errors import BadInput
from ...common.spark import quoted
from .spark import check_names, spark_type


def read_types(found: Any, columns: Iterable[ColumnNode], *, evolve: bool) -> str:
    """The schema to read with, as DDL.

    Args:
        found: the schema that Spark has inferred.
        evolve: also read fields that the table's columns lack.

    Raises:
        BadInput: without `evolve`, there are such fields; or two names differ only in their case.
    """
    surplus: list[str] = []
    ddl = ", ".join(f"{name} {kind}" for name, kind in _fields(found, columns, "", surplus))
    if surplus and not evolve:
        paths = ", ".join(dict.fromkeys(surplus))
        raise BadInput(
            f"fields in the files that the table does not have: {paths}; --evolve adds them"
        )
    return ddl


def _fields(
    found: Any, columns: Iterable[ColumnNode], above: str, surplus: list[str]
) -> Iterator[tuple[str, str]]:
    """Name and type of each inferred field; paths that the columns lack are added to `surplus`."""
    check_names([field.name for field in found], above.rstrip(".") or "a file")
    by_name = {column.column_name.casefold(): column for column in columns}
    for field in found:
        path, column = above + field.name, by_name.get(field.name.casefold())
        if column is None:
            if above:  # a new top-level column is detected when the job is planned
                surplus.append(path)
            yield quoted(field.name), _ddl(field.dataType)
        else:
            yield quoted(field.name), _read_as(field.dataType, column, path, surplus)


def _read_as(found: Any, column: ColumnNode, path: str, surplus: list[str]) -> str:
    kind = found.typeName()
    if kind == "array" and column.column_type == LIST:
        element = _read_as(found.elementType, column.children[0], f"{path}.element", surplus)
        return f"array<{element}>"
    if kind == "struct" and column.column_type == MAP and len(found):  # as JSON's are inferred
        key, value = column.children
        of_all = reduce(_union, (field.dataType for field in found))
        return f"map<{spark_type(key)},{_read_as(of_all, value, f'{path}.value', surplus)}>"
    if kind == "struct" and column.column_type == STRUCT:
        fields = dict(_fields(found, column.children, f"{path}.", surplus))
        names = {field.name.casefold() for field in found}
        absent = [child for child in column.children if child.column_name.casefold() not in names]
        fields |= {quoted(child.column_name): spark_type(child) for child in absent}
        return _struct(fields.items())
    return spark_type(column)


def _ddl(found: Any) -> str:
    """An inferred type as DDL, with quoted names."""
    kind = found.typeName()
    if kind == "struct":
        return _struct((quoted(field.name), _ddl(field.dataType)) for field in found)
    return f"array<{_ddl(found.elementType)}>" if kind == "array" else str(found.simpleString())


def _struct(fields: Iterable[tuple[str, str]]) -> str:
    return f"struct<{','.join(f'{name}:{kind}' for name, kind in fields)}>"


def _union(one: Any, other: Any) -> Any:
    """The type that Spark infers for values of both types."""
    from pyspark.sql.types import ArrayType, DoubleType, StringType, StructField, StructType

    kinds = {one.typeName(), other.typeName()}
    if kinds == {"struct"}:
        types = {field.name: field.dataType for field in one}
        for field in other:
            first = types.get(field.name)
            types[field.name] = field.dataType if first is None else _union(first, field.dataType)
        return StructType([StructField(name, kind) for name, kind in types.items()])
    if kinds == {"array"}:
        return ArrayType(_union(one.elementType, other.elementType))
    if one == other:
        return one
    return DoubleType() if kinds == {"long", "double"} else StringType()
