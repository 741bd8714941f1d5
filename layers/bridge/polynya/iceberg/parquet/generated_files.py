"""The small Parquet files that Iceberg needs: inlined rows and position deletes.

They are written and read with DuckDB in process, because only DuckDB reads its own literals and
casts exactly as DuckLake does.

`replace_field_ids` changes the ids in a footer, which keeps its length.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md

`rows_size`, `deletes_size` and `padded`: a plan of a scan names files that are not built yet, and
clients open a file by its size. So the plan names a size into which the file certainly fits. Zeros
between the pages and the footer fill the rest: readers begin at the end of a file, and the footer
has the position of each page.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...runtime.isolation import isolated
from ...runtime.metrics import observe_seconds
from ..deletion_vector import numbers, positions_of_array
from ..sandbox import HAS_ZONED_NANOSECONDS, Sandbox, literal, quoted, sandbox
from ..types import Field, List, Map, Primitive, Struct, Type, leaf_types
from .footer import footer_start, read_footer
from .footer_limits import checked
from .sparse_files import Part, SparseFile, write_sparse
from .thrift import zigzag

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FILE_PATH_ID = 2147483546
POS_ID = 2147483545
"""Reserved field ids of position delete files (specification, "Reserved Field IDs")."""

SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"
"""In partial data and delete files: the snapshot that the row, or the deletion, belongs to."""

_UNHEX = "unhex(nullif(unnest(string_split(?, ',')), '-'))"
UNNEST = {"BLOB": _UNHEX, "VARCHAR": f"decode({_UNHEX})"}
"""SQL that parses the text that `_hex` writes, by DuckDB type."""


Texts = tuple[str, Sequence[str | bytes | None]]
"""Values of a column, and their DuckDB type: VARCHAR or BLOB."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows in text form, column by column, and the SQL that converts them to the schema."""

    columns: Sequence[Texts | None]
    """Columns c0, c1, …; None if these rows do not have the column."""
    select: Sequence[str]
    """One SQL expression over c0, c1, … for each field."""
    count: int
    keeps_zeros: bool = False
    """A value is -0.0: DuckDB's dictionaries would change it into 0.0, or 0.0 into -0.0."""

    @property
    def types(self) -> dict[int, str]:
        """The DuckDB types of the columns that the rows have, by position."""
        return {place: of[0] for place, of in enumerate(self.columns) if of is not None}


def add_row_lineage(rows: Rows, columns: Sequence[Sequence[int]]) -> Rows:
    """Rows with more columns, of the type `long`."""
    texts: list[Texts] = [("VARCHAR", [str(number) for number in column]) for column in columns]
    places = range(len(rows.columns), len(rows.columns) + len(texts))
    select = [f"CAST(c{place} AS BIGINT)" for place in places]
    return Rows([*rows.columns, *texts], [*rows.select, *select], rows.count, rows.keeps_zeros)


@observe_seconds("Encoding")
def rows_bytes(
    parts: Sequence[Rows], fields: Sequence[Field], *, compression: str = "snappy"
) -> bytes:
    """A Parquet file of all rows, in order, with the fields' ids at every level.

    Args:
        compression: as DuckDB names it.

    Raises:
        Unreadable: a text is not a value of its column's type.
    """
    with sandbox() as (con, path):
        selects = []
        for number, batch in enumerate(_batches(parts)):
            _create(con, f"batch{number}", batch)
            values = zip(*(part.select for part in batch), strict=True)
            named = [
                f"{_case_by_part(sqls)} AS {quoted(field.name)}"
                for sqls, field in zip(values, fields, strict=True)
            ]
            selects.append(f"SELECT {', '.join(named)} FROM batch{number}")
        ids = ", ".join(f"{literal(field.name)}: {_ids(field)}" for field in fields)
        has_dictionaries = not any(part.keeps_zeros for part in parts)
        _copy(
            *(con, " UNION ALL ".join(selects), ids, path),
            has_dictionaries=has_dictionaries,
            compression=compression,
        )
        return _mark_utc(path.read_bytes(), [*leaf_types(fields)])


NANOSECONDS = {"timestamp_ns": "8c121c3c00000000", "timestamptz_ns": "8c111c3c00000000"}
"""The logical types of columns in a footer, in Thrift's compact protocol.

A field TIMESTAMP (8) of a union, whose field 1 is false or true (`isAdjustedToUTC`), and whose
field 2 is the union TimeUnit with the field NANOS (3).
"""


