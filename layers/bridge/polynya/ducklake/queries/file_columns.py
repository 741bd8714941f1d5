"""Data files with their partition values and statistics, column by column, chunk after chunk.

PostgreSQL concatenates the values of a column, because pg8000 reads rows one by one: reading a row
for each file and column would cost more than writing them as Avro. All chunks are read in one pass,
which needs no index.

`READ` is SQL for the values of bounds, which DuckLake keeps as texts. A statement reads the texts
of every file, so they are checked without regular expressions where that is possible: one takes
PostgreSQL ten times as long as comparing the characters that are left without the digits.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from pg8000.native import Connection

from ..rows.files import ChunkColumns, FileColumns, PartitionKeyColumn, StatsColumn, Texts
from ..rows.objects import Lake, Window
from .catalog import fragment, sql_for_version

AT_ONCE = 64
"""Rows that are fetched from a cursor at a time; each row is one column of one chunk."""

FEW = 2
"""The most chunks that are read without a cursor. PostgreSQL uses several cores only without one,
and the rows that a commit has changed must be found among all statistics of the lake."""


class Chunk(NamedTuple):
    """Data files with an id in [first_id, last_id], as of a snapshot."""

    first_id: int
    last_id: int
    window: Window

    @property
    def version(self) -> int:
        """The snapshot."""
        return self.window.snapshot_id


def _numbers(expression: str) -> str:
    """SQL for all numbers as one text; NULL is -1, because none of them can be negative."""
    return f"string_agg(coalesce({expression}, -1)::text, ',')"


def _texts(expression: str) -> str:
    """SQL for the number of characters of each text, and for all texts as one."""
    return f"{_numbers(f'length({expression})')}, coalesce(string_agg({expression}, ''), '')"


# The number of a row's chunk, from 1 on, by one binary search in the array of their first ids.
PLACE = "width_bucket({0}.data_file_id, CAST(:starts AS bigint[])) AS place"
SPAN = "{0}.table_id = :table_id AND {0}.data_file_id BETWEEN :first_id AND :last_id"

# New ids belong to the last chunk; files that were added after its version may be most of a table.
SEEN = f"""{SPAN}
  AND {{0}}.data_file_id <= (SELECT max(every.data_file_id) FROM ducklake_data_file AS every
    WHERE every.table_id = :table_id AND every.begin_snapshot <= :newest)"""

# A file that may hold rows which were added in the window, or a new file with rows that were
# visible before: DuckLake rewrites its history.
IS_AGAIN = """f.begin_snapshot <= base_id AND coalesce(f.end_snapshot > version, TRUE)
  AND (adds_rows AND coalesce({data_partial_max} > base_id, FALSE)
    OR f.data_file_id >= first_file_id AND f.data_file_id < end_file_id)"""

# string_agg takes rows in the order of the subquery (PostgreSQL manual, Aggregate Functions), so
# that the texts of all columns have the same order after one sort. Of the files that ended in the
# window only those belong to the chunk that were visible before it: nobody saw the others.
FILES = f"""
SELECT place, {_numbers("data_file_id")}, {_numbers("begin_snapshot")},
  {_numbers("end_snapshot")}, {_numbers("record_count")}, {_numbers("file_size_bytes")},
  {_numbers("partition_id")}, {_numbers("mapped")}, {_numbers("path_is_relative::int")},
  {_numbers("({again})::int")}, {_texts("path")}, {{row_ids}}, {{footer_sizes}}
FROM (SELECT {PLACE.format("f")}, f.*, {{mapping_id}} AS mapped FROM ducklake_data_file AS f
      WHERE {SPAN.format("f")} ORDER BY place, f.data_file_id) AS f
CROSS JOIN LATERAL (SELECT
  (CAST(:bases AS bigint[]))[place] AS base_id, (CAST(:versions AS bigint[]))[place] AS version,
  (CAST(:first_files AS bigint[]))[place] AS first_file_id,
  (CAST(:end_files AS bigint[]))[place] AS end_file_id,
  (CAST(:adds_rows AS boolean[]))[place] AS adds_rows) AS w
WHERE begin_snapshot <= version
  AND (end_snapshot > version OR end_snapshot IS NULL
    OR end_snapshot > base_id AND begin_snapshot <= base_id)
