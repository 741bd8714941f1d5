"""The data files that a scan needs, by their statistics and partition values.

`planned_files` prunes in one statement, by the columns of the filter alone. It skips a file only if
its statistics prove that none of its rows passes. Statistics that are missing, cannot be parsed or
contradict each other keep the file: each test is `IS NOT FALSE` or `IS NOT TRUE`.
"""

import json
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pg8000.native import Connection

from ...runtime import budget
from ..connection.catalog_connection import Statement, select
from ..faults import MAX_ID
from ..rows.files import (
    EVERY_FILE,
    AllOf,
    AnyOf,
    ColumnTest,
    Condition,
    DataFile,
    FilteredColumn,
    PartitionKey,
    PartitionTest,
    PlannedFile,
)
from ..rows.objects import Lake
from . import lifetimes
from .catalog import VISIBLE, fragment, sql_for_version
from .data_files import data_file_columns
from .file_columns import PLACE, READ, SQL_TYPES
from .new_rows import AND_NEW, Earlier, new_rows

FLOATS = ("float", "double")

MOST_JOINS = 8
"""The columns whose statistics, and the keys whose partition values, are read; more tests keep the
file."""

MOST_COMPARED = 10
"""A longer list is an array, for which PostgreSQL takes twice as long for each file."""

# Statistics that no file can have are ignored, as if there were none of the column. The rules are
# those of `mapping.claims`.
STATS = """
  LEFT JOIN (SELECT s.data_file_id, s.column_size_bytes, s.value_count, s.null_count,
      s.contains_nan, s.min_value{bounds}
    FROM {stats_table} AS s
    WHERE s.table_id = :table_id AND s.column_id = :column_{number} AND {span_of_s}) AS c{number}
  ON c{number}.data_file_id = f.data_file_id{claims}"""

HAS_COLUMN = "({mapping} = ANY(CAST(:lacking_{number} AS bigint[]))) IS NOT TRUE"
"""The name mapping of an added file has the column."""
IS_MEASURED = """({c}.column_size_bytes > 0 AND {c}.null_count BETWEEN 0 AND f.record_count
  AND {c}.value_count = f.record_count - {c}.null_count) IS TRUE"""
"""The writer has read the values: DuckDB and commits of Iceberg clients write all of these numbers.
The sum of two of them could need more than 64 bits."""
# The counts come first: PostgreSQL takes longer to parse a text.
IS_READ = f"({IS_MEASURED} OR {{c}}.min_value IS NULL OR {{c}}.lower IS NOT NULL)"
KNOWS_NAN = f"({{c}}.contains_nan IS NOT FALSE OR {IS_MEASURED})"
IS_ORDERED = "(({c}.lower > {c}.upper) IS NOT TRUE)"

PARTITION_VALUES_OF_KEY = """
  LEFT JOIN (SELECT p.data_file_id, p.partition_value{bounds}
    FROM ducklake_file_partition_value AS p
    WHERE p.table_id = :table_id AND p.partition_key_index = :key_{number}
      AND {span_of_p}) AS c{number}
  ON c{number}.data_file_id = f.data_file_id AND f.partition_id = :partition_{number}"""

# A text such as '07' would not equal the bucket 7: only texts in DuckLake's form leave a file out.
BUCKETS = """(CASE WHEN c{number}.partition_value ~ '^(0|[1-9][0-9]{{0,8}})$'
    THEN CAST(c{number}.partition_value AS bigint) < {buckets} END
  AND c{number}.partition_value <> ALL(CAST({values} AS text[]))) IS NOT TRUE"""

# A file with two rows of statistics for a column occurs twice, and is kept if one row keeps it;
# dense_rank gives both the same place. Only ids are ranked, because whole rows would be sorted on
# disk.
PLANNED_FILES = """
SELECT p.place, {columns}
FROM (SELECT f.data_file_id, dense_rank() OVER (ORDER BY f.data_file_id) AS place
  FROM ducklake_data_file AS f{joins}
  WHERE f.table_id = :table_id AND {visible} AND {span_of_f} AND {condition}) AS p
JOIN ducklake_data_file AS f ON f.data_file_id = p.data_file_id AND f.table_id = :table_id
WHERE p.place <= :page_files
  OR (p.place <= :page_files * :pages AND (p.place - 1) % :page_files = 0)
ORDER BY p.place"""