def _mark_utc(file: bytes, types: Sequence[str]) -> bytes:
    """The file, with its columns marked as UTC by their types: DuckDB 1.5 has no such nanoseconds.

    Args:
        types: Iceberg's types of all columns, in order.
    """
    types = [name for name in types if name in NANOSECONDS]
    if "timestamptz_ns" not in types or HAS_ZONED_NANOSECONDS:
        return file
    start = footer_start(file)
    # Values and statistics follow the columns, whose names have no NUL.
    parts = file[start:].split(bytes.fromhex(NANOSECONDS["timestamp_ns"]), len(types))
    if len(parts) <= len(types):
        raise AssertionError("DuckDB writes nanoseconds otherwise")
    logical = [bytes.fromhex(NANOSECONDS[name]) for name in types]
    return file[:start] + b"".join(map(bytes.__add__, parts, [*logical, b""]))


def _batches(parts: Iterable[Rows]) -> list[list[Rows]]:
    """Adjacent parts whose common columns have the same types.

    A batch is one table in DuckDB, which costs milliseconds even with few rows.
    """
    batches: list[list[Rows]] = []
    types: dict[int, str] = {}
    for part in parts:
        if not batches or any(types.get(n, type_) != type_ for n, type_ in part.types.items()):
            batches.append([])
            types = {}
        batches[-1].append(part)
        types |= part.types
    return batches


def _create(con: "DuckDBPyConnection", name: str, parts: Sequence[Rows]) -> None:
    """A table with all columns of the parts; `part` is the number of a row's part."""
    types = {place: type_ for part in parts for place, type_ in part.types.items()}
    unnests = ["unnest(string_split(?, ','))::INTEGER AS part"]
    texts = [",".join(str(n) for n, part in enumerate(parts) for _ in range(part.count))]
    for place, type_ in sorted(types.items()):
        unnests.append(f"{UNNEST[type_]} AS c{place}")
        texts.append(",".join(_hex(_values(part, place)) for part in parts))
    con.execute(f"CREATE TABLE {name} AS SELECT {', '.join(unnests)}", texts)


def _values(part: Rows, place: int) -> Sequence[str | bytes | None]:
    column = part.columns[place] if place < len(part.columns) else None
    return [None] * part.count if column is None else column[1]


def _case_by_part(sqls: Sequence[str]) -> str:
    """One expression for all parts; parts with other columns have another branch."""
    changes = [n for n in range(1, len(sqls)) if sqls[n] != sqls[n - 1]]
    if not changes:
        return sqls[0]
    cases = [f"WHEN part < {n} THEN {sqls[n - 1]}" for n in changes]
    return f"CASE {' '.join(cases)} ELSE {sqls[-1]} END"


@observe_seconds("Encoding")
def position_deletes_bytes(data_file: str, positions: Sequence[int]) -> bytes:
    """A position delete file: the rows of `data_file` that are deleted, ascending."""
    with sandbox() as (con, path):
        con.register("positions", {"pos": numbers(positions)})
        con.execute(
            "CREATE TABLE deleted AS SELECT ?::VARCHAR AS file_path, pos FROM positions",
            [data_file],
        )
        ids = f"file_path: {FILE_PATH_ID}, pos: {POS_ID}"
        _copy(con, "SELECT file_path, pos FROM deleted", ids, path)
        return path.read_bytes()


@isolated
def positions(delete_file: bytes, snapshot_id: int | None = None) -> Sequence[int]:
    """The positions in a delete file, DuckLake's or ours; -1 for NULL.

    Args:
        snapshot_id: for a file that may be partial: only the positions deleted up to this snapshot.

    Raises:
        Unreadable: it is not a delete file, or is damaged.
    """
    with sandbox(reads_file=True) as (con, path):
        path.write_bytes(checked(delete_file))
        # Without the column all of them were deleted at once. The catalog does not always have the
        # snapshot: not if the one that wrote the file has expired.
        is_partial = snapshot_id is not None and _has_column(con, path, SNAPSHOT_COLUMN)
        until = f"WHERE {SNAPSHOT_COLUMN} <= {snapshot_id}" if is_partial else ""
        sql = f"SELECT coalesce(pos::BIGINT, -1) AS pos FROM read_parquet(?) {until}"
        return positions_of_array(con.execute(sql, [str(path)]).fetchnumpy()["pos"])


