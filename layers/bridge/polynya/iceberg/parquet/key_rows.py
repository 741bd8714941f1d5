"""Which rows of data files have one of the keys of equality delete files.

https://iceberg.apache.org/spec/#equality-delete-files

A file is read as a `SparseFile`: its footer and the chunks of the key columns, in an otherwise
empty file of its size.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...runtime.isolation import isolated
from ..deletion_vector import positions_of_array
from ..sandbox import Unreadable, sandbox
from ..types import Field, Primitive
from .column_values import Element, elements, value_of, value_type
from .footer_limits import checked
from .sparse_files import SparseFile, write_sparse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_VALUES = 200
"""The most values of a key column that are given one by one; more become ranges."""

MOST_RANGES = 8


class TooManyKeys(ValueError):
    """The files have more keys than one commit may delete."""


class KeyColumn(NamedTuple):
    """The values of one column of the keys, as DuckDB's texts."""

    has_null: bool
    values: tuple[str, ...]
    """All of them, if they are few; else empty."""
    ranges: tuple[tuple[str, str], ...]
    """Disjoint ranges that hold all of them, ascending; both ends are values."""


class Keys(NamedTuple):
    """The keys of some equality delete files."""

    number: int
    """How many different ones."""
    columns: tuple[KeyColumn, ...]


@isolated
def keys_of(delete_files: Sequence[bytes], key: Sequence[Field], most: int) -> Keys:
    """The keys of equality delete files.

    Args:
        delete_files: each has all columns of the key, by field id.
        key: the columns, all of primitive types.
        most: how many there may be. DuckDB takes 100 MB for two million of one number.

    Raises:
        Unreadable: a file lacks a column, or is damaged.
        TooManyKeys: there are more than `most`.
        OutOfTime: no time is left in the budget.
    """
    with _keys(delete_files, key, most) as (con, _):
        [[count]] = con.execute("SELECT count(*) FROM keys").fetchall()
        return Keys(count, tuple(_key_column(con, f"k{n}") for n in range(len(key))))


# The width of a gap is the difference of the values, for numbers and times.
VALUES = """
CREATE TEMP TABLE key_values AS SELECT value, {number} AS number FROM (
  SELECT DISTINCT {column} AS value FROM keys WHERE {column} IS NOT NULL)"""

STARTS = f"""
WITH gaps AS (
  SELECT value, lag(value) OVER by_value AS before,
    number - lag(number) OVER by_value AS width
  FROM key_values WINDOW by_value AS (ORDER BY value)),
starts AS (
  SELECT value, before FROM gaps
  ORDER BY before IS NULL DESC, width DESC NULLS LAST LIMIT {MOST_RANGES})
SELECT CAST(value AS VARCHAR), CAST(coalesce(lead(before) OVER (ORDER BY value),
  (SELECT max(value) FROM key_values)) AS VARCHAR)
FROM starts ORDER BY value"""

NUMBERS = {
    **dict.fromkeys(("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"), "TRY(epoch(value))"),
    **dict.fromkeys(("BIGINT", "DECIMAL", "INTEGER"), "value::DOUBLE"),
}
"""SQL of a value as a number, by DuckDB type."""


def _key_column(con: "DuckDBPyConnection", column: str) -> KeyColumn:
    [[has_null, type_]] = con.execute(
        f"SELECT bool_or({column} IS NULL), max(typeof({column})) FROM keys"
    ).fetchall()
    number = NUMBERS.get((type_ or "").partition("(")[0], "NULL")
    con.execute(VALUES.format(column=column, number=number))
    [[count]] = con.execute("SELECT count(*) FROM key_values").fetchall()
    values: list[tuple[str]] = []
    ranges: list[tuple[str, str]] = []
    if count <= MOST_VALUES:
        sql = "SELECT CAST(value AS VARCHAR) FROM key_values ORDER BY value"
        values = con.execute(sql).fetchall()
    else:
        ranges = con.execute(STARTS).fetchall()
    con.execute("DROP TABLE key_values")
    return KeyColumn(bool(has_null), tuple(value for (value,) in values), tuple(ranges))


@isolated
def key_chunks(
    files: Sequence[SparseFile], field_ids: Sequence[int]
) -> list[list[tuple[int, int]]]:
    """Where each file has the chunks of columns at its top level: (first byte, number of bytes).

    Args:
        files: only their footers are needed.

    Raises:
        Unreadable: a footer is broken.
        NotParquet: a file is encrypted, or its footer exceeds a limit.
        OutOfTime: no time is left in the budget.
    """
    with sandbox(reads_file=True) as (con, path):
        paths = write_sparse(files, path.parent)
        numbers = {
            path: _numbers(elements(con, path), field_ids, file.names)
            for path, file in zip(paths, files, strict=True)
        }
        rows = con.execute(CHUNKS, [paths]).fetchall()
        of_files = {path: [*chunks] for path, chunks in groupby(rows, itemgetter(0))}
    return [
        [
            (start, length)
            for _, number, start, length in of_files.get(path, ())
            if number in numbers[path]
        ]
        for path in paths
    ]