Kept = Mapping[FilteredColumn | PartitionKey, Sequence[int]]
"""The files that a test of a partition value keeps whatever its result, by what is tested."""
NOTHING_KEPT: Kept = {}


def planned_files(
    lake: Lake,
    table_id: int,
    snapshot_id: int,
    span: tuple[int, int],
    condition: Condition,
    page_files: int,
    pages: int,
    candidates: Sequence[int] | None = None,
    uncertain: Kept = NOTHING_KEPT,
) -> Statement[list[PlannedFile]]:
    """The first page of the files that may hold rows, and the first file of each further page.

    Args:
        span: the first and the last data_file_id, both included.
        page_files: the number of files of a page.
        pages: the largest number of pages whose first file is given.
        candidates: the ids of the files that are looked at; None: all.
        uncertain: files whose partition values are not certain.
    """
    sql = _Conditions(uncertain=uncertain)
    where = sql.expression(condition)
    spans = {
        f"span_of_{name}": (SPAN if candidates is None else AMONG).format(name) for name in "fps"
    }
    joins = "".join(_join(lake, *numbered, spans) for numbered in enumerate(sql.joined))
    text = PLANNED_FILES.format(
        columns=data_file_columns(lake),
        joins=joins,
        visible=VISIBLE.format("f"),
        condition=where,
        **spans,
    )
    return select(
        lambda place, *columns: PlannedFile(place, DataFile(*columns)),
        text,
        table_id=table_id,
        snapshot_id=snapshot_id,
        first_id=span[0],
        last_id=span[1],
        page_files=page_files,
        pages=pages,
        **sql.parameters,
        **({} if candidates is None else {"candidates": candidates}),
    )


SPAN = "{0}.data_file_id BETWEEN :first_id AND :last_id"
AMONG = SPAN + " AND {0}.data_file_id = ANY(CAST(:candidates AS bigint[]))"


def _join(
    lake: Lake, number: int, of: FilteredColumn | PartitionKey, spans: Mapping[str, str]
) -> str:
    if _key(of) is not None:
        bounds = _bounds(of, "p.partition_value", "p.partition_value")
        return PARTITION_VALUES_OF_KEY.format(number=number, bounds=bounds, **spans)
    assert isinstance(of, FilteredColumn)
    bounds = _bounds(of, "s.min_value", "s.max_value")
    rules = [HAS_COLUMN] if of.lacking else []
    if of.form is not None:
        rules.append(IS_READ)
    if of.form in FLOATS:
        rules.append(KNOWS_NAN)
    claims = "".join(f" AND {rule}" for rule in rules).format(
        c=f"c{number}", number=number, mapping=fragment(lake, "mapping_id")
    )
    return sql_for_version(lake, STATS, number=number, bounds=bounds, claims=claims, **spans)


def _key(of: FilteredColumn | PartitionKey) -> PartitionKey | None:
    """The key whose values are tested; None if statistics are tested."""
    return of if isinstance(of, PartitionKey) else of.key


MOST_VALUES = 100_000
MOST_APART = 1_000
MOST_CANDIDATES = 20_000
"""The most values of a key, files without one, and files of the values that pass; beyond these,
every file is tested."""

VALUES_INDEX = """
SELECT EXISTS (SELECT FROM pg_index AS i
  WHERE i.indrelid = to_regclass('ducklake_file_partition_value') AND i.indisvalid
    AND i.indpred IS NULL AND right(pg_get_indexdef(i.indexrelid), length(CAST(:columns AS text)))
      = CAST(:columns AS text))"""

INDEXED_VALUES = '(table_id, partition_key_index, partition_value COLLATE "C", data_file_id)'
"""The columns of the index that finds the files of a partition value."""


def has_values_index() -> Statement[bool]:
    """Whether the index of `INDEXED_VALUES` exists. Without it the next statements take long."""
    return Statement(VALUES_INDEX, {"columns": INDEXED_VALUES}, lambda rows: bool(rows[0][0]))


OF_KEY = """FROM ducklake_file_partition_value AS p
  WHERE p.table_id = :table_id AND p.partition_key_index = :key"""

# From each value to the next one: as many index look-ups as there are values. NULL is always the
# last one, even if no file has it.
KEY_VALUES = f"""
WITH RECURSIVE walk AS (
  SELECT min(p.partition_value COLLATE "C") AS value {OF_KEY}
  UNION ALL
  SELECT (SELECT min(p.partition_value COLLATE "C") {OF_KEY}
    AND p.partition_value COLLATE "C" > walk.value)
  FROM walk WHERE walk.value IS NOT NULL)
SELECT CASE WHEN count(*) <= :most THEN json_agg(v.value)::text END
FROM (SELECT walk.value FROM walk LIMIT CAST(:most AS bigint) + 1) AS v"""

