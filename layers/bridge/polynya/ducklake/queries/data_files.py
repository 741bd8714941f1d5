"""Data files of a table: their rows, partition values, statistics, and those that a scan needs.

`planned_files` prunes in one statement, by the columns of the filter alone. It skips a file only if
its statistics prove that none of its rows passes. What is missing, not parsable or contradictory
keeps the file: each test is `IS NOT FALSE` or `IS NOT TRUE`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..connection.catalog_connection import Rows, Statement, select
from ..faults import DATA_FILE_FAULTS, any_of, reason_of
from ..rows.files import (
    AllOf,
    AnyOf,
    ColumnStats,
    ColumnTest,
    Condition,
    DataFile,
    FileGroup,
    FileGroups,
    FilteredColumn,
    PartitionKey,
    PartitionTest,
    PlannedFile,
)
from ..rows.lifetimes import Lifetime, UnservableRange
from ..rows.objects import Lake
from .catalog import VISIBLE, in_version
from .file_columns import READ, SQL_TYPES

DATA_FILE_COLUMNS = """f.data_file_id, f.begin_snapshot, f.end_snapshot, f.path,
  f.path_is_relative, f.record_count, f.file_size_bytes, {data_partial_max}, {partial_file_info},
  f.partition_id, {mapping_id}, f.row_id_start"""


def data_file_columns(lake: Lake) -> str:
    """The columns of `DataFile`, from a relation `f` with those of ducklake_data_file."""
    return in_version(lake, DATA_FILE_COLUMNS)


# Includes files that ended at this snapshot: a manifest lists them as DELETED.
DATA_FILES_AT = """
SELECT {columns}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.data_file_id BETWEEN :first_id AND :last_id
  AND f.begin_snapshot <= :snapshot_id
  AND (f.end_snapshot >= :snapshot_id OR f.end_snapshot IS NULL)
ORDER BY f.data_file_id"""


def data_files_at(
    lake: Lake, table_id: int, snapshot_id: int, first_id: int, last_id: int
) -> Statement[list[DataFile]]:
    """Data files with an id in [first_id, last_id]: visible, or ended at `snapshot_id`."""
    return select(
        DataFile,
        DATA_FILES_AT.format(columns=data_file_columns(lake)),
        table_id=table_id,
        snapshot_id=snapshot_id,
        first_id=first_id,
        last_id=last_id,
    )


FIRST_ADDED_FILES = f"""
SELECT DISTINCT ON (f.mapping_id) {{columns}}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.mapping_id IS NOT NULL AND f.begin_snapshot <= :snapshot_id
  AND {any_of(DATA_FILE_FAULTS)} IS NOT TRUE
ORDER BY f.mapping_id, f.end_snapshot DESC NULLS FIRST, f.data_file_id"""


def first_added_files(lake: Lake, table_id: int, snapshot_id: int) -> Statement[list[DataFile]]:
    """For each name mapping, one of the files that are visible the longest."""
    sql = in_version(lake, FIRST_ADDED_FILES, columns=data_file_columns(lake))
    return select(DataFile, sql, table_id=table_id, snapshot_id=snapshot_id)


# As in LACKING_FILES: a file has a column if it has statistics of it. One that is no older than the
# column may have it without.
FILES_WITH = f"""
SELECT {{columns}}, has.column_ids
FROM ducklake_data_file AS f
CROSS JOIN LATERAL (
  SELECT array_agg(c.column_id ORDER BY c.column_id) AS column_ids
  FROM unnest(CAST(:column_ids AS bigint[]), CAST(:borns AS bigint[])) AS c(column_id, born)
  WHERE f.begin_snapshot >= c.born OR EXISTS (SELECT FROM {{stats_table}} AS s
    WHERE s.table_id = :table_id AND s.data_file_id = f.data_file_id
      AND s.column_id = c.column_id)) AS has
WHERE f.table_id = :table_id AND f.begin_snapshot <= :snapshot_id
  AND has.column_ids IS NOT NULL AND {any_of(DATA_FILE_FAULTS)} IS NOT TRUE
