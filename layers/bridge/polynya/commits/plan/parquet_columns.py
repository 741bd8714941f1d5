"""The columns of a client's Parquet file: which of the table they are, and what they may contain.

All checks use the footer of the file alone.
"""

import json
import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ...ducklake.column_tree import ColumnNode
from ...ducklake.writes.new_files import FileColumnStats
from ...ducklake.writes.stats import GEOMETRY, TEXT_BYTES, VARIANT
from ...iceberg.parquet.footer import writes_variants
from ...iceberg.parquet.metadata import PLAIN_VARIANT, SHREDDED_VARIANT, Leaf, ParquetMetadata
from ...runtime.errors import BadRequest
from ...types.names import DUCKLAKE, FLOATS, TEXTS, ducklake_type
from ...types.nested import STRUCT, WITHOUT_NOT_NULL
from ...types.numbers import precision_and_scale
from ...types.texts import digits, hyphenated


def check_present(
    location: str,
    columns: Iterable[ColumnNode],
    column_ids: Collection[int],
    default_column_ids: Collection[int],
) -> None:
    """Refuse a file that lacks a column which cannot be NULL in its rows.

    Args:
        column_ids: the column_ids of the leaves that the file has.

    Raises:
        BadRequest: the message names the column.
    """
    for column in columns:
        if any(leaf.column_id in column_ids for leaf in column.leaves):
            continue
        if is_not_null(column) or column.column_id in default_column_ids:
            raise refused(
                location, f"it lacks the column {column.column_name}, which cannot be NULL there"
            )


def not_null_columns(
    columns: Iterable[ColumnNode], leaves: Iterable[Leaf]
) -> tuple[ColumnNode, ...]:
    """The top-level columns that are NOT NULL and could be NULL in a file of these leaves."""
    # Only the top level counts: DuckLake writes NOT NULL for nested columns that can be NULL.
    required = {leaf.ids[0] for leaf in leaves if leaf.is_required}
    return tuple(
        column for column in columns if is_not_null(column) and column.column_id not in required
    )


def is_not_null(column: ColumnNode) -> bool:
    """Whether native DuckLake refuses NULL in a column at the top level."""
    return not column.nulls_allowed and column.column_type not in WITHOUT_NOT_NULL


def check_not_null(
    location: str, columns: Iterable[ColumnNode], stats: Iterable[FileColumnStats]
) -> None:
    """Refuse NULL in these columns.

    Raises:
        BadRequest: the message names the column.
    """
    nulls: Mapping[int, int | None] = {s.column_id: s.null_count for s in stats}
    for column in columns:
        if nulls.get(column.column_id) != 0:
            raise refused(
                location,
                f"{column.column_name} is NOT NULL and the file has NULL in it, or does not say "
                "that it has none",
            )


def check_json(location: str, column: ColumnNode, bounds: Iterable[str | None]) -> None:
    """Refuse texts that are no JSON in a column of JSON: DuckDB could no longer read the column.

    Raises:
        BadRequest: the message names the column.
    """
    for text in bounds:
        # Of the texts in a file only the smallest and the largest are known, and long ones are
        # truncated.
        if text is None or len(text.encode()) >= TEXT_BYTES:
            continue
        try:
            json.loads(text)
        except ValueError:
            raise refused(
                location,
                f"{column.column_name} is json in DuckLake, and has a text that is not JSON",
            ) from None


def check_variants(location: str, file: ParquetMetadata) -> None:
    """Refuse variants that DuckLake or some client would misread.

    Raises:
        BadRequest: the message says how to write them.
    """
    types = {leaf.type for leaf in file.leaves}
    if not types & {PLAIN_VARIANT, SHREDDED_VARIANT}:
        return
    if not writes_variants(file.writer):
        raise refused(
            location,
            "other clients misread the variants of the program that wrote it (DuckDB before 2.0, "
            "or one that is not known): write them with Spark, or in DuckLake itself",
        )
    # DuckDB 1.5 reads fields whose names differ in letter case only under other names.
    if SHREDDED_VARIANT in types and file.writer.startswith("parquet-mr"):
        raise refused(
            location,
            "it has a shredded variant, whose fields DuckDB may read under other names: set "
            "write.parquet.shred-variants=false, and write it again",
        )