HAS_KEY = "FILTER (WHERE p.partition_key_index = :key)"
VALUES_COUNT = f"""
SELECT count(*), coalesce(sum(hashint8extended(p.data_file_id, 0)) {HAS_KEY}, 0)
FROM ducklake_file_partition_value AS p WHERE p.table_id = :table_id"""

NEW_KEY_VALUES = f"""
SELECT count(*), coalesce(sum(hashint8extended(p.data_file_id, 0)) {HAS_KEY}, 0),
  json_agg(DISTINCT p.partition_value) {HAS_KEY}::text
FROM ducklake_file_partition_value AS p WHERE p.table_id = :table_id{AND_NEW.format("p")}"""


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The values of a partition key in all files of a table, of all snapshots."""

    values: str | None
    """A JSON array of texts, some of which no file may have; None: they are too many."""
    rows: int
    """The values of all keys of the table together."""
    hash: int
    """Sum of 64-bit hashes of the data_file_ids that have a value of the key."""


def read_key_values(
    con: Connection, table_id: int, key: PartitionKey, earlier: Earlier[KeyValues] | None
) -> KeyValues:
    """Read the values of a partition key.

    Args:
        earlier: what an earlier transaction has read.
    """
    of_key = {"table_id": table_id, "key": key.partition_key_index}
    if earlier:
        before, transactions = earlier.result, earlier.transactions
        new = new_rows("ducklake_file_partition_value", table_id, transactions).run(con)
        [[added, hashes, values]] = con.run(NEW_KEY_VALUES, **of_key, **new.parameters)
        if new.only_add(before.rows, added):
            return KeyValues(_union(before.values, values), new.rows, before.hash + int(hashes))
    [[rows, hashes]] = con.run(VALUES_COUNT, **of_key)
    [[values]] = con.run(KEY_VALUES, **of_key, most=MOST_VALUES)
    return KeyValues(values, rows, int(hashes))


def _union(values: str | None, new: str | None) -> str | None:
    """Two JSON arrays as one."""
    if values is None or new is None:
        return values
    both = dict.fromkeys(json.loads(values))
    count = len(both)
    both.update(dict.fromkeys(json.loads(new)))
    if len(both) == count:
        return values
    return json.dumps([*both]) if len(both) <= MOST_VALUES else None


# The files that have no value of a key: also those of other partitionings, which have values of
# other keys.
WITHOUT_VALUE = f"""
SELECT f.data_file_id
FROM ducklake_data_file AS f
LEFT JOIN (SELECT p.data_file_id {OF_KEY}) AS p
  ON p.data_file_id = f.data_file_id AND f.partition_id = :partition
WHERE f.table_id = :table_id AND p.data_file_id IS NULL
LIMIT :most"""


def files_without_value(table_id: int, key: PartitionKey) -> Statement[list[int] | None]:
    """Files that have no value of a partition key, of all snapshots; None: they are too many."""
    return Statement(
        WITHOUT_VALUE,
        {
            "table_id": table_id,
            "key": key.partition_key_index,
            "partition": key.partition_id,
            "most": MOST_APART + 1,
        },
        lambda rows: [row[0] for row in rows] if len(rows) <= MOST_APART else None,
    )


# The condition of `planned_files` on each value, as if a file had it.
FILES_OF_VALUES = f"""
SELECT p.data_file_id
FROM (SELECT 0 AS data_file_id, v.value AS partition_value{{bounds}}
  FROM json_array_elements_text(CAST(:key_values AS json)) AS v(value)) AS c0
CROSS JOIN (SELECT CAST(:oldest AS bigint) AS begin_snapshot) AS f
CROSS JOIN LATERAL (
  SELECT p.data_file_id {OF_KEY} AND p.partition_value COLLATE "C" = c0.partition_value
  UNION ALL
  SELECT p.data_file_id {OF_KEY} AND p.partition_value IS NULL AND c0.partition_value IS NULL) AS p