# Without a dictionary its offset is absent or 0.
CHUNKS = """
SELECT file_name, column_id, coalesce(nullif(dictionary_page_offset, 0), data_page_offset),
  total_compressed_size
FROM parquet_metadata(?)"""


def _numbers(
    columns: Sequence[Element], field_ids: Sequence[int], names: Mapping[int, str] | None
) -> set[int]:
    """The numbers of the leaf columns at the top level with these field ids."""
    firsts = [0, *accumulate(map(_leaves, columns))]
    chosen = _columns_by_id(columns, names, field_ids).values()
    return {first for first, column in zip(firsts, columns, strict=False) if column in chosen}


def _leaves(element: Element) -> int:
    return sum(map(_leaves, element.children)) if element.children else 1


def _columns_by_id(
    columns: Sequence[Element], names: Mapping[int, str] | None, field_ids: Sequence[int]
) -> dict[int, Element]:
    """The columns of these field ids that a file has."""
    if names is None:
        by_id = {column.field_id: column for column in columns if column.field_id is not None}
        if not by_id:
            raise Unreadable("its columns have no field ids")
    else:
        by_name = {column.name: column for column in columns}
        by_id = {id_: by_name[name] for id_, name in names.items() if name in by_name}
    return {id_: by_id[id_] for id_ in field_ids if id_ in by_id}


@isolated
def rows_with_keys(
    delete_files: Sequence[bytes], key: Sequence[Field], files: Sequence[SparseFile]
) -> list[Sequence[int]]:
    """The positions of the rows that have one of the keys, ascending, for each file.

    NULL equals NULL.

    Args:
        delete_files, key: as for `keys_of`.
        files: they have the chunks of the key's columns.

    Raises: as `keys_of` (which has checked how many they are) and `key_chunks`.
    """
    positions: list[Sequence[int]] = []
    is_same = " AND ".join(f"k{n} IS NOT DISTINCT FROM f{n}" for n in range(len(key)))
    with _keys(delete_files, key) as (con, folder):
        paths = write_sparse(files, folder)
        for path, file in zip(paths, files, strict=True):
            values = ", ".join(_values(con, path, key, "f", file.names))
            sql = ROWS.format(columns=_columns(con, path), values=values, is_same=is_same)
            positions.append(positions_of_array(con.execute(sql, [path]).fetchnumpy()["pos"]))
    return positions


# Not DuckDB's file_row_number: a user's column may have that name.
ROWS = """
SELECT pos FROM (
  SELECT pos, {values} FROM (
    SELECT row_number() OVER () - 1 AS pos, *
    FROM read_parquet(?, hive_partitioning = false) AS file({columns})))
SEMI JOIN keys ON {is_same} ORDER BY pos"""


def _columns(con: "DuckDBPyConnection", path: str) -> str:
    return ", ".join(f"c{number}" for number in range(len(elements(con, path))))


def _values(
    con: "DuckDBPyConnection",
    path: str,
    key: Sequence[Field],
    prefix: str,
    names: Mapping[int, str] | None = None,
    *,
    has_all: bool = False,
) -> Iterator[str]:
    """SQL of the values of a key in a file, in which the columns are c0, c1 and so on.

    Args:
        prefix: of the names of the values.
        has_all: the file has all columns of the key.
    """
    columns = elements(con, path)
    by_id = _columns_by_id(columns, names, [field.field_id for field in key])
    for n, field in enumerate(key):
        element = by_id.get(field.field_id)
        if element is None and has_all:
            raise Unreadable(f"it lacks the column {field.name} of its equality_ids")
        sql = f"c{columns.index(element)}" if element else ""
        yield f"{value_of(field, sql, element)} AS {prefix}{n}"


@contextmanager
def _keys(
    delete_files: Sequence[bytes], key: Sequence[Field], most: int | None = None
) -> Iterator[tuple["DuckDBPyConnection", Path]]:
    """A connection with the table `keys`, whose columns are k0, k1 and so on; and a folder."""
    assert all(isinstance(field.type, Primitive) for field in key)
    typed = ", ".join(f"k{n} {value_type(field.type)}" for n, field in enumerate(key))
    with sandbox(reads_file=True) as (con, path):
        con.execute(f"CREATE TABLE every_key ({typed})")
        rows = 0
        for number, body in enumerate(delete_files):
            file = str(path.with_name(f"deletes{number}.parquet"))
            Path(file).write_bytes(checked(body))
            [[count]] = con.execute(
                "SELECT coalesce(sum(num_rows), 0) FROM parquet_file_metadata(?)", [file]
            ).fetchall()
            rows += count
            if most is not None and rows > 10 * most:
                raise TooManyKeys(rows)
            values = ", ".join(_values(con, file, key, "k", has_all=True))
            columns = _columns(con, file)
            con.execute(
                f"INSERT INTO every_key SELECT {values} FROM "
                f"read_parquet(?, hive_partitioning = false) AS file({columns})",
                [file],
            )
            os.unlink(file)
        con.execute("CREATE TABLE keys AS SELECT DISTINCT * FROM every_key")
        con.execute("DROP TABLE every_key")
        [[count]] = con.execute("SELECT count(*) FROM keys").fetchall()
        if most is not None and count > most:
            raise TooManyKeys(count)
        yield con, path.parent
