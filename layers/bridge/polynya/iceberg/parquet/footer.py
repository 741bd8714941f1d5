"""The columns of a Parquet file, the number of its rows and its writer, from its footer.

The REST catalog needs the columns when it loads a table with added files, and has no DuckDB (its
layer would slow every cold start). So this module reads the footer, a Thrift struct in the compact
protocol, up to the last field that it needs. Statistics come after that field.
https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from .thrift import MOST_LEVELS, Thrift

TAIL = 8
"""Bytes after the footer: its length, and the magic number."""

SCHEMA, NUM_ROWS = 2, 3
"""Fields of FileMetaData; only the version comes before them."""

REPETITION_TYPE, NAME, NUM_CHILDREN, CONVERTED_TYPE, FIELD_ID, LOGICAL_TYPE = 3, 4, 5, 6, 9, 10
"""Fields of SchemaElement."""

TYPE, INT96 = 1, 3
REPEATED = 2
NESTED = {1: "MAP", 2: "MAP_KEY_VALUE", 3: "LIST"}
"""Converted types of groups."""
CONVERTED_DECIMALS = {7: 3, 8: 6, 9: 3, 10: 6}
"""TIME_MILLIS, TIME_MICROS, TIMESTAMP_MILLIS, TIMESTAMP_MICROS."""
TIME, TIMESTAMP, UNIT = 7, 8, 2
"""Members of the union LogicalType, and the field of both that holds the unit."""
UNIT_DECIMALS = {1: 3, 2: 6, 3: 9}
"""Members of the union TimeUnit."""


class NotParquet(ValueError):
    """The bytes are not a Parquet file, or its footer cannot be read; the message says why."""


class Column(NamedTuple):
    """A column of a Parquet file, at any level."""

    path: tuple[str, ...]
    """Without the repeated groups inside lists and maps; a list's child is `element`."""
    field_id: int | None
    decimals: int | None
    """Decimal places of the seconds: 3, 6 or 9; None if the column is not a time."""


def columns_of(read: Callable[[int, int], bytes], size: int) -> list[Column]:
    """Every column of a Parquet file, a group before its members.

    Args:
        read: the bytes of the file from the first position up to, not including, the second.
        size: the size of the file, in bytes.

    Raises:
        NotParquet: the message says why.
    """
    start = _start(read(size - TAIL, size) if size > TAIL else b"", size)
    footer = read(start, size - TAIL)
    try:
        return _columns(iter(Thrift(footer).struct(until=SCHEMA)[SCHEMA]))
    except (LookupError, TypeError, AttributeError, UnicodeDecodeError, StopIteration):
        raise NotParquet("its footer is broken") from None


LONGEST_PREFIX = 256 * 1024
"""The longest prefix that is searched for: this reader takes a second for each megabyte."""


def schema_prefix(footer: bytes) -> bytes:
    """The bytes of a footer up to the end of its columns; empty if that is not found.

    Files whose footers begin in the same way have the same columns.
    """
    thrift = Thrift(footer[:LONGEST_PREFIX])
    try:
        thrift.struct(until=SCHEMA)[SCHEMA]
    except (LookupError, TypeError):
        return b""
    return thrift.consumed


def row_count(file: bytes) -> int:
    """The number of rows of an intact Parquet file."""
    count: int = Thrift(file[footer_start(file) : -TAIL]).struct(until=NUM_ROWS)[NUM_ROWS]
    return count


LONGEST_END = 16 * 1024
"""How far from the end the writer is searched for; five bytes for each column follow it."""

CREATED_BY = re.compile(b"[\x18\x28]")
"""How field 6 of FileMetaData, a text, begins after field 5 or field 4."""


def created_by(read: Callable[[int, int], bytes], size: int) -> str:
    """The program that wrote a Parquet file; empty if its footer does not name it.

    Only the end of the footer is read, because statistics of many row groups come before it: the
    writer is the text after which the rest of the struct takes exactly the rest of the footer.

    Args, Raises: as `columns_of`.
    """
    tail = read(max(0, size - LONGEST_END), size)
    footer = tail[:-TAIL][-(size - TAIL - _start(tail[-TAIL:], size)) :]
    for match in reversed([*CREATED_BY.finditer(footer)]):  # most are before it
        thrift = Thrift(footer[match.start() :])
        try:
            writer = next(iter(thrift.struct().values()))
            if len(thrift.consumed) == len(footer) - match.start():
                return str(writer.decode())
        except (LookupError, AttributeError, UnicodeDecodeError):
            pass  # these bytes only look like the beginning of the field
    return ""


