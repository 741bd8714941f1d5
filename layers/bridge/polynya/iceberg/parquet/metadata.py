"""The content of the footers of Parquet files: leaf columns, their types and exact statistics.

DuckDB reads the footers, so that texts of statistics are those that DuckLake stores. It gets files
that consist of a footer alone, without data.
"""

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from ...runtime.isolation import isolated
from ..sandbox import Unreadable, sandbox
from .footer import TAIL, NotParquet, schema_prefix
from .footer_limits import check_footers

MAGIC = b"PAR1"

FILES_AT_A_TIME = 100

MOST_PREFIXES = 16
"""How many different schemas are recognised among the files."""

CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4_RAW")
"""The compressions of data that DuckDB 1.5.5 reads: of those that Parquet has, LZ4 (Hadoop's) and
LZO are missing."""


class Footer(NamedTuple):
    """The end of a Parquet file, from the first byte of the footer."""

    size: int
    """Bytes of the whole file."""
    tail: bytes


class RowGroup(NamedTuple):
    """The statistics of one leaf column in one row group."""

    compressed_size: int
    num_values: int
    """With NULLs."""
    null_count: int | None
    min_value: str | None
    """DuckDB's text; None if the file has no exact value."""
    max_value: str | None
    min_is_exact: bool | None = None
    """Whether the bound is a value, by the file; None: the file does not say."""
    max_is_exact: bool | None = None
    bbox: Mapping[str, float | None] | None = None
    """The box of geometries: xmin, xmax, ymin and so on; None if the file does not say."""
    geometry_types: Sequence[str] | None = None


class Leaf(NamedTuple):
    """A leaf column of a Parquet file, or a variant, which is a group in it."""

    ids: tuple[int | None, ...]
    """The field ids from the top level down to the leaf."""
    path: tuple[str, ...]
    """The names from the top level down to the leaf, without the repeated groups inside lists and
    maps; the child of a list is `element`. In an older form of nesting it includes these groups."""
    type: str
    """The type that DuckDB reads it as; `FIXED(16)` for byte strings of one length."""
    is_required: bool
    """The top-level column, which the leaf is or is in, cannot be NULL."""
    width: int = 1
    """The number of Parquet's own leaves."""

    @property
    def name(self) -> str:
        """The path, for messages."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class ParquetMetadata:
    """The content of a file's footer."""

    file_size: int
    footer_size: int
    num_rows: int
    leaves: tuple[Leaf, ...]
    """One object for all files of the same columns."""
    row_groups: tuple[tuple[RowGroup, ...], ...]
    """For each leaf, the statistics in each row group."""
    writer: str = ""
    """The program that wrote the file; empty if it does not say."""

    @property
    def row_group_count(self) -> int:
        """The number of row groups."""
        return max(map(len, self.row_groups), default=0)


FILES = """
SELECT file_name, num_rows, footer_size, encryption_algorithm, coalesce(created_by, '')
FROM parquet_file_metadata(?)"""

OTHER_TIME = "TIME in other units than microseconds"
"""The type that Polynya gives to such times: DuckDB calls them TIME like those in microseconds."""

PLAIN_VARIANT = "VARIANT"
SHREDDED_VARIANT = "VARIANT with shredded fields"
"""The types that Polynya gives to groups which are variants: DuckDB names no type of a group."""

# A geography, or a geometry with another coordinate reference system than the default, keeps
# another type, which DuckLake does not have.
SCHEMAS = f"""
SELECT file_name, name, coalesce(num_children, 0), repetition_type, coalesce(converted_type, ''),
  coalesce(logical_type, ''), field_id,
  CASE WHEN type = 'FIXED_LEN_BYTE_ARRAY' AND duckdb_type = 'BLOB'
    THEN concat('FIXED(', type_length, ')')
    WHEN type = 'INT96' THEN type
    WHEN duckdb_type = 'TIME' AND (type = 'INT32' OR logical_type LIKE '%NANOS=Nano%')
    THEN '{OTHER_TIME}'
    WHEN logical_type = 'GeometryType(crs=<null>)' THEN 'GEOMETRY'
    WHEN logical_type LIKE 'Geo%' THEN logical_type
    WHEN logical_type LIKE 'TimestampType(isAdjustedToUTC=1%NANOS=Nano%' THEN 'TIMESTAMPTZ_NS'
    ELSE duckdb_type END
FROM parquet_schema(?)"""

