"""Footers of added Parquet files as rows of ducklake_file_column_stats.

Bounds come from the footers: a bound that is too wide makes DuckDB's max() wrong, and clients may
cut the bounds of their manifests.
"""

import re
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from ...ducklake.column_tree import DECIMAL, FLOATS, ColumnNode
from ...ducklake.text_order import comparable
from ...ducklake.writes.files import FileColumnStats
from ...ducklake.writes.text_bounds import truncated
from ...iceberg.parquet.metadata import Leaf, ParquetMetadata
from .file_columns import check_json, check_not_null, check_present, refused

INTEGERS = {
    "int8": 2**7,
    "uint8": 2**8,
    "int16": 2**15,
    "uint16": 2**16,
    "int32": 2**31,
    "uint32": 2**32,
    "int64": 2**63,
}
"""The first number that is too large."""

FILE_INTEGERS = {"TINYINT": 2**7, "SMALLINT": 2**15, "INTEGER": 2**31, "BIGINT": 2**63}
"""The same for the types of files."""

READABLE: Mapping[str, Collection[str]] = {
    **dict.fromkeys(INTEGERS, ("TINYINT", "SMALLINT", "INTEGER")),
    "uint32": FILE_INTEGERS,
    "int64": FILE_INTEGERS,
    "boolean": {"BOOLEAN"},
    "float32": {"FLOAT"},
    "float64": {"FLOAT", "DOUBLE"},
    "varchar": {"VARCHAR"},
    "json": {"VARCHAR", "JSON"},
    "blob": {"BLOB"},
    "date": {"DATE"},
    "time": {"TIME"},
    "timestamp": {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"},
    "timestamp_s": {"TIMESTAMP_S"},
    "timestamp_ms": {"TIMESTAMP_S", "TIMESTAMP_MS"},
    "timestamptz": {"TIMESTAMP WITH TIME ZONE"},
    "uuid": {"UUID", "FIXED(16)"},
}
"""The types in files that DuckLake and Iceberg clients read exactly, by the type of the column. A
file of microseconds is not exact in a column of milliseconds, and its bounds do not say so."""

RESERVED_FROM = 2147483447
"""Field ids of metadata columns (specification, "Reserved Field IDs")."""

Stats = tuple[FileColumnStats, ...]


def file_statistics(
    location: str,
    file: ParquetMetadata,
    columns: Sequence[ColumnNode],
    last_column_id: int,
    with_default: frozenset[int],
    without_nan: frozenset[int],
) -> Stats:
    """The statistics of the columns that a file has.

    Args:
        location: of the file, for messages.
        columns: all columns of the table.
        last_column_id: the greatest id that a column of the table ever had.
        with_default: the columns that a file which lacks them has another value than NULL in.
        without_nan: the columns of floats in which the client has counted no NaN.

    Raises:
        BadRequest: DuckLake would not read the file as the client means it.
    """
    known = dict(_with_paths(columns, ()))
    found: dict[int, FileColumnStats] = {}
    for leaf in file.leaves:
        column = _column_of(location, leaf, known, last_column_id)
        if column is not None and column.column_id in found:
            raise refused(location, f"it has the field id {column.column_id} twice ({leaf.name})")
        if column is not None:
            found[column.column_id] = _stats(location, leaf, column, without_nan)
    check_present(location, columns, found, with_default)
    check_not_null(location, columns, found, file.leaves)
    return tuple(found.values())


def _with_paths(
    columns: Iterable[ColumnNode], above: tuple[int, ...]
) -> Iterable[tuple[tuple[int, ...], ColumnNode]]:
    for column in columns:
        path = (*above, column.column_id)
        if column.children:
            yield from _with_paths(column.children, path)
        else:
            yield path, column


def _column_of(
    location: str,
    leaf: Leaf,
    known: Mapping[tuple[int, ...], ColumnNode],
    last_column_id: int,
) -> ColumnNode | None:
    """The column of a leaf; None if the table has it no more."""
    if None in leaf.ids:
        raise refused(
            location,
            f"its column {leaf.name} has no field id. Files of other writers are added in DuckDB "
            "with ducklake_add_data_files",
        )
    ids = tuple(one for one in leaf.ids if one is not None)
    if (column := known.get(ids)) is not None:
        return column
    if any(last_column_id < one < RESERVED_FROM for one in ids):
        raise refused(location, f"its column {leaf.name} has a field id that the table never had")
    if set(ids) & set(chain.from_iterable(known)):
        raise refused(location, f"its column {leaf.name} is nested in another way than the table's")
    return None


def _stats(
    location: str, leaf: Leaf, column: ColumnNode, without_nan: frozenset[int]
) -> FileColumnStats:
    _check_type(location, leaf, column)
    groups = [group for group in leaf.row_groups if group.num_values]
    nulls = [group.null_count for group in groups]
    null_count = None if None in nulls else sum(one or 0 for one in nulls)
    values = sum(group.num_values for group in groups)
    low, high = _bounds(leaf, column)
    _check_range(location, leaf, column, low, high)
    check_json(location, leaf, column, (low, high))
    return FileColumnStats(
        column.column_id,
        sum(group.compressed_size for group in leaf.row_groups),
        None if null_count is None else values - null_count,
        null_count,
        low,
        high,
        column.column_id not in without_nan if column.column_type in FLOATS else None,
    )


def _check_type(location: str, leaf: Leaf, column: ColumnNode) -> None:
    if wanted := DECIMAL.fullmatch(column.column_type):
        found = DECIMAL.fullmatch(leaf.type.lower())
        is_readable = found is not None and (
            int(found[1]) <= int(wanted[1]) and found[2] == wanted[2]
        )
    else:
        is_readable = leaf.type in READABLE.get(column.column_type, ())
    if not is_readable:
        raise refused(
            location,
            f"{column.column_name} is {leaf.type} in it and {column.column_type} in DuckLake: "
            "DuckLake would not hold every such value exactly, or Iceberg clients not read it; "
            "change the type of the column first",
        )


def _bounds(leaf: Leaf, column: ColumnNode) -> tuple[str | None, str | None]:
    """The smallest and the largest value as DuckLake writes them; None if they are not certain."""
    groups = [group for group in leaf.row_groups if group.num_values != group.null_count]
    lows = [_text(column.column_type, leaf.type, group.min_value) for group in groups]
    highs = [_text(column.column_type, leaf.type, group.max_value) for group in groups]
    if not groups or None in lows or None in highs:
        return None, None

    def order(text: str | None) -> Any:
        return comparable(column.column_type, text or "")

    try:
        low, high = min(lows, key=order), max(highs, key=order)
    except ValueError:
        return None, None
    return truncated(column.column_type, low or "", high or "")


ESCAPED = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def _text(column_type: str, file_type: str, text: str | None) -> str | None:
    """A bound in DuckLake's spelling: booleans are 0 and 1, blobs are hexadecimal digits."""
    if text is None:
        return None
    if column_type == "boolean":
        return {"false": "0", "true": "1"}.get(text)
    if file_type in {"BLOB", "FIXED(16)"}:
        data = ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), text.encode())
        if column_type == "uuid":
            digits = data.hex()
            return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        return data.hex().upper()
    if (column_type, file_type) == ("float64", "FLOAT"):
        # In all digits: as float64 the text 0.1 is less than the float32 0.1 that is in the file.
        return repr(struct.unpack("f", struct.pack("f", float(text)))[0])
    return text


def _check_range(
    location: str, leaf: Leaf, column: ColumnNode, low: str | None, high: str | None
) -> None:
    """Refuse numbers that the column cannot hold; clients know the wider type that we publish."""
    limit = INTEGERS.get(column.column_type)
    if limit is None:
        return
    is_unsigned = column.column_type.startswith("uint")
    if not is_unsigned and FILE_INTEGERS[leaf.type] <= limit:
        return
    bounds = [text for text in (low, high) if text is not None]
    if not bounds and any(group.num_values != group.null_count for group in leaf.row_groups):
        bounds = ["a value without known bounds"]
    for text in bounds:
        if not text.lstrip("-").isdecimal() or not -limit * (not is_unsigned) <= int(text) < limit:
            raise refused(
                location,
                f"{column.column_name} is {column.column_type} in DuckLake, and {text} is outside "
                "of its range",
            )