WHERE {{condition}} LIMIT :most"""


def files_of_values(
    table_id: int,
    condition: Condition,
    of: FilteredColumn | PartitionKey,
    values: str,
    oldest: int,
) -> Statement[list[int] | None]:
    """The files whose value of a partition key passes a condition; None: they are too many.

    Only the tests of this key count.

    Args:
        of: one of `tested_keys`.
        values: those of the key, as `KeyValues` has them.
        oldest: the first snapshot of any file of the table.
    """
    sql = _Conditions(of)
    where = sql.expression(condition)
    key = _key(of)
    assert key is not None
    return Statement(
        FILES_OF_VALUES.format(condition=where, bounds=_bounds(of, "v.value", "v.value")),
        {
            **sql.parameters,
            "table_id": table_id,
            "key": key.partition_key_index,
            "key_values": values,
            "oldest": oldest,
            "most": MOST_CANDIDATES + 1,
        },
        lambda rows: [row[0] for row in rows] if len(rows) <= MOST_CANDIDATES else None,
    )


# Equal sums of hashes prove that each file of a span has one row of statistics, and that its value,
# unless it is NULL, equals both bounds. They take a fifth of the time of the join below, which is
# used where they differ. Texts that cannot be parsed may be equal, too: their tests keep the file.
SUMS = """
SELECT place, count(*), count(value),
  sum(coalesce(hashtextextended(value, data_file_id), hashint8extended(data_file_id, 0)))
FROM ({}) AS c GROUP BY place"""

SUMS_OF_VALUES = SUMS.format("""
  SELECT {place_of_p}, p.data_file_id, CAST({value} AS text) AS value
  FROM ducklake_file_partition_value AS p
  WHERE p.table_id = :table_id AND p.partition_key_index = :key AND {span_of_p}""")

# The column first: it excludes most rows of the lake.
SUMS_OF_STATS = SUMS.format("""
  SELECT {place_of_s}, s.data_file_id, CASE WHEN s.min_value = s.max_value
    AND (s.null_count > 0) IS NOT TRUE THEN CAST({lower} AS text) END AS value
  FROM {stats_table} AS s
  WHERE s.column_id = :column AND s.table_id = :table_id AND {span_of_s}""")

VALUES_OF_FILES = """FROM ducklake_file_partition_value AS p
  JOIN ducklake_data_file AS f ON f.data_file_id = p.data_file_id AND f.table_id = :table_id
    AND f.partition_id = :partition AND {span_of_f}
    AND p.table_id = :table_id AND p.partition_key_index = :key AND {span_of_p}{and_only}"""

# As `mapping.claims.contradicted`: a value that a file has twice, or that differs from the one
# value in the statistics of the file. Equal texts are not parsed.
# All files are compared before the limit: otherwise PostgreSQL expects to find a thousand soon, and
# looks up the statistics of one file after another.
CONTRADICTED = f"""
WITH contradicted AS MATERIALIZED (
  SELECT p.data_file_id
  {VALUES_OF_FILES}
  LEFT JOIN (SELECT s.data_file_id, s.null_count, s.min_value, s.max_value,
      CAST({{exact_lower}} AS boolean) AS is_lower, CAST({{exact_upper}} AS boolean) AS is_upper
    FROM {{stats_table}} AS s
    WHERE s.table_id = :table_id AND s.column_id = :column AND {{span_of_s}}) AS s
    ON s.data_file_id = p.data_file_id
  WHERE ({{mapping_id}} = ANY(CAST(:lacking AS bigint[]))) IS TRUE
    OR CASE WHEN p.partition_value IS NULL
      THEN s.null_count <> f.record_count OR s.min_value IS NOT NULL OR s.max_value IS NOT NULL
      ELSE s.null_count > 0
        OR CASE WHEN s.min_value <> p.partition_value
          THEN s.is_lower IS NOT FALSE AND octet_length(s.min_value) < 256
            AND ({{lower}}) IS DISTINCT FROM ({{value}}) END
        OR CASE WHEN s.max_value <> p.partition_value
          THEN s.is_upper IS NOT FALSE AND octet_length(s.max_value) < 256
            AND ({{upper}}) IS DISTINCT FROM ({{value}}) END
      END
  UNION ALL
  SELECT p.data_file_id
  {VALUES_OF_FILES}
  GROUP BY p.data_file_id HAVING count(*) > 1)
SELECT DISTINCT data_file_id FROM contradicted LIMIT :most"""

ELSEWHERE = """
SELECT f.data_file_id
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.partition_id = :partition
  AND ({mapping_id} IS NOT NULL OR NOT f.path_is_relative)