@isolated
def dated_positions(delete_file: bytes) -> dict[int | None, Sequence[int]]:
    """The positions in a delete file of DuckLake, by the snapshot that deleted them.

    The key None: the file does not have the snapshot, because all were deleted at once.

    Raises:
        Unreadable: it is not a delete file, or is damaged.
    """
    with sandbox(reads_file=True) as (con, path):
        path.write_bytes(checked(delete_file))
        snapshot = SNAPSHOT_COLUMN if _has_column(con, path, SNAPSHOT_COLUMN) else "NULL::BIGINT"
        sql = f"SELECT {snapshot}, list(pos::BIGINT) FROM read_parquet(?) GROUP BY 1 ORDER BY 1"
        return dict(con.execute(sql, [str(path)]).fetchall())


def _has_column(con: "DuckDBPyConnection", path: Path, name: str) -> bool:
    matches = con.execute(
        "SELECT count(*) FROM parquet_schema(?) WHERE name = ?", [str(path), name]
    )
    return matches.fetchall() != [(0,)]


def later_rows(read: Callable[[int, int], bytes], size: int, snapshot_id: int) -> list[int]:
    """The positions of the rows of a partial data file that were added after a snapshot.

    Args:
        read: the bytes of the file from the first position up to, not including, the second.
        size: the size of the file, in bytes.

    Raises:
        NotParquet: it is not a Parquet file of this size.
        Unreadable: it lacks the column, or is damaged.
    """
    return _later_rows(_dated_parts(read, size), size, snapshot_id)


@isolated
def _later_rows(parts: Sequence[Part], size: int, snapshot_id: int) -> list[int]:
    with _sparse_file(SparseFile(size, parts)) as (con, path):
        sql = f"SELECT position FROM ({DATED_ROWS}) WHERE snapshot_id > {snapshot_id}"
        return [row[0] for row in con.execute(sql, [str(path)]).fetchall()]


def row_snapshots(read: Callable[[int, int], bytes], size: int) -> Sequence[int]:
    """The snapshot of each row of a partial data file, in the order of the rows.

    Args, Raises: as `later_rows`.
    """
    return _row_snapshots(_dated_parts(read, size), size)


@isolated
def _row_snapshots(parts: Sequence[Part], size: int) -> Sequence[int]:
    with _sparse_file(SparseFile(size, parts)) as (con, path):
        sql = f"SELECT coalesce(snapshot_id, 0)::BIGINT AS id FROM ({DATED_ROWS}) ORDER BY position"
        return positions_of_array(con.execute(sql, [str(path)]).fetchnumpy()["id"])


# Not DuckDB's file_row_number: a user's column may have that name.
DATED_ROWS = (
    f"SELECT row_number() OVER () - 1 AS position, {SNAPSHOT_COLUMN} AS snapshot_id "
    "FROM read_parquet(?)"
)


def _dated_parts(read: Callable[[int, int], bytes], size: int) -> list[Part]:
    """The footer of a partial data file, and the column with the snapshots of its rows."""
    footer = read_footer(read, size)
    spans = _column_chunks(footer, size, SNAPSHOT_COLUMN)
    return [footer, *((first, read(first, end)) for first, end in spans)]


@isolated
def _column_chunks(footer: Part, size: int, column: str) -> list[tuple[int, int]]:
    with _sparse_file(SparseFile(size, [footer])) as (con, path):
        rows = con.execute(
            "SELECT data_page_offset, dictionary_page_offset, total_compressed_size "
            "FROM parquet_metadata(?) WHERE path_in_schema = ?",
            [str(path), column],
        ).fetchall()
    # Without a dictionary the offset is absent or 0.
    starts = [dictionary if dictionary else data for data, dictionary, _ in rows]
    return [(start, start + length) for start, (_, _, length) in zip(starts, rows, strict=True)]


@contextmanager
def _sparse_file(file: SparseFile) -> Iterator[Sandbox]:
    """A sandbox with one file. Raises: as `write_sparse`."""
    with sandbox(reads_file=True) as (con, path):
        [name] = write_sparse([file], path.parent)
        yield Sandbox(con, Path(name))


def _hex(values: Sequence[str | bytes | None]) -> str:
    """All values as one text: as a list, DuckDB takes a tenth of a millisecond for each."""
    return ",".join(
        "-" if value is None else (value.encode() if isinstance(value, str) else value).hex()
        for value in values
    )


