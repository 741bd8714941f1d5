"""Partition values of rows as DuckLake's texts, and the directories that are named after them.

Parts of a `timestamptz` are taken in UTC; DuckDB takes them in the time zone of its session.
"""

import re
from collections.abc import Callable, Sequence
from urllib.parse import quote

import mmh3
import pyarrow as pa
import pyarrow.compute as pc
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.rows.partitions import PartitionColumn

from ..common.errors import BadInput
from ..common.text_values import partition_text, plain_array

BUCKET = re.compile(r"bucket\((\d+)\)")
PARTS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "year": pc.year,
    "month": pc.month,
    "day": pc.day,
    "hour": pc.hour,
}
TIMES = {"timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamptz"}
PARTS_OF = {"year": {"date", *TIMES}, "month": {"date", *TIMES}, "day": {"date", *TIMES}}
PARTS_OF["hour"] = TIMES

HASHED: dict[str, Callable[[object], bytes]] = {
    **{
        name: lambda number: number.to_bytes(8, "little", signed=True)  # type: ignore[attr-defined]
        for name in (
            *("int8", "int16", "int32", "int64"),
            *("date", "time", "timestamp", "timestamptz"),
        )
    },
    "varchar": lambda text: str(text).encode(),
    "blob": lambda data: data,  # type: ignore[dict-item,return-value]
}
"""The bytes that DuckLake hashes, as Iceberg does; types that are not here are refused."""

NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"


def check(keys: tuple[PartitionColumn, ...], columns: tuple[ColumnNode, ...]) -> None:
    """Raises:
    BadInput: values of this partitioning cannot be computed as DuckLake does.
    """
    for key, column in zip(keys, sources(keys, columns), strict=True):
        is_supported = (
            (key.transform == "identity" and not column.children)
            or column.column_type in PARTS_OF.get(key.transform, ())
            or (BUCKET.fullmatch(key.transform) and column.column_type in HASHED)
        )
        if not is_supported:
            raise BadInput(
                f"partitioning by {key.transform} of {column.column_name} "
                f"({column.column_type}) is not supported by this job"
            )


def sources(keys: tuple[PartitionColumn, ...], columns: tuple[ColumnNode, ...]) -> list[ColumnNode]:
    """The column of each partition key.

    Raises:
        BadInput: a key is a field within another column.
    """
    by_id = {column.column_id: column for column in columns}
    missing = [key.column_id for key in keys if key.column_id not in by_id]
    if missing:
        raise BadInput("the table is partitioned by a field within another column")
    return [by_id[key.column_id] for key in keys]


def partition_texts(key: PartitionColumn, column: ColumnNode, array: pa.Array) -> list[str | None]:
    """The partition value of each row."""
    if key.transform in PARTS:
        if pa.types.is_timestamp(array.type) and array.type.tz:
            array = array.view(pa.timestamp(array.type.unit))
        return [None if p is None else str(p) for p in PARTS[key.transform](array).to_pylist()]
    seen = plain_array(array).dictionary_encode()
    values = [_text(key, column, value) for value in seen.dictionary.to_pylist()]
    return [None if i is None else values[i] for i in seen.indices.to_pylist()]


def _text(key: PartitionColumn, column: ColumnNode, value: object) -> str:
    if match := BUCKET.fullmatch(key.transform):
        return str((mmh3.hash(HASHED[column.column_type](value)) & 0x7FFFFFFF) % int(match[1]))
    text = partition_text(column.column_type, value)
    if "\0" in text:
        raise BadInput(f"a partition value of {column.column_name} contains a NUL character")
    return text


def directory(
    keys: tuple[PartitionColumn, ...], columns: tuple[ColumnNode, ...], values: Sequence[str | None]
) -> str:
    """The directory of a partition, such as `year=2024/b%20c=x/`.

    Everything except letters, digits and `_.-~` is escaped, as DuckLake does.
    """
    parts, used = [], set()
    for key, column, value in zip(keys, sources(keys, columns), values, strict=True):
        transform = key.transform.partition("(")[0]
        name = column.column_name if transform == "identity" else transform
        if name in used:
            name = f"{name}_{column.column_name}"
        used.add(name)
        text = NULL_DIRECTORY if value is None else quote(value, safe="")
        parts.append(f"{quote(name, safe='')}={text}/")
    return "".join(parts)
