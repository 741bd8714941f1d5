"""Which columns of a table the leaf columns of a client's Parquet file are."""

import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ...ducklake.column_tree import FLOATS, ColumnNode
from ...ducklake.writes.text_bounds import TEXTS
from ...errors import BadRequest
from ...iceberg.parquet.metadata import Leaf

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
    **dict.fromkeys(INTEGERS, tuple(FILE_INTEGERS)),
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
    "uuid": {"UUID", "BLOB"},
}
"""The types in files that DuckLake reads exactly, by the type of the column. A file of microseconds
is not exact in a column of milliseconds, and its bounds do not say so."""

DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)", re.IGNORECASE)

RESERVED_FROM = 2147483447
"""Field ids of metadata columns (specification, "Reserved Field IDs")."""


class Target(NamedTuple):
    """The column of a leaf, and what the types of both mean for the statistics."""

    column: ColumnNode
    is_float: bool
    is_truncated: bool
    """Long bounds are."""
    text: Callable[[str], str | None] | None
    """A bound in DuckLake's spelling; None: DuckDB's text is."""
    is_narrow: bool
    """The file can hold numbers that the column cannot."""


def targets(
    location: str,
    leaves: Iterable[Leaf],
    columns: Sequence[ColumnNode],
    last_column_id: int,
    with_default: Collection[int],
) -> list[Target | None]:
    """The column of each leaf of a file; None if the table has it no more.

    Args:
        location: of the file, for messages.
        columns: all of the table.
        last_column_id: the greatest id that a column of the table ever had.
        with_default: the columns that a file which lacks them has another value than NULL in.

    Raises:
        BadRequest: DuckLake would not read the file as the client means it.
    """
    known = dict(_with_paths(columns, ()))
    found: list[Target | None] = []
    for leaf in leaves:
        column = _column_of(location, leaf, known, last_column_id)
        found.append(_target(location, leaf, column) if column is not None else None)
    ids = {target.column.column_id for target in found if target is not None}
    _check_present(location, columns, ids, with_default)
    return found


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
        raise wrong(
            location,
            f"its column {leaf.name} has no field id. Files of other writers are added in DuckDB "
            "with ducklake_add_data_files",
        )
    ids = tuple(one for one in leaf.ids if one is not None)
    if (column := known.get(ids)) is not None:
        return column
    if any(last_column_id < one < RESERVED_FROM for one in ids):
        raise wrong(location, f"its column {leaf.name} has a field id that the table never had")
    if set(ids) & set(chain.from_iterable(known)):
        raise wrong(location, f"its column {leaf.name} is nested in another way than the table's")
    return None


def _target(location: str, leaf: Leaf, column: ColumnNode) -> Target:
    _check_type(location, leaf, column)
    wanted = column.column_type
    is_signed_and_wide = not wanted.startswith("uint") and (
        FILE_INTEGERS.get(leaf.type, 0) <= INTEGERS.get(wanted, 0)
    )
    return Target(
        column,
        is_float=wanted in FLOATS,
        is_truncated=wanted in TEXTS,
        text=_spelling(wanted, leaf.type),
        is_narrow=wanted in INTEGERS and not is_signed_and_wide,
    )


def _check_type(location: str, leaf: Leaf, column: ColumnNode) -> None:
    if wanted := DECIMAL.fullmatch(column.column_type):
        found = DECIMAL.fullmatch(leaf.type)
        is_readable = found is not None and (
            int(found[1]) <= int(wanted[1]) and found[2] == wanted[2]
        )
    else:
        is_readable = leaf.type in READABLE.get(column.column_type, ())
    if not is_readable:
        raise wrong(
            location,
            f"{column.column_name} is {leaf.type} in it and {column.column_type} in DuckLake, "
            "which does not hold every such value exactly; change the type of the column first",
        )


ESCAPED = re.compile(rb"\\x([0-9A-Fa-f]{2})")


def _spelling(column_type: str, file_type: str) -> Callable[[str], str | None] | None:
    """DuckLake's spelling of DuckDB's texts: booleans are 0 and 1, blobs are hexadecimal digits."""
    if column_type == "boolean":
        return {"false": "0", "true": "1"}.get
    if file_type == "BLOB":
        return _uuid if column_type == "uuid" else _digits
    return _in_all_digits if (column_type, file_type) == ("float64", "FLOAT") else None


def _digits(text: str) -> str:
    data = ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), text.encode())
    return data.hex().upper()


def _uuid(text: str) -> str:
    digits = _digits(text).lower()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _in_all_digits(text: str) -> str:
    """As float64 the text 0.1 is less than the float32 0.1 that is in the file."""
    return repr(struct.unpack("f", struct.pack("f", float(text)))[0])


def _check_present(
    location: str,
    columns: Iterable[ColumnNode],
    found: Collection[int],
    with_default: Collection[int],
) -> None:
    for column in columns:
        if any(leaf.column_id in found for leaf in column.leaves):
            continue
        if not column.nulls_allowed or column.column_id in with_default:
            raise wrong(
                location, f"it lacks the column {column.column_name}, which cannot be NULL there"
            )


def wrong(location: str, reason: str) -> BadRequest:
    """The refusal of a file, without its directories: they hold values of rows."""
    return BadRequest(f"the file {location.rpartition('/')[2]} is refused: {reason}")