LIMIT :most"""

AND_NULL = " AND p.partition_value IS NULL"

FILES_AT_ONCE = 50_000
"""About how many files are compared first: that takes a tenth of a second, or seconds on a busy
server. A statement for many more could reach its time limit, in every request."""

SECONDS_OF_ALL, QUICK_SECONDS = 24, 4
"""All remaining files follow together if, at the speed of the last ones, they take less than the
first of the two; without an index PostgreSQL reads all statistics in a third of that time.
Otherwise the next batch is twice as large if the last one took less than the second."""

LEAST_SECONDS = 5
"""With less time left, the next request goes on with the comparison."""

MOST_CONTRADICTED = 1_000
"""With more files whose value is not certain, no value of the key is used."""


@dataclass(frozen=True, slots=True)
class Contradicted:
    """The files, of all snapshots, whose value of a partition key is not certain."""

    files: tuple[int, ...] | None
    """None: they are too many."""
    rows: int
    """The values of all keys of the table together."""
    next_id: int | None = None
    """The first data_file_id that is not compared yet; None: all files are."""


def read_contradicted(
    con: Connection,
    lake: Lake,
    table_id: int,
    of: FilteredColumn,
    earlier: Earlier[Contradicted] | None,
) -> Contradicted:
    """Read the files whose value of a column's partition key their statistics contradict.

    If little time is left, only a part of the files is read.

    Args:
        of: with a key.
        earlier: what an earlier transaction has read, perhaps of a part.
    """
    files: set[int] = set()
    next_id: int | None = 0
    rows = None
    if earlier:
        before, transactions = earlier.result, earlier.transactions
        new = new_rows("ducklake_file_partition_value", table_id, transactions).run(con)
        [[added]] = con.run(NEW_VALUES, table_id=table_id, **new.parameters)
        if new.only_add(before.rows, added):
            rows, next_id = new.rows, before.next_id
            if before.files is None:
                return Contradicted(None, rows)
            files.update(before.files)
            if added:
                span = (new.first_id or 0, MAX_ID)
                new_ones = AND_NEW.format("p")
                files.update(
                    _contradicted(con, lake, table_id, of, span, new_ones, **new.parameters)
                )
    if rows is None:
        [[rows]] = con.run(ALL_VALUES, table_id=table_id)
    if next_id is not None:
        next_id = _compare(con, lake, table_id, of, next_id, files)
    return Contradicted(_not_too_many(tuple(files)), rows, next_id)


def _compare(
    con: Connection,
    lake: Lake,
    table_id: int,
    of: FilteredColumn,
    first_id: int,
    contradicted: set[int],
) -> int | None:
    """Compare the files from an id on; return the first id for which no time is left.

    Args:
        contradicted: gets the files whose value is not certain.
    """
    cuts = lifetimes.chunk_starts(table_id, lake.snapshot_id, FILES_AT_ONCE, FILES_AT_ONCE).run(con)
    every = lifetimes.spans([0, *cuts], MAX_ID)
    chunks = [(max(first, first_id), last) for first, last in every if last >= first_id]
    number = 1
    while chunks:
        some, chunks = chunks[:number], chunks[number:]
        started = time.monotonic()
        # Mostly nothing differs, and the sums of all together take two thirds of the time.
        whole = some[0][0], some[-1][1]
        differing = _differing(con, lake, table_id, of, [whole])
        if len(some) > 1 and (whole, "") in differing:
            differing = _differing(con, lake, table_id, of, some)
        seconds = time.monotonic() - started
        for span, and_only in differing:
            contradicted.update(_contradicted(con, lake, table_id, of, span, and_only))
            if len(contradicted) > MOST_CONTRADICTED:
                return None
            if span[1] < MAX_ID and budget.seconds_left() <= LEAST_SECONDS:
                return span[1] + 1
        if chunks and budget.seconds_left() <= LEAST_SECONDS:
            return chunks[0][0]
        if seconds * len(chunks) / number < SECONDS_OF_ALL:
            number = max(1, len(chunks))
        elif seconds < QUICK_SECONDS:
            number *= 2
    return None


def _differing(
    con: Connection, lake: Lake, table_id: int, of: FilteredColumn, spans: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], str]]:
    """The spans with a value that may not be certain, and SQL that selects such values."""
    assert of.key is not None
    if of.lacking:
        return [(span, "") for span in spans]
    read = READ["boolean"] if of.form == "boolean" else "@"  # statistics have other texts
    place = PLACE if len(spans) > 1 else "1 AS place"
    texts = {
        "value": read.replace("@", "p.partition_value"),
        "lower": read.replace("@", "s.min_value"),
        **{f"place_of_{name}": place.format(name) for name in "ps"},
        **{f"span_of_{name}": SPAN.format(name) for name in "ps"},
    }
    parameters = {
        "table_id": table_id,
        "key": of.key.partition_key_index,
        "column": of.column_id,
        "starts": [first for first, _ in spans],
        "first_id": spans[0][0],
        "last_id": spans[-1][1],
    }
    statements = (sql_for_version(lake, sql, **texts) for sql in (SUMS_OF_VALUES, SUMS_OF_STATS))
    of_values, of_stats = (
        {number: sums for number, *sums in con.run(sql, **parameters)} for sql in statements
    )
    differing = []
    for number, span in enumerate(spans, 1):
        sums = of_values.get(number)
        if sums != of_stats.get(number):
            differing.append((span, ""))
        elif sums and sums[0] > sums[1]:
            differing.append((span, AND_NULL))
    return differing


ALL_VALUES = "SELECT count(*) FROM ducklake_file_partition_value AS p WHERE p.table_id = :table_id"
NEW_VALUES = ALL_VALUES + AND_NEW.format("p")


def _not_too_many(files: tuple[int, ...] | None) -> tuple[int, ...] | None:
    return None if files is None or len(files) > MOST_CONTRADICTED else files


def _contradicted(
    con: Connection,
    lake: Lake,
    table_id: int,
    of: FilteredColumn,
    span: tuple[int, int],
    and_only: str,
    **parameters: Any,
) -> list[int]:
    """Those among the files with an id in `span` whose values fulfil a condition."""
    assert of.key is not None
    read = READ[of.form or "string"]
    texts = {"value": "p.partition_value", "lower": "s.min_value", "upper": "s.max_value"}
    sql = sql_for_version(
        lake,
        CONTRADICTED,
        **{name: read.replace("@", text) for name, text in texts.items()},
        exact_lower=fragment(lake, "min_is_exact"),
        exact_upper=fragment(lake, "max_is_exact"),
        and_only=and_only,
        **{f"span_of_{name}": SPAN.format(name) for name in "fps"},
    )
    rows = con.run(
        sql,
        table_id=table_id,
        key=of.key.partition_key_index,
        partition=of.key.partition_id,
        column=of.column_id,
        lacking=list(of.lacking),
        most=MOST_CONTRADICTED + 1,
        first_id=span[0],
        last_id=span[1],
        **parameters,
    )
    return [data_file_id for (data_file_id,) in rows]


def files_from_elsewhere(
    lake: Lake, table_id: int, key: PartitionKey
) -> Statement[tuple[int, ...] | None]:
    """Files of a partitioning that were added from elsewhere; None: they are too many."""
    return Statement(
        sql_for_version(lake, ELSEWHERE),
        {
            "table_id": table_id,
            "partition": key.partition_id,
            "most": MOST_CONTRADICTED + 1,
        },
        lambda rows: _not_too_many(tuple(row[0] for row in rows)),
    )


def drop_keys(
    condition: Condition, uncertain: Container[FilteredColumn | PartitionKey]
) -> Condition:
    """The condition without the values of some keys: it tests a column's statistics instead."""
    match condition:
        case AllOf(parts) | AnyOf(parts):
            return type(condition)(tuple(drop_keys(part, uncertain) for part in parts))
        case PartitionTest(key) if key in uncertain:
            return EVERY_FILE
        case ColumnTest(column) if column in uncertain:
            return replace(condition, column=replace(column, key=None))
    return condition