def refused(location: str, reason: str) -> BadRequest:
    """The error for a file, without its directories: they hold values of rows."""
    return BadRequest(f"the file {location.rpartition('/')[2]} is refused: {reason}")


FILE_INTEGERS = {
    type_.duckdb: type_.limit
    for type_ in DUCKLAKE.values()
    if type_.limit and not type_.is_unsigned
}
"""The first number that is too large for the types of files."""

RESERVED_FROM = 2147483447
"""Field ids of metadata columns (specification, "Reserved Field IDs")."""


class ColumnMatch(NamedTuple):
    """The column of a leaf, and what the types of both mean for the statistics."""

    column: ColumnNode
    is_float: bool
    is_truncated: bool
    """Whether long bounds are truncated."""
    text: Callable[[str], str | None] | None
    """Converts DuckDB's text of a bound to DuckLake's; None: they are the same."""
    is_narrow: bool
    """Whether the file can hold numbers that the column cannot."""
    is_json: bool
    """Whether the file can hold texts that are no JSON."""
    has_no_bounds: bool
    """Whether DuckLake keeps neither the smallest nor the largest value."""


class FileColumns(NamedTuple):
    """The columns of files that have the same leaves."""

    targets: tuple[ColumnMatch | None, ...]
    """The target of each leaf; None if the table no longer has its column."""
    not_null: tuple[ColumnNode, ...]
    """The columns whose number of NULLs must be checked in each file."""
    missing: tuple[ColumnNode, ...]
    """The leaves that the files lack, so that all rows have NULL in them."""


def file_columns(
    location: str,
    leaves: Sequence[Leaf],
    columns: Sequence[ColumnNode],
    last_column_id: int,
    default_column_ids: Collection[int],
    *,
    may_lack: bool = False,
) -> FileColumns:
    """Match the file's leaf columns to table columns by field id.

    Args:
        location: of the file, for messages.
        columns: all of the table.
        last_column_id: the greatest id that a column of the table ever had.
        default_column_ids: ids of columns with an initial default: not NULL in files without them.
        may_lack: whether the file may lack these columns.

    Raises:
        BadRequest: DuckLake would not read the file as the client means it.
    """
    by_path = dict(_leaf_paths(columns, ()))
    structs = {path[:end] for path in by_path for end in range(1, len(path))}
    targets: list[ColumnMatch | None] = []
    column_ids: set[int] = set()
    for leaf in leaves:
        column = _column_of(location, leaf, by_path, structs, last_column_id)
        if column is not None and column.column_id in column_ids:
            raise refused(location, f"it has the field id {column.column_id} twice ({leaf.name})")
        if column is not None:
            column_ids.add(column.column_id)
        targets.append(_target(location, leaf, column) if column is not None else None)
    _check_structs(location, leaves, targets, structs)
    missing = tuple(_missing(columns, column_ids, default_column_ids))
    if may_lack:
        lacking = {*default_column_ids} - column_ids
        columns = [column for column in columns if column.column_id not in lacking]
    check_present(location, columns, column_ids, default_column_ids)
    return FileColumns(tuple(targets), not_null_columns(columns, leaves), missing)


def _missing(
    columns: Iterable[ColumnNode], column_ids: Collection[int], default_column_ids: Collection[int]
) -> Iterable[ColumnNode]:
    """The leaves that are NULL in every row of a file that lacks them."""
    for column in columns:
        if column.column_id in default_column_ids:
            continue
        if column.children and any(leaf.column_id in column_ids for leaf in column.leaves):
            # The footer does not say how many elements a list or a map has.
            inner = column.children if column.column_type == STRUCT else ()
            yield from _missing(inner, column_ids, default_column_ids)
        else:
            outside = {*column_ids, *default_column_ids}
            yield from (leaf for leaf in column.leaves if leaf.column_id not in outside)


def _leaf_paths(
    columns: Iterable[ColumnNode], above: tuple[int, ...]
) -> Iterable[tuple[tuple[int, ...], ColumnNode]]:
    for column in columns:
        path = (*above, column.column_id)
        if column.children:
            yield from _leaf_paths(column.children, path)
        else:
            yield path, column


