"""Files as a DataFrame. Text is read as the types of the table, and nothing is dropped unseen."""

import itertools
from collections.abc import Iterator
from typing import Any

from .columns import LIST, MAP, STRUCT, Column
from .errors import BadInput
from .spark_types import grown, quoted, spark_type
from .target import Table

# A record that cannot be read ends the job: a NULL in its place would be a wrong row.
TEXT_OPTIONS = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
}


def frame(
    spark: Any,
    paths: list[str],
    format: str,
    table: Table | None,
    ddl: str | None = None,
    *,
    evolve: bool = False,
) -> Any:
    """The rows of `paths`.

    Args:
        ddl: the schema in Spark's words, `id bigint, at timestamp`. None: that of the table where
            it has the column, else what Spark finds in the files.
        evolve: what the table does not have within its columns is read, too.

    Raises:
        BadInput: the files cannot be read.
    """
    from pyspark.errors import PySparkException

    reader = spark.read.options(**TEXT_OPTIONS.get(format, {}))
    try:
        if format == "parquet":
            return (reader.schema(ddl) if ddl else reader).parquet(*paths)
        if ddl is None:
            inferring = reader.option("inferSchema", str(table is None).lower())
            found = getattr(inferring, format)(paths).schema
            if not len(found):
                raise BadInput(f"no records in {', '.join(paths)}")
            ddl = _with_types_of(table, found, evolve) if table else None
            if ddl is None:
                return getattr(reader.schema(found), format)(paths)
        return getattr(reader.schema(ddl), format)(paths)
    except PySparkException as error:
        words = str(error).strip().splitlines()[0]
        raise BadInput(f"the files cannot be read: {words}") from None


def _with_types_of(table: Table, found: Any, evolve: bool) -> str:
    ids = itertools.count(table.last_column_id + 1)
    columns = {column.column_name.casefold(): column for column in table.columns}
    fields: list[str] = []
    surplus: list[str] = []
    for field in found:
        column = columns.get(field.name.casefold())
        if column is not None and evolve:
            column = grown(column, field.dataType, ids)
        elif column is not None:
            surplus += _surplus(field.dataType, column, field.name)
        kind = field.dataType.simpleString() if column is None else spark_type(column)
        fields.append(f"{quoted(field.name)} {kind}")
    if surplus:
        paths = ", ".join(dict.fromkeys(surplus))
        raise BadInput(
            f"fields in the files that the table does not have: {paths}; --evolve adds them"
        )
    return ", ".join(fields)


def _surplus(type: Any, column: Column, path: str) -> Iterator[str]:
    """Fields within fields that a read with the table's types would drop."""
    kind = type.typeName()
    if kind == "array" and column.column_type == LIST:
        yield from _surplus(type.elementType, column.children[0], f"{path}.element")
    elif kind == "struct" and column.column_type == MAP:
        for field in type:
            yield from _surplus(field.dataType, column.children[1], f"{path}.value")
    elif kind == "struct" and column.column_type == STRUCT:
        children = {child.column_name.casefold(): child for child in column.children}
        for field in type:
            below = f"{path}.{field.name}"
            if field.name.casefold() not in children:
                yield below
            else:
                yield from _surplus(field.dataType, children[field.name.casefold()], below)