def tested_keys(condition: Condition) -> dict[FilteredColumn | PartitionKey, PartitionKey]:
    """The partition keys whose values a condition tests, by what is tested of them."""
    sql = _Conditions()
    sql.expression(condition)
    return {of: key for of in sql.joined if (key := _key(of)) is not None}


def _bounds(column: FilteredColumn | PartitionKey, lower: str, upper: str) -> str:
    if isinstance(column, PartitionKey) or column.form is None:
        return ""
    lower, upper = (READ[column.form].replace("@", text) for text in (lower, upper))
    collation = "" if column.form in SQL_TYPES else ' COLLATE "C"'
    if column.key is None:
        upper = UPPER.get(column.form, "@").replace("@", upper)
        lower, upper = (
            CERTAIN.get(column.form, "@").replace("#", text).replace("@", bound)
            for text, bound in (("s.min_value", lower), ("s.max_value", upper))
        )
    return f", ({lower}){collation} AS lower, ({upper}){collation} AS upper"


WAS_COUNTED = "(s.column_size_bytes > 0 AND s.value_count IS NOT NULL)"

MICROSECONDS = f"""CASE WHEN {WAS_COUNTED} OR length(@) > 23 THEN @
  ELSE rpad(CASE WHEN strpos(@, '.') = 0 THEN @ || '.' ELSE @ END, 23, '0') || '999' END"""