def _column_of(
    location: str,
    leaf: Leaf,
    by_path: Mapping[tuple[int, ...], ColumnNode],
    structs: Collection[tuple[int, ...]],
    last_column_id: int,
) -> ColumnNode | None:
    """The column of a leaf; None if the table no longer has it."""
    if None in leaf.ids:
        raise refused(
            location,
            f"its column {leaf.name} has no field id, while others have one, or the commit creates "
            "the table: add files that have no field ids at all, to a table that exists",
        )
    ids = tuple(id_ for id_ in leaf.ids if id_ is not None)
    if (column := by_path.get(ids)) is not None:
        return column
    if any(last_column_id < id_ < RESERVED_FROM for id_ in ids):
        raise refused(location, f"its column {leaf.name} has a field id that the table never had")
    # A dropped field is nested in columns that the table has, and contains none of them.
    above = next((ids[:end] for end in range(len(ids), 0, -1) if ids[:end] in structs), ())
    if set(ids[len(above) :]) & set(chain.from_iterable(by_path)):
        raise refused(location, f"its column {leaf.name} is nested in another way than the table's")
    return None


def _check_structs(
    location: str,
    leaves: Sequence[Leaf],
    targets: Sequence[ColumnMatch | None],
    structs: Collection[tuple[int | None, ...]],
) -> None:
    """Refuse a struct with dropped fields alone: nothing says whether it or its fields are NULL."""
    matched = [leaf.ids for leaf, target in zip(leaves, targets, strict=True) if target]
    within = {ids[:end] for ids in matched for end in range(1, len(ids))}
    for leaf, target in zip(leaves, targets, strict=True):
        of_leaf = {leaf.ids[:end] for end in range(1, len(leaf.ids))}
        if target is None and not within.issuperset(of_leaf.intersection(structs)):
            raise refused(
                location,
                f"it has only dropped fields of the struct with {leaf.name}, which readers take "
                "for NULL or for a struct: write the rows again",
            )


def _target(location: str, leaf: Leaf, column: ColumnNode) -> ColumnMatch:
    _check_type(location, leaf, column)
    type_ = ducklake_type(column.column_type)
    is_signed_and_wide = not type_.is_unsigned and FILE_INTEGERS.get(leaf.type, 0) <= type_.limit
    return ColumnMatch(
        column,
        is_float=column.column_type in FLOATS,
        is_truncated=column.column_type in TEXTS,
        text=_spelling(column.column_type, leaf.type),
        is_narrow=bool(type_.limit) and not is_signed_and_wide,
        is_json=column.column_type == "json" and leaf.type != "JSON",
        has_no_bounds=column.column_type in {GEOMETRY, VARIANT},
    )


def _check_type(location: str, leaf: Leaf, column: ColumnNode) -> None:
    if decimal := precision_and_scale(column.column_type):
        in_file = precision_and_scale(leaf.type.lower())
        is_readable = in_file is not None and (
            in_file[0] <= decimal[0] and in_file[1] == decimal[1]
        )
    else:
        is_readable = leaf.type in ducklake_type(column.column_type).in_files
    if leaf.type == "INT96":
        raise refused(
            location,
            f"{column.column_name} has times as INT96, which readers interpret differently: write "
            "them as INT64 (Spark: spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS)",
        )
    if not is_readable:
        raise refused(
            location,
            f"{column.column_name} is {leaf.type} in it and {column.column_type} in DuckLake: "
            "DuckLake would not hold every such value exactly, or Iceberg clients not read it; "
            "change the type of the column first",
        )


ESCAPED = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def _spelling(column_type: str, file_type: str) -> Callable[[str], str | None] | None:
    """DuckLake's spelling of DuckDB's texts: booleans are 0 and 1, blobs are hexadecimal digits."""
    if column_type == "boolean":
        return {"false": "0", "true": "1"}.get
    if file_type in {"BLOB", "FIXED(16)"}:
        written = hyphenated if column_type == "uuid" else digits
        return lambda text: written(_unescaped(text))
    return _float64_text if (column_type, file_type) == ("float64", "FLOAT") else None


def _unescaped(text: str) -> bytes:
    return ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), text.encode())


def _float64_text(text: str) -> str:
    """The text of a float32 as that of the same number as float64."""
    # With all digits: the float64 of the text 0.1 is less than the float32 in the file.
    return repr(struct.unpack("f", struct.pack("f", float(text)))[0])