GROUP BY place ORDER BY place"""

PARTITION_KEYS = f"""
SELECT place, partition_key_index, {_numbers("data_file_id")}, {_texts("partition_value")}
FROM (SELECT {PLACE.format("v")}, v.* FROM ducklake_file_partition_value AS v
      WHERE {SEEN.format("v")} ORDER BY place, v.partition_key_index, v.data_file_id) AS v
GROUP BY place, partition_key_index ORDER BY place, partition_key_index"""

STATS = f"""
SELECT place, column_id, {_numbers("data_file_id")}, {_numbers("column_size_bytes")},
  {_numbers("value_count")}, {_numbers("null_count")}, {_numbers("contains_nan::int")},
  {_texts("min_value")}, {_texts("max_value")}, {{inexact}}
FROM (SELECT {PLACE.format("s")}, s.* FROM {{stats_table}} AS s
      WHERE {SEEN.format("s")} AND s.column_id = ANY(CAST(:column_ids AS bigint[]))
      ORDER BY place, s.column_id, s.data_file_id) AS s
GROUP BY place, column_id ORDER BY place, column_id"""

# Mostly none: the ids of these files take less than a flag for each file.
INEXACT = "coalesce(string_agg(data_file_id::text, ',') FILTER (WHERE NOT {0}), '')"


def file_columns(
    con: Connection,
    lake: Lake,
    table_id: int,
    chunks: Sequence[Chunk],
    column_ids: Iterable[int],
    *,
    with_keys: bool,
    with_row_ids: bool = False,
    with_footer_sizes: bool = False,
) -> Iterator[ChunkColumns]:
    """The data files of each chunk that are visible at its version, or ended at it.

    Args:
        chunks: adjacent, in ascending order.
        column_ids: the columns whose statistics are read.
        with_keys: read partition values too.
        with_row_ids: read row_id_start too.
        with_footer_sizes: read footer_size too.
    """
    span = {
        "table_id": table_id,
        "starts": [chunk.first_id for chunk in chunks],
        "first_id": chunks[0].first_id,
        "last_id": chunks[-1].last_id,
    }
    windows = [chunk.window for chunk in chunks]
    of_windows: dict[str, list[int] | list[bool]] = {
        "bases": [window.base_id for window in windows],
        "versions": [window.snapshot_id for window in windows],
        "first_files": [window.first_file_id for window in windows],
        "end_files": [window.end_file_id for window in windows],
        "adds_rows": [window.adds_rows for window in windows],
    }
    row_ids = _numbers("row_id_start") if with_row_ids else "''"
    footer_sizes = _numbers("footer_size") if with_footer_sizes else "''"
    again = sql_for_version(lake, IS_AGAIN)
    more = {"row_ids": row_ids, "footer_sizes": footer_sizes}
    files_sql = sql_for_version(lake, FILES, again=again, **more)
    flags = (fragment(lake, name) for name in ("min_is_exact", "max_is_exact"))
    inexact = ", ".join("''" if flag == "NULL" else INEXACT.format(flag) for flag in flags)
    stats_sql = sql_for_version(lake, STATS, inexact=inexact)
    rows = _rows if len(chunks) <= FEW else _rows_by_cursor
    if rows is _rows_by_cursor:
        # A build that ended early in this transaction, because a table was refused, has left
        # cursors.
        con.run("CLOSE ALL")
    files = _group_by_place(rows(con, "files", files_sql, span | of_windows))
    span["newest"] = max(window.snapshot_id for window in windows)
    keys = _group_by_place(rows(con, "partition_keys", PARTITION_KEYS, span) if with_keys else ())
    stats = _group_by_place(
        rows(con, "stats", stats_sql, span | {"column_ids": sorted(column_ids)})
    )
    places = range(1, len(chunks) + 1)
    for (file_row,), of_keys, of_stats in zip(
        _aligned(files, places), _aligned(keys, places), _aligned(stats, places), strict=True
    ):
        yield ChunkColumns(
            FileColumns(*[*file_row[:9], Texts(*file_row[9:11]), *file_row[11:]]),
            [PartitionKeyColumn(*[*row[:2], Texts(*row[2:])]) for row in of_keys],
            [
                StatsColumn(*[*row[:6], Texts(*row[6:8]), Texts(*row[8:10]), *row[10:]])
                for row in of_stats
            ],
        )


def _rows(con: Connection, _: str, sql: str, parameters: dict[str, Any]) -> Iterable[list[Any]]:
    return con.run(sql, **parameters)  # type: ignore[no-any-return]


def _rows_by_cursor(
    con: Connection, name: str, sql: str, parameters: dict[str, Any]
) -> Iterator[list[Any]]:
    """Rows of a cursor, fetched as they are needed."""
    con.run(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}", **parameters)
    while page := con.run(f"FETCH FORWARD {AT_ONCE} FROM {name}"):
        yield from page
    con.run(f"CLOSE {name}")


Places = Iterator[tuple[int, list[list[Any]]]]
"""The rows of each place, without the place."""


def _group_by_place(rows: Iterable[list[Any]]) -> Places:
    for place, group in groupby(rows, key=lambda row: row[0]):
        yield place, [row[1:] for row in group]


def _aligned(placed: Places, places: Iterable[int]) -> Iterator[list[list[Any]]]:
    """The rows of every place; an empty list for a place without rows."""
    coming = next(placed, None)
    for place in places:
        if coming is not None and coming[0] == place:
            yield coming[1]
            coming = next(placed, None)
        else:
            yield []


WITHOUT_DIGITS = "translate(@, '0123456789', '')"

# A sign only at the beginning, and at least one digit. No text that these conditions accept is out
# of range: PostgreSQL would refuse the whole statement.
NUMBER = f"""length(@) <= 80 AND {WITHOUT_DIGITS} IN ('', '-', '.', '-.')
  AND strpos(substr(@, 2), '-') = 0 AND ltrim(@, '-.') <> ''"""

DATE = f"@ LIKE '____-__-__' AND {WITHOUT_DIGITS} = '--'"
TIME = f"""(@ LIKE '__:__:__' OR @ LIKE '__:__:__.%') AND {WITHOUT_DIGITS} IN ('::', '::.')"""
TIMESTAMP = f"""(@ LIKE '____-__-__ __:__:__' OR @ LIKE '____-__-__ __:__:__.%')
  AND {WITHOUT_DIGITS} IN ('-- ::', '-- ::.')"""
# As writers other than DuckDB spell them. Texts in zones other than UTC have another order.
UTC_TIMESTAMP = (
    "@ ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?"
    "(\\+00(:00)?)ZONE$'"
)
# The exponents end below those of the largest numbers: PostgreSQL refuses what is out of range.
REAL = "@ ~ '^-?([0-9]{1,20}(\\.[0-9]{1,20})?|[0-9](\\.[0-9]{1,20})?e[+-]?[0-2]?[0-9])$'"
DOUBLE = REAL.replace("[0-2]?[0-9])", "[0-2]?[0-9]{1,2})")
BINARY = "@ ~ '^([0-9A-Fa-f]{2})*$'"

# Without the zeros at the end of a fraction, texts have the order of the times.
TRIMMED = "CASE WHEN @ LIKE '%.%' THEN rtrim(rtrim(@, '0'), '.') ELSE @ END"
OF_UTC = TRIMMED.replace("@", "replace(split_part(@, '+', 1), 'T', ' ')")


def _guarded(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


READ = {
    # DuckLake writes 0 and 1 in statistics of files, true and false in partition values.
    "boolean": "CASE WHEN @ IN ('0', 'false') THEN 0 WHEN @ IN ('1', 'true') THEN 1 END",
    "integer": _guarded(NUMBER, "CAST(@ AS numeric)"),
    "decimal": _guarded(NUMBER, "CAST(@ AS numeric)"),
    "float": _guarded(REAL, "CAST(@ AS real)"),
    "double": _guarded(DOUBLE, "CAST(@ AS double precision)"),
    "string": "@",
    "binary": _guarded(BINARY, "upper(@)"),
    "date": _guarded(DATE, "@"),
    "time": _guarded(TIME, TRIMMED),
    **dict.fromkeys(
        ("timestamp", "timestamp_ns"),
        f"CASE WHEN {TIMESTAMP} THEN {TRIMMED} "
        f"WHEN {UTC_TIMESTAMP.replace('ZONE', '?')} THEN {OF_UTC} END",
    ),
    **dict.fromkeys(
        ("timestamptz", "timestamptz_ns"), _guarded(UTC_TIMESTAMP.replace("ZONE", ""), OF_UTC)
    ),
}
"""SQL for the value of a bound from its text `@`, by form; NULL if it is not certain."""

SQL_TYPES = {
    "boolean": "integer",
    "integer": "numeric",
    "decimal": "numeric",
    "float": "real",
    "double": "double precision",
}
"""The other forms are texts, in the order of their bytes."""