UPPER = {
    # NaN is above every number, and no bound says that it is there.
    **dict.fromkeys(FLOATS, "CASE WHEN s.contains_nan IS FALSE THEN @ END"),
    **dict.fromkeys(("timestamp", "timestamptz"), MICROSECONDS),
}
"""SQL that widens an upper bound, by form; as `mapping.claims.widened`."""

CERTAIN = {
    "decimal": f"""CASE WHEN {WAS_COUNTED} IS TRUE
  OR length(translate(#, '+-.', '')) <= 15 THEN @ END"""
}
"""Which bounds are certain, by form; as `mapping.claims.is_rounded`."""


# DuckLake writes zeros for all statistics of some types, and counts no NULLs in variants that have
# some: counts prove something only if they add up to the number of rows.
NO_NULL = "({c}.null_count = 0 AND {c}.value_count = f.record_count)"
ALL_NULL = "({c}.value_count = 0 AND {c}.null_count = f.record_count)"
IN_PARTITION = "({c}.data_file_id IS NOT NULL AND {c}.partition_value IS {null})"
"""Whether a file has no NULL, or nothing else, by its statistics or by its partition."""


class _Conditions:
    """Writes a condition as SQL; its values become parameters."""

    def __init__(
        self, only: FilteredColumn | PartitionKey | None = None, uncertain: Kept = NOTHING_KEPT
    ) -> None:
        """Args:
        only: what is tested; all other tests keep the file. None: everything is tested.
        uncertain: files that a test of a partition value keeps."""
        self._only, self._uncertain = only, uncertain
        self.joined: list[FilteredColumn | PartitionKey] = []
        self.parameters: dict[str, Any] = {}

    def expression(self, condition: Condition) -> str:
        match condition:
            case AllOf(parts):
                return self._joined(" AND ", "TRUE", parts)
            case AnyOf(parts):
                return self._joined(" OR ", "FALSE", parts)
            case PartitionTest(key, values, buckets):
                number = self._number(key)
                if number is None:
                    return "TRUE"
                texts = self._parameter([*map(str, values)])
                test = BUCKETS.format(number=number, values=texts, buckets=self._parameter(buckets))
                return self._or_kept(key, test)
            case ColumnTest(column):
                number = self._number(column)
                if number is None:
                    return "TRUE"
                return self._or_kept(column, f"({' AND '.join(self._tests(condition, number))})")

    def _or_kept(self, of: FilteredColumn | PartitionKey, test: str) -> str:
        files = self._uncertain.get(of)
        if not files:
            return test
        return f"(f.data_file_id = ANY(CAST({self._parameter(list(files))} AS bigint[])) OR {test})"

    def _joined(self, operator: str, empty: str, parts: tuple[Condition, ...]) -> str:
        return f"({operator.join(self.expression(part) for part in parts) or empty})"

    def _number(self, of: FilteredColumn | PartitionKey) -> int | None:
        """The number of a join; None: it is not tested, or there are too many."""
        if self._only not in {None, of}:
            return None
        if of not in self.joined:
            number = len(self.joined)
            if number == MOST_JOINS:
                return None
            key = _key(of)
            if key is not None:
                self.parameters[f"partition_{number}"] = key.partition_id
                self.parameters[f"key_{number}"] = key.partition_key_index
            elif isinstance(of, FilteredColumn):
                self.parameters[f"column_{number}"] = of.column_id
                if of.lacking:
                    self.parameters[f"lacking_{number}"] = list(of.lacking)
            self.joined.append(of)
        return self.joined.index(of)

    def _tests(self, test: ColumnTest, number: int) -> Iterator[str]:
        c, column = f"c{number}", test.column
        no_null, all_null = NO_NULL.format(c=c), ALL_NULL.format(c=c)
        if column.key is not None:
            no_null, all_null = (
                IN_PARTITION.format(c=c, null=null) for null in ("NOT NULL", "NULL")
            )
            if column.form is not None:  # a text that cannot be parsed may be somebody's NULL
                no_null = f"({no_null} AND {c}.lower IS NOT NULL)"
        has_bounds = column.key is None and column.form is not None
        is_ordered = IS_ORDERED.format(c=c)
        ordered = f" AND {is_ordered}" if has_bounds else ""
        unless_ordered = f"NOT {is_ordered} OR " if has_bounds else ""
        is_older = f"f.begin_snapshot < {self._parameter(column.counts_since)}"
        if test.operation == "is-null":
            yield f"({is_older} OR ({no_null}{ordered}) IS NOT TRUE)"
            return
        if test.operation in {"not-starts-with", "not-in"}:
            # NULL is no value, and begins with nothing.
            is_older = f"f.begin_snapshot < {self._parameter(column.bounds_since)}"
            comparison = f"{unless_ordered}{self._comparison(test, c)}"
            yield f"({is_older} OR {no_null} IS NOT TRUE OR {comparison})"
            return
        yield f"({is_older} OR ({all_null}{ordered}) IS NOT TRUE)"
        if test.operation == "is-nan":
            if column.key is None:  # no float is the value of a partition
                yield f"({is_older} OR {c}.contains_nan IS NOT FALSE)"
        elif test.operation != "not-null" and column.form is not None:
            is_older = f"f.begin_snapshot < {self._parameter(column.bounds_since)}"
            yield f"({is_older} OR {unless_ordered}{self._comparison(test, c)})"

    def _comparison(self, test: ColumnTest, c: str) -> str:
        form = test.column.form or ""
        sql_type = SQL_TYPES.get(form, "text")
        collation = "" if form in SQL_TYPES else ' COLLATE "C"'
        if test.operation in ONE_VALUE:
            values = f"CAST({self._parameter(list(test.values))} AS {sql_type}[])"
            return ONE_VALUE[test.operation].format(c=c, values=values)
        if test.operation == "in" and len(test.values) > MOST_COMPARED:
            values = f"unnest(CAST({self._parameter(list(test.values))} AS {sql_type}[])) AS v"
            return (
                f"EXISTS (SELECT FROM {values} WHERE {WITHIN.format(c=c, value=f'v{collation}')})"
            )
        if test.operation == "in":
            literals = [
                f"CAST({self._parameter(value)} AS {sql_type}){collation}" for value in test.values
            ]
            ranges = (WITHIN.format(c=c, value=literal) for literal in literals)
            return f"({' OR '.join(ranges) or 'FALSE'})"
        value = f"CAST({self._parameter(test.values[0])} AS {sql_type}){collation}"
        return COMPARISONS[test.operation].format(c=c, value=value)

    def _parameter(self, value: Any) -> str:
        name = f"value_{len(self.parameters)}"
        self.parameters[name] = value
        return f":{name}"