def _ids(field: Field) -> str:
    """FIELD_IDS of DuckDB's COPY: https://duckdb.org/docs/stable/sql/statements/copy"""
    if isinstance(field.type, Primitive):
        return str(field.field_id)
    inner = [f"{literal(member.name)}: {_ids(member)}" for member in field.type.members]
    return "{" + ", ".join([f"__duckdb_field_id: {field.field_id}", *inner]) + "}"


def _copy(
    con: "DuckDBPyConnection",
    select: str,
    ids: str,
    path: Path,
    *,
    has_dictionaries: bool = True,
    compression: str = "snappy",
) -> None:
    more = "" if has_dictionaries else ", DICTIONARY_SIZE_LIMIT 0"
    con.execute(
        f"COPY ({select}) TO {literal(str(path))} "
        f"(FORMAT parquet, COMPRESSION {compression}, FIELD_IDS {{{ids}}}{more})"
    )


def replace_field_ids(footer: bytes, ids: Mapping[int, int]) -> bytes | None:
    """The footer with other field ids; None if one of the old ids is not in it exactly once.

    Args:
        ids: the new ids by the old ones, each as long as the old one: from 2^27 on all are.
    """
    texts = {zigzag(old): zigzag(new) for old, new in ids.items()}
    if any(footer.count(old) != 1 for old in texts):
        return None
    for old, new in texts.items():
        footer = footer.replace(old, new)
    return footer


FILE, COLUMN, VALUE = 4096, 1024, 48
"""Bytes besides texts: of a file, of a column in a row group, and of a value. A value has at most
16 bytes, once in a page and once in a dictionary, an index, two levels, and bits of a filter."""

TEXT_COPIES = 8
"""A text is in a page or a dictionary; the smallest and the largest one are four times in the
footer; and compression may make incompressible bytes a sixth longer."""

GROUP = 100_000
"""Rows of a row group, at least."""


def rows_size(fields: Sequence[Field], rows: int, text_bytes: int) -> int:
    """A size that a file of rows does not exceed.

    Args:
        text_bytes: the length of all rows as text. A value in a list or a map takes at least one.
    """
    names = [*_leaves(fields)]
    is_nested = any(isinstance(field.type, List | Map | Struct) for field in fields)
    values = rows * len(names) + (text_bytes if is_nested else 0)
    texts = text_bytes + (rows + (text_bytes if is_nested else 0)) * _default_bytes(fields)
    return _size(names, rows, values, texts)


def deletes_size(data_file: str, positions: int) -> int:
    """A size that a position delete file of one data file does not exceed."""
    # The path is one entry of a dictionary, and eight times in the statistics of a row group.
    names = [f"file_path{data_file * TEXT_COPIES}", "pos"]
    return _size(names, positions, 2 * positions, len(data_file))


def padded(body: bytes, size: int) -> bytes:
    """Fill a file up to exactly this size.

    Raises:
        ValueError: the file is larger.
    """
    if len(body) > size:
        raise ValueError(f"{len(body)} bytes are more than {size}")
    footer = footer_start(body)
    return body[:footer] + bytes(size - len(body)) + body[footer:]


def _size(names: Sequence[str], rows: int, values: int, text_bytes: int) -> int:
    # Its schema has each name once, and each row group twice: as a path, and in the statistics.
    of_group = sum(COLUMN + 3 * len(name.encode()) for name in names)
    return FILE + (rows // GROUP + 2) * of_group + VALUE * values + TEXT_COPIES * text_bytes


LEVELS: dict[type[Type], str] = {List: "list.", Map: "key_value."}
"""Parquet's levels between a type and its members."""


def _leaves(members: Sequence[Field], prefix: str = "") -> Iterator[str]:
    """The paths of the columns in Parquet."""
    for member in members:
        path = f"{prefix}{member.name}."
        if isinstance(member.type, Primitive):
            yield path
        yield from _leaves(member.type.members, path + LEVELS.get(type(member.type), ""))


def _default_bytes(members: Sequence[Field]) -> int:
    """The length of the defaults, which rows have if they are older than the columns."""
    return sum(
        _default_bytes(member.type.members) + _length(member.initial_default) for member in members
    )


def _length(default: object) -> int:
    return 0 if default is None else len(str(default).encode())