# Columns are read as a whole: rows would take longer in Python, and lists in DuckDB.
CHUNKS = """
SELECT file_name, compression, row_group_id, row_group_num_rows, column_id, total_compressed_size,
  num_values, stats_null_count, CASE WHEN min_is_exact IS NOT FALSE THEN stats_min_value END AS low,
  CASE WHEN max_is_exact IS NOT FALSE THEN stats_max_value END AS high, min_is_exact, max_is_exact,
  geo_bbox, geo_types
FROM parquet_metadata(?)"""


@isolated
def metadata(footers: Sequence[Footer]) -> list[ParquetMetadata]:
    """The content of each footer, in order.

    Raises:
        NotParquet: a file is broken or encrypted, its footer exceeds a limit, or DuckDB does not
            read its compression.
        OutOfTime: no time is left in the budget.
    """
    check_footers(footer.tail[:-TAIL] for footer in footers)
    files: list[ParquetMetadata] = []
    try:
        with sandbox(reads_file=True) as (con, path):
            leaves_by_prefix: dict[bytes, tuple[Leaf, ...]] = {}
            names: list[str] = []
            for start in range(0, len(footers), FILES_AT_A_TIME):
                part = footers[start : start + FILES_AT_A_TIME]
                names = _write(path, start, part, names)
                leaves = _leaves_of(con, names, part, leaves_by_prefix)
                rows = {name: row for name, *row in con.execute(FILES, [names]).fetchall()}
                *columns, geo_types = (
                    column.tolist() for column in con.execute(CHUNKS, [names]).fetchnumpy().values()
                )
                geo_types = [types if types is None else types.tolist() for types in geo_types]
                chunks = _columns_by_file([*columns, geo_types])
                files += [
                    _file(footer.size, rows[name], leaves[name], chunks[name])
                    for name, footer in zip(names, part, strict=True)
                ]
    except Unreadable:
        raise NotParquet("its footer cannot be read") from None
    return files


def _write(path: Path, first: int, footers: Sequence[Footer], earlier: list[str]) -> list[str]:
    """Write files that consist of a footer, and return their names.

    Args:
        first: the number of the first file.
        earlier: files that are no longer needed, which get the new names and contents: to create a
            file takes ten times as long.
    """
    names = [str(path.with_name(f"{first + n}.parquet")) for n in range(len(footers))]
    for old, new in zip(earlier, names, strict=False):
        os.rename(old, new)
    for name, footer in zip(names, footers, strict=True):
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
        with open(descriptor, "wb") as file:
            file.write(MAGIC + footer.tail)
            file.truncate()
    return names


def _columns_by_file(columns: list[list[Any]]) -> dict[str, list[list[Any]]]:
    """The other columns of each file, by the first one, which names the file; they may be empty.

    The sandbox has one thread, so that the rows of a file follow each other.
    """
    names, *columns = columns
    of_files: dict[str, list[list[Any]]] = defaultdict(lambda: [[] for _ in columns])
    start = 0
    for name, rows in groupby(names):
        end = start + sum(1 for _ in rows)
        of_files[name] = [column[start:end] for column in columns]
        start = end
    return of_files


def _leaves_of(
    con: Any,
    names: Sequence[str],
    footers: Sequence[Footer],
    leaves_by_prefix: dict[bytes, tuple[Leaf, ...]],
) -> dict[str, tuple[Leaf, ...]]:
    """The leaves of each file. Most files of a commit share a schema, which DuckDB reads once.

    Args:
        leaves_by_prefix: those of earlier files, by the beginning of their footers; it grows.
    """
    same: dict[bytes, list[str]] = defaultdict(list)
    prefixes = [*leaves_by_prefix]
    for name, footer in zip(names, footers, strict=True):
        prefix = next(
            (candidate for candidate in prefixes if footer.tail.startswith(candidate)), None
        )
        if prefix is None:
            prefix = schema_prefix(footer.tail) if len(prefixes) < MOST_PREFIXES else b""
            prefixes += [prefix] if prefix else []
        same[prefix or name.encode()].append(name)
    firsts = [group[0] for prefix, group in same.items() if prefix not in leaves_by_prefix]
    elements = con.execute(SCHEMAS, [firsts]).fetchall() if firsts else []
    leaves = {
        name: tuple(_leaves(element[1:] for element in of_file))
        for name, of_file in groupby(elements, itemgetter(0))
    }
    of_files = {}
    for prefix, group in same.items():
        shared = leaves_by_prefix.get(prefix) or leaves[group[0]]
        if prefix in prefixes:
            leaves_by_prefix[prefix] = shared
        of_files.update(dict.fromkeys(group, shared))
    return of_files