ORDER BY f.begin_snapshot, f.data_file_id LIMIT :most"""


def files_with(
    lake: Lake, table_id: int, snapshot_id: int, borns: dict[int, int], most: int
) -> Statement[list[tuple[DataFile, list[int]]]]:
    """The first files up to a snapshot that may have one of these columns, and which of them.

    Args:
        borns: the snapshot that added each column, by column_id.
        most: the number of files.
    """
    return select(
        lambda *row: (DataFile(*row[:-1]), row[-1]),
        in_version(lake, FILES_WITH, columns=data_file_columns(lake)),
        table_id=table_id,
        snapshot_id=snapshot_id,
        column_ids=list(borns),
        borns=list(borns.values()),
        most=most,
    )


# One query for everything that concerns all data files: there may be a million.
FILE_GROUPS = f"""
SELECT f.partition_id, {{mapping_id}}, min(f.begin_snapshot),
  CASE WHEN bool_and(f.end_snapshot IS NOT NULL) THEN max(f.end_snapshot) END,
  coalesce(bool_or({{data_partial_max}} > f.begin_snapshot), false),
  coalesce(bool_or({any_of(DATA_FILE_FAULTS)}), false)
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.begin_snapshot IS NOT NULL
GROUP BY 1, 2 ORDER BY min(f.data_file_id)"""


def file_groups(lake: Lake, table_id: int) -> Statement[FileGroups]:
    """Data files grouped by partitioning and name mapping, in the order of their oldest files."""
    return Statement(in_version(lake, FILE_GROUPS), {"table_id": table_id}, _file_groups)


def _file_groups(rows: Rows) -> FileGroups:
    return FileGroups(
        lifetimes={FileGroup(*row[:2]): Lifetime(*row[2:4]) for row in rows},
        has_partial=any(row[4] for row in rows),
        has_faults=any(row[5] for row in rows),
    )


UNSERVABLE_DATA_FILES = f"""
SELECT DISTINCT f.begin_snapshot, f.end_snapshot, {reason_of(DATA_FILE_FAULTS)}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.begin_snapshot IS NOT NULL AND {any_of(DATA_FILE_FAULTS)}
ORDER BY 1, 2, 3"""


def unservable_data_files(lake: Lake, table_id: int) -> Statement[list[UnservableRange]]:
    """The lifetimes of data files whose snapshots cannot be served as they were, and why."""
    return select(UnservableRange, in_version(lake, UNSERVABLE_DATA_FILES), table_id=table_id)


PARTITION_VALUES = """
SELECT v.data_file_id, v.partition_key_index, v.partition_value
FROM ducklake_file_partition_value AS v
WHERE v.table_id = :table_id AND v.data_file_id BETWEEN :first_id AND :last_id"""


def partition_values(
    table_id: int, first_id: int, last_id: int
) -> Statement[dict[int, dict[int, str | None]]]:
    """Partition values as text: by data_file_id, by partition_key_index."""
    parameters = {"table_id": table_id, "first_id": first_id, "last_id": last_id}
    return Statement(PARTITION_VALUES, parameters, values_by_file)


def values_by_file(rows: Rows) -> dict[int, dict[int, str | None]]:
    """Partition values by data_file_id and partition_key_index, from rows of the three columns."""
    values: dict[int, dict[int, str | None]] = {}
    for data_file_id, key, text in rows:
        values.setdefault(data_file_id, {})[key] = text
    return values


COLUMN_STATS = """
SELECT s.data_file_id, s.column_id, s.column_size_bytes, s.value_count, s.null_count,
  s.min_value, s.max_value, s.contains_nan
