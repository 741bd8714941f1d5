"""DuckLake column types as Arrow types, with which PyArrow writes Parquet as DuckLake does."""

import pyarrow as pa
from polynya.ducklake.column_tree import DECIMAL, LIST, MAP, STRUCT, ColumnNode

from ...common.errors import BadInput

ARROW = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "varchar": pa.string(),
    "json": pa.json_(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("us"),  # Parquet has no seconds; DuckLake writes microseconds too
    "timestamp_ms": pa.timestamp("ms"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "uuid": pa.uuid(),
}


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
        return pa.map_(key.with_nullable(False), value)
    if match := DECIMAL.fullmatch(column.column_type):
        return pa.decimal128(int(match[1]), int(match[2]))
    if column.column_type not in ARROW:
        raise BadInput(
            f"the column {column.column_name} has DuckLake's type {column.column_type}, which "
            "Spark does not have: write this table with DuckDB"
        )
    return ARROW[column.column_type]


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