def _file(
    file_size: int, row: list[Any], leaves: tuple[Leaf, ...], chunks: list[list[Any]]
) -> ParquetMetadata:
    num_rows, footer_size, encryption, writer = row
    if encryption:
        raise NotParquet("it is encrypted")
    codecs, numbers, row_counts, columns, *values = chunks
    if unreadable := sorted(set(codecs) - set(CODECS)):
        raise NotParquet(
            f"it is compressed with {unreadable[0]}, and DuckDB, and so DuckLake, reads only "
            f"{', '.join(CODECS)}: set write.parquet.compression-codec, and write it again"
        )
    # Some readers use the number in the file, others those of the row groups.
    rows = [count for count, column in zip(row_counts, columns, strict=True) if column == 0]
    if num_rows != sum(rows) or min(rows, default=0) < 0:
        raise NotParquet("its number of rows differs from that of its row groups")
    places = [number for number, leaf in enumerate(leaves) for _ in range(leaf.width)]
    if max(columns, default=-1) >= len(places):
        raise NotParquet("it has other columns than its schema says")
    groups = list(map(RowGroup, *values))
    by_leaf: list[dict[int, RowGroup]] = [{} for _ in leaves]
    for place in sorted(range(len(groups)), key=lambda place: (numbers[place], columns[place])):
        of_leaf, group = by_leaf[places[columns[place]]], groups[place]
        first = of_leaf.get(numbers[place])
        if first is not None:  # a variant: all its leaves have its size, the first one its counts
            group = first._replace(compressed_size=first.compressed_size + group.compressed_size)
        of_leaf[numbers[place]] = group
    row_groups = tuple(tuple(of_leaf.values()) for of_leaf in by_leaf)
    return ParquetMetadata(file_size, footer_size, num_rows, leaves, row_groups, writer)


REPEATED_GROUPS = {"LIST": "list", "MAP": "key_value"}
"""The names of the repeated groups inside lists and maps."""

ENTRY = "ENTRY"
"""The repeated group inside a list."""


def _leaves(elements: Iterator[tuple[Any, ...]]) -> Iterator[Leaf]:
    """The leaves, in order."""

    def walk(
        ids: tuple[int | None, ...],
        above: tuple[str, ...],
        parent: str,
        is_required: bool | None = None,
    ) -> Any:
        name, children, repetition, *annotation, field_id, type_ = next(elements)
        is_group = repetition == "REPEATED" and children and parent in REPEATED_GROUPS
        # The repeated group inside a list or a map has no counterpart in the schema.
        path = ids if is_group else (*ids, field_id)
        if is_group:
            names = above if name == REPEATED_GROUPS[parent] else (*above, name)
        else:
            names = (*above, "element" if parent == ENTRY else name)
        if is_required is None:
            is_required = repetition == "REQUIRED"
        if not children:
            yield Leaf(path, names, type_, is_required)
        kind = ENTRY if is_group and parent == "LIST" else _nesting(*annotation)
        walks = (walk(path, names, kind, is_required) for _ in range(children))
        inner = list(chain.from_iterable(walks))
        level = len(names) + 1
        has_metadata = any(leaf.path[-1] == "metadata" for leaf in inner if len(leaf.path) == level)
        if has_metadata and all(set(leaf.ids[len(path) :]) == {None} for leaf in inner):
            is_plain = {leaf.path[len(names) :] for leaf in inner} == {("metadata",), ("value",)}
            variant = PLAIN_VARIANT if is_plain else SHREDDED_VARIANT
            yield Leaf(path, names, variant, is_required, len(inner))
        else:
            yield from inner

    root = next(elements)
    for _ in range(root[1]):
        yield from walk((), (), "")


def _nesting(converted: str, logical: str) -> str:
    """LIST or MAP, if a group is one; else empty."""
    if converted == "LIST" or logical.startswith("ListType"):
        return "LIST"
    is_map = converted in {"MAP", "MAP_KEY_VALUE"} or logical.startswith("MapType")
    return "MAP" if is_map else ""


def footer_length(tail: bytes) -> int:
    """The number of bytes from the first one of the footer to the end of the file.

    Args:
        tail: the end of the file, at least its last eight bytes.

    Raises:
        NotParquet: it is no Parquet file, or encrypted.
    """
    if tail[-4:] == b"PARE":
        raise NotParquet("its footer is encrypted")
    if tail[-4:] != MAGIC:
        raise NotParquet("it does not end as a Parquet file does")
    return int.from_bytes(tail[-TAIL:-4], "little") + TAIL
