"""The data files that a scan may need, in one statement: pruned by the filter's columns alone.

A file is skipped only if its statistics prove that none of its rows passes. What is missing, not
parsable or contradictory keeps the file: each test is `IS NOT FALSE` or `IS NOT TRUE`.
"""

from collections.abc import Iterator
from typing import Any

from ...connection.statements import Statement, select
from ...rows.conditions import (
    AllOf,
    AnyOf,
    ColumnTest,
    Condition,
    FilteredColumn,
    PartitionKey,
    PartitionTest,
    PlannedFile,
)
from ...rows.data_files import DataFile
from ...rows.lake import Lake
from ..fragments import VISIBLE, fragment
from .bound_texts import READ, SQL_TYPES
from .data_files import data_file_columns

MOST_JOINS = 8
"""The columns whose statistics, and the keys whose partition values, are read; more tests keep the
file."""

MOST_COMPARED = 10
"""A longer list is an array, for which PostgreSQL takes twice as long for each file."""

STATS = """
  LEFT JOIN (SELECT s.data_file_id, s.value_count, s.null_count, s.contains_nan{bounds}
    FROM {stats_table} AS s
    WHERE s.table_id = :table_id AND s.column_id = :column_{number}
      AND s.data_file_id BETWEEN :first_id AND :last_id) AS c{number}
  ON c{number}.data_file_id = f.data_file_id"""

PARTITION_VALUES = """
  LEFT JOIN (SELECT p.data_file_id, p.partition_value{bounds}
    FROM ducklake_file_partition_value AS p
    WHERE p.table_id = :table_id AND p.partition_key_index = :key_{number}
      AND p.data_file_id BETWEEN :first_id AND :last_id) AS c{number}
  ON c{number}.data_file_id = f.data_file_id AND f.partition_id = :partition_{number}"""

BUCKETS = """(c{number}.partition_value ~ '^(0|[1-9][0-9]*)$'
  AND c{number}.partition_value <> ALL(CAST({values} AS text[]))) IS NOT TRUE"""

# A file with two rows of statistics for a column occurs twice, and is kept if one row keeps it;
# dense_rank gives both the same place. Only ids are ranked, because whole rows would be sorted on
# disk.
PLANNED_FILES = """
SELECT p.place, {columns}
FROM (SELECT f.data_file_id, dense_rank() OVER (ORDER BY f.data_file_id) AS place
  FROM ducklake_data_file AS f{joins}
  WHERE f.table_id = :table_id AND {visible}
    AND f.data_file_id BETWEEN :first_id AND :last_id
    AND {condition}) AS p
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
) -> Statement[list[PlannedFile]]:
    """The first page of the files that may hold rows, and the first file of each further page.

    Args:
        span: the first and the last data_file_id, both included.
        page_files: the number of files of a page.
        pages: the largest number of pages whose first file is given.
    """
    sql = _Conditions()
    where = sql.expression(condition)
    joins = "".join(_join(lake, *one) for one in enumerate(sql.joined))
    text = PLANNED_FILES.format(
        columns=data_file_columns(lake),
        joins=joins,
        visible=VISIBLE.format("f"),
        condition=where,
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
    )


def _join(lake: Lake, number: int, of: FilteredColumn | PartitionKey) -> str:
    if isinstance(of, PartitionKey):
        return PARTITION_VALUES.format(number=number, bounds="")
    if of.key is not None:
        both = ("p.partition_value", "p.partition_value")
        return PARTITION_VALUES.format(number=number, bounds=_bounds(of, *both))
    bounds = _bounds(of, "s.min_value", "s.max_value")
    return STATS.format(stats_table=fragment(lake, "stats_table"), number=number, bounds=bounds)


def _bounds(column: FilteredColumn, lower: str, upper: str) -> str:
    if column.form is None:
        return ""
    lower, upper = (READ[column.form].replace("@", text) for text in (lower, upper))
    collation = "" if column.form in SQL_TYPES else ' COLLATE "C"'
    if column.form in {"float", "double"}:
        # NaN is above every number, and no bound says that it is there.
        upper = f"CASE WHEN s.contains_nan IS FALSE THEN {upper} END"
    return f", ({lower}){collation} AS lower, ({upper}){collation} AS upper"


NO_NULL = "({c}.null_count = 0 AND {c}.value_count = f.record_count)"
ALL_NULL = "({c}.value_count = 0 AND {c}.null_count = f.record_count)"
IN_PARTITION = "({c}.data_file_id IS NOT NULL AND {c}.partition_value IS {null})"
"""Whether a file has no NULL, or nothing else, by its statistics or by its partition."""


class _Conditions:
    """Makes SQL of a condition; the values become parameters."""

    def __init__(self) -> None:
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
        return f"({operator.join(self.expression(one) for one in parts) or empty})"

    def _number(self, of: FilteredColumn | PartitionKey) -> int | None:
        """The number of a join; None: there are too many."""
        if of not in self.joined:
            number = len(self.joined)
            if number == MOST_JOINS:
                return None
            key = of if isinstance(of, PartitionKey) else of.key
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
            each = [
                f"CAST({self._parameter(value)} AS {sql_type}){collation}" for value in test.values
            ]
            return f"({' OR '.join(WITHIN.format(c=c, value=one) for one in each) or 'FALSE'})"
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