VARIANT_WRITERS = {"DuckDB version v": (2, 0, 0), "parquet-mr version ": (1, 17, 0)}
"""Programs whose variants conform to the specification, and their first such versions.

DuckDB 1.5 calls keys sorted that are not, makes groups optional that are required, and writes NULL
as a variant that is null. parquet-mr is that of Java, and so of Spark; Iceberg 1.11 has 1.17.1.
"""


def writes_variants(writer: str) -> bool:
    """Whether every client can read the variants of a program; development versions do not count.

    Args:
        writer: as `created_by` has it.
    """
    return _has_reached(VARIANT_WRITERS, writer)


NAN_WRITERS = {"DuckDB version v": (1, 4, 0)}
"""Programs that write no bounds of floats for a row group with NaN, and the first version that is
known to. DuckDB 1.4.0, 1.5.5 and 2.0.1 were measured; no earlier one writes Iceberg tables."""


def bounds_exclude_nan(writer: str) -> bool:
    """Whether a program leaves out the bounds of floats where a row group has NaN. Others write the
    bounds of the other values.

    Args: as `writes_variants`.
    """
    return _has_reached(NAN_WRITERS, writer)


def _has_reached(programs: Mapping[str, tuple[int, ...]], writer: str) -> bool:
    """Whether a writer is one of these programs, in its first version or a later one."""
    for program, first in programs.items():
        version = re.match(r"(\d+)\.(\d+)\.(\d+)(?= |$)", writer.removeprefix(program))
        if writer.startswith(program) and version:
            return tuple(map(int, version.groups())) >= first
    return False


def footer_start(file: bytes) -> int:
    """The position at which the footer begins; it ends `TAIL` bytes before the end of the file.

    Raises: as `columns_of`.
    """
    return _start(file[-TAIL:] if len(file) > TAIL else b"", len(file))


def read_footer(
    read: Callable[[int, int], bytes], size: int, footer_size: int | None = None
) -> tuple[int, bytes]:
    """Where the footer begins, and all bytes of the file from there on.

    Args:
        footer_size: the size that it should have; if that is right, one request is enough.

    Raises: as `columns_of`.
    """
    first = max(0, size - TAIL - (footer_size or 0))
    end = read(first, size)
    start = _start(end[-TAIL:] if size > TAIL else b"", size)
    return start, end[start - first :] if start >= first else read(start, first) + end


def _start(tail: bytes, size: int) -> int:
    """The position at which the footer begins, from the last bytes of the file."""
    if tail[4:] == b"PARE":
        raise NotParquet("its footer is encrypted")
    if tail[4:] != b"PAR1":
        raise NotParquet("it does not end as a Parquet file does")
    start = size - TAIL - int.from_bytes(tail[:4], "little")
    if start < len(b"PAR1"):
        raise NotParquet("its footer is longer than the file")
    return start


def _columns(elements: Iterator[dict[int, Any]]) -> list[Column]:
    columns: list[Column] = []

    def walk(above: tuple[str, ...], parent: str | None) -> None:
        if len(above) > MOST_LEVELS:
            raise NotParquet(f"its columns are nested more than {MOST_LEVELS} deep")
        element = next(elements)
        children, repetition = element.get(NUM_CHILDREN, 0), element.get(REPETITION_TYPE)
        # list -> repeated group -> element; map -> repeated group -> key, value
        if parent in NESTED.values() and repetition == REPEATED and children:
            inner = "ENTRY" if parent == "LIST" else "PAIR"
            for _ in range(children):
                walk(above, inner)
            return
        name = "element" if parent == "ENTRY" else element[NAME].decode()
        columns.append(Column((*above, name), element.get(FIELD_ID), _decimals(element)))
        for _ in range(children):
            walk((*above, name), NESTED.get(element.get(CONVERTED_TYPE, -1)))

    for _ in range(next(elements)[NUM_CHILDREN]):
        walk((), None)
    return columns


def _decimals(element: dict[int, Any]) -> int | None:
    """The decimal places of a time; DuckDB reads every INT96 as microseconds."""
    logical = element.get(LOGICAL_TYPE, {})
    for member in (TIME, TIMESTAMP):
        for unit in logical.get(member, {}).get(UNIT, {}):
            return UNIT_DECIMALS[unit]
    if element.get(TYPE) == INT96:
        return 6
    return CONVERTED_DECIMALS.get(element.get(CONVERTED_TYPE, -1))