ONE_VALUE = {
    "one-of": "({c}.lower = {c}.upper AND NOT ({c}.lower = ANY({values}))) IS NOT TRUE",
    "not-in": "({c}.lower = {c}.upper AND {c}.lower = ANY({values})) IS NOT TRUE",
}
"""Whether a file may hold a row that passes, if all of its rows have one value."""


def _unless(*beyond: str, of: str = "{{c}}.{}") -> str:
    """Bounds in the wrong order skip no file: `_Conditions._tests` excludes them."""
    bounds = {">": of.format("lower"), "<": of.format("upper")}
    is_beyond = " OR ".join(f"{bounds[sign[0]]} {sign} {{value}}" for sign in beyond)
    return f"({is_beyond}) IS NOT TRUE"


WITHIN = _unless(">", "<")
"""Whether a file may hold a value."""

COMPARISONS = {
    "lt": _unless(">="),
    "lt-eq": _unless(">"),
    "gt": _unless("<="),
    "gt-eq": _unless("<"),
    "starts-with": _unless(">", "<", of="left({{c}}.{}, length({{value}}))"),
    "not-starts-with": "(left({c}.lower, length({value})) = {value}"
    " AND left({c}.upper, length({value})) = {value}) IS NOT TRUE",
}
"""Whether a file may hold a row that passes, by the operation."""