FROM {stats_table} AS s
WHERE s.table_id = :table_id AND s.data_file_id BETWEEN :first_id AND :last_id
ORDER BY s.data_file_id, s.column_id"""


def column_stats(
    lake: Lake, table_id: int, first_id: int, last_id: int
) -> Statement[list[ColumnStats]]:
    """The statistics of each column of the data files with an id in [first_id, last_id]."""
    sql = in_version(lake, COLUMN_STATS)
    return select(ColumnStats, sql, table_id=table_id, first_id=first_id, last_id=last_id)


MOST_JOINS = 8
"""The columns whose statistics, and the keys whose partition values, are read; more tests keep the
file."""

MOST_COMPARED = 10
"""A longer list is an array, for which PostgreSQL takes twice as long for each file."""

STATS = """
  LEFT JOIN (SELECT s.data_file_id, s.value_count, s.null_count, s.contains_nan{bounds}
    FROM {stats_table} AS s
    WHERE s.table_id = :table_id AND s.column_id = :column_{number} AND {span_of_s}) AS c{number}
  ON c{number}.data_file_id = f.data_file_id"""

PARTITION_VALUES_OF_KEY = """
  LEFT JOIN (SELECT p.data_file_id, p.partition_value{bounds}
    FROM ducklake_file_partition_value AS p
    WHERE p.table_id = :table_id AND p.partition_key_index = :key_{number}
      AND {span_of_p}) AS c{number}
  ON c{number}.data_file_id = f.data_file_id AND f.partition_id = :partition_{number}"""

# A text such as '07' would not equal the bucket 7: only texts in DuckLake's form leave a file out.
BUCKETS = """(c{number}.partition_value ~ '^(0|[1-9][0-9]*)$'
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


def planned_files(
    lake: Lake,
    table_id: int,
    snapshot_id: int,
    span: tuple[int, int],
    condition: Condition,
    page_files: int,
    pages: int,
    candidates: Sequence[int] | None = None,
) -> Statement[list[PlannedFile]]:
    """The first page of the files that may hold rows, and the first file of each further page.

    Args:
        span: the first and the last data_file_id, both included.
        page_files: the number of files of a page.
        pages: the largest number of pages whose first file is given.
        candidates: the ids of the files that are looked at; None: all.
    """
    sql = _Conditions()
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
    bounds = _bounds(of, "s.min_value", "s.max_value")
    return in_version(lake, STATS, number=number, bounds=bounds, **spans)


def _key(of: FilteredColumn | PartitionKey) -> PartitionKey | None:
    """The key whose values are tested; None: statistics are."""
    return of if isinstance(of, PartitionKey) else of.key


MOST_VALUES = 20_000
MOST_APART = 1_000
MOST_CANDIDATES = 20_000
"""With more values of a key, more files without one, or more files of the values that pass, every
file is looked at."""

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

# From each value to the next one: as many looks into the index as there are values. NULL is the
# last one, whether there is such a file or not.
KEY_VALUES = f"""
WITH RECURSIVE walk AS (
  SELECT min(p.partition_value COLLATE "C") AS value {OF_KEY}
  UNION ALL
  SELECT (SELECT min(p.partition_value COLLATE "C") {OF_KEY}
    AND p.partition_value COLLATE "C" > walk.value)
  FROM walk WHERE walk.value IS NOT NULL)
SELECT json_agg(v.value)::text, count(*)
FROM (SELECT walk.value FROM walk LIMIT CAST(:most AS bigint) + 1) AS v"""


def key_values(table_id: int, key: PartitionKey) -> Statement[str | None]:
    """The values of a partition key, as a JSON array of texts; None: they are too many."""
    return Statement(
        KEY_VALUES,
        {"table_id": table_id, "key": key.partition_key_index, "most": MOST_VALUES},
        lambda rows: rows[0][0] if rows[0][1] <= MOST_VALUES else None,
    )


# Mostly there is none, which two sums of hashes say in a third of the time that the join takes. A
# file of another partitioning has another hash, because its value is one of another key.
WITHOUT_VALUE = f"""
SELECT f.data_file_id
FROM ducklake_data_file AS f
LEFT JOIN (SELECT p.data_file_id {OF_KEY}) AS p
  ON p.data_file_id = f.data_file_id AND f.partition_id = :partition
WHERE f.table_id = :table_id AND p.data_file_id IS NULL
  AND (SELECT sum(hashint8extended(p.data_file_id, 0)) {OF_KEY}) IS DISTINCT FROM (
    SELECT sum(hashint8extended(f.data_file_id, (f.partition_id IS DISTINCT FROM :partition)::int))
    FROM ducklake_data_file AS f WHERE f.table_id = :table_id)
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
    """The files whose value of a partition key lets them pass; None: they are too many.

    Of the condition only the tests of this key count.

    Args:
        of: one of `tested_keys`.
        values: all of the key, as `key_values` gives them.
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
    if column.form in {"float", "double"}:
        # NaN is above every number, and no bound says that it is there.
        upper = f"CASE WHEN s.contains_nan IS FALSE THEN {upper} END"
    return f", ({lower}){collation} AS lower, ({upper}){collation} AS upper"


# DuckLake writes zeros for all statistics of some types, and no NULLs for variants that have some:
# counts prove something only if they add up to the number of rows.
NO_NULL = "({c}.null_count = 0 AND {c}.value_count = f.record_count)"
ALL_NULL = "({c}.value_count = 0 AND {c}.null_count = f.record_count)"
IN_PARTITION = "({c}.data_file_id IS NOT NULL AND {c}.partition_value IS {null})"
"""Whether a file has no NULL, or nothing else, by its statistics or by its partition."""


class _Conditions:
    """Writes a condition as SQL; its values become parameters."""

    def __init__(self, only: FilteredColumn | PartitionKey | None = None) -> None:
        """`only`: what is tested; all other tests keep the file. None: everything is."""
        self._only = only
        self.joined: list[FilteredColumn | PartitionKey] = []
        self.parameters: dict[str, Any] = {}

    def expression(self, condition: Condition) -> str:
        match condition:
            case AllOf(parts):
                return self._joined(" AND ", "TRUE", parts)
            case AnyOf(parts):
                return self._joined(" OR ", "FALSE", parts)
            case PartitionTest(key, values):
                number = self._number(key)
                if number is None:
                    return "TRUE"
                return BUCKETS.format(number=number, values=self._parameter([*map(str, values)]))
            case ColumnTest(column):
                number = self._number(column)
                if number is None:
                    return "TRUE"
                return f"({' AND '.join(self._tests(condition, number))})"

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
            self.joined.append(of)
        return self.joined.index(of)

    def _tests(self, test: ColumnTest, number: int) -> Iterator[str]:
        c, column = f"c{number}", test.column
        no_null, all_null = NO_NULL.format(c=c), ALL_NULL.format(c=c)
        if column.key is not None:
            no_null, all_null = (
                IN_PARTITION.format(c=c, null=null) for null in ("NOT NULL", "NULL")
            )
        is_older = f"f.begin_snapshot < {self._parameter(column.counts_since)}"
        if test.operation == "is-null":
            yield f"({is_older} OR {no_null} IS NOT TRUE)"
            return
        if test.operation in {"not-starts-with", "not-in"}:
            # NULL is no value, and begins with nothing.
            is_older = f"f.begin_snapshot < {self._parameter(column.bounds_since)}"
            yield f"({is_older} OR {no_null} IS NOT TRUE OR {self._comparison(test, c)})"
            return
        yield f"({is_older} OR {all_null} IS NOT TRUE)"
        if test.operation == "is-nan":
            if column.key is None:  # no float is the value of a partition
                yield f"({is_older} OR {c}.contains_nan IS NOT FALSE)"
        elif test.operation != "not-null" and column.form is not None:
            is_older = f"f.begin_snapshot < {self._parameter(column.bounds_since)}"
            yield f"({is_older} OR {self._comparison(test, c)})"

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

WITHIN = "(({c}.lower <= {value}) IS NOT FALSE AND ({c}.upper >= {value}) IS NOT FALSE)"
"""Whether a file may hold a value."""

COMPARISONS = {
    "lt": "({c}.lower < {value}) IS NOT FALSE",
    "lt-eq": "({c}.lower <= {value}) IS NOT FALSE",
    "gt": "({c}.upper > {value}) IS NOT FALSE",
    "gt-eq": "({c}.upper >= {value}) IS NOT FALSE",
    "starts-with": "((left({c}.lower, length({value})) <= {value}) IS NOT FALSE"
    " AND (left({c}.upper, length({value})) >= {value}) IS NOT FALSE)",
    "not-starts-with": "(left({c}.lower, length({value})) = {value}"
    " AND left({c}.upper, length({value})) = {value}) IS NOT TRUE",
}
"""Whether a file may hold a row that passes, by the operation."""
