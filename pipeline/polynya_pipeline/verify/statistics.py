"""Level catalog: the statistics of files and tables, parsed and compared; and bounds without NaN.

A bound that is too narrow loses rows: DuckDB relies on the bounds of the table, Iceberg clients on
those of the files.

DuckDB orders NaN above every number, and writes no bounds of a row group that has one. PyArrow and
Java write the bounds of the numbers. DuckDB then skips such a row group: `f > 100` and `f = 'nan'`
do not find the NaN, whatever the catalog says.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow.parquet as pq
from pg8000.native import Connection
from polynya.ducklake.connection.catalog_connection import transaction
from polynya.ducklake.connection.database import BEGIN
from polynya.ducklake.queries import table_column_stats
from polynya.ducklake.rows.files import TableColumnStats
from polynya.ducklake.rows.objects import Column
from polynya.ducklake.writes.stats import TEXT_BYTES
from polynya.types.names import TEXTS, UNCOUNTED, UNORDERED, comparable

from ..common.database import connect
from . import catalog
from .catalog import CatalogFile, CatalogStats
from .findings import Problem


@dataclass(frozen=True, slots=True)
class FileRange:
    """Data files of a table with `first` <= id < `end`. Spark sends it to the executors."""

    database: str = field(repr=False)
    """A URL, which may contain a password, or the ARN of a secret."""
    metadata_schema: str
    table_id: int
    first: int
    end: int
    fragments: dict[str, str]


def check_range(range: FileRange) -> list[Problem]:
    """Check the statistics of some files of a table, with a connection of its own."""
    address = (range.database, range.metadata_schema)
    with closing(connect(*address)) as con, transaction(con, BEGIN):
        versions = catalog.column_versions(con, range.table_id)
        of_table = table_column_stats(range.table_id).run(con)
        problems = list(_missing(con, range))
        rows = catalog.stats(con, range.fragments, range.table_id, range.first, range.end)
        identities = catalog.identities(con, range.table_id, range.first, range.end)
    types = _ColumnTypes(versions)
    for row in rows:
        column_type = types.type_at(row.column_id, row.begin_snapshot)
        if column_type is None:
            continue  # dropped, or its type was promoted later
        problems += _counts(row, column_type, types.is_repeated(row.column_id))
        key = (row.data_file_id, row.column_id)
        if key in identities:
            problems += _partition(row, column_type, identities[key])
        problems += _bounds(row, column_type)
        problems += _check_table(
            row, column_type, types.now(row.column_id), of_table.get(row.column_id)
        )
    return problems


MISSING = """
SELECT c.column_id, count(*) FROM ducklake_data_file AS f
JOIN ducklake_column AS c ON c.table_id = f.table_id AND c.begin_snapshot <= f.begin_snapshot
  AND (c.end_snapshot IS NULL OR c.end_snapshot > f.begin_snapshot)
LEFT JOIN {stats_table} AS s
  ON s.data_file_id = f.data_file_id AND s.column_id = c.column_id
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND f.mapping_id IS NULL
  AND f.data_file_id >= :first AND f.data_file_id < :end
  AND c.column_type NOT IN ('struct', 'list', 'map', 'variant', 'geometry')
  AND {data_partial_max} IS NULL AND s.column_id IS NULL
GROUP BY c.column_id ORDER BY c.column_id"""


def _missing(con: Connection, range: FileRange) -> Iterator[Problem]:
    """Find columns without statistics in some files: DuckLake reads them as if the files lack them.

    The files may lack them: Iceberg clients do not write hidden columns, and DuckLake's own rewrite
    leaves out columns that are younger than the rows. `stored_files` looks into the files.
    """
    parameters = {"table_id": range.table_id, "first": range.first, "end": range.end}
    for column_id, number in con.run(MISSING.format(**range.fragments), **parameters):
        yield (
            "no-stats",
            f"{number} data files have no statistics of column {column_id}, which DuckLake reads "
            "as NULL or its default there; --footers checks that the files lack it",
        )


class _ColumnTypes:
    """The types of a table's columns at each snapshot."""

    def __init__(self, versions: list[Column]) -> None:
        self._versions = versions
        self._newest = {v.column_id: v for v in versions if v.end_snapshot is None}
        self._last = {v.column_id: v for v in versions}
        """The last version of each column, dropped ones included: their files may still exist."""

    def type_at(self, column_id: int, snapshot_id: int) -> str | None:
        """The type at a snapshot; None: the column did not exist."""
        types = (
            v.column_type
            for v in self._versions
            if v.column_id == column_id and v.visible_at(snapshot_id)
        )
        return next(types, None)

    def now(self, column_id: int) -> str | None:
        """The type at the newest snapshot; None: the column has been dropped."""
        newest = self._newest.get(column_id)
        return newest.column_type if newest else None

    def is_repeated(self, column_id: int) -> bool:
        """Whether the column is in a list or map, where counts are not counts of rows."""
        version = self._last.get(column_id)
        while version and version.parent_column is not None:
            version = self._last.get(version.parent_column)
            if version and version.column_type in {"list", "map"}:
                return True
        return False


def _counts(row: CatalogStats, column_type: str, is_repeated: bool) -> Iterator[Problem]:
    unknown = row.value_count is None or row.null_count is None
    if unknown or is_repeated or row.is_added or column_type in UNCOUNTED:
        return
    assert row.value_count is not None and row.null_count is not None
    if row.value_count + row.null_count != row.record_count:
        yield (
            "counts",
            f"data file {row.data_file_id} has {row.record_count} rows; its column "
            f"{row.column_id} has {row.value_count} values and {row.null_count} NULLs",
        )


def _partition(row: CatalogStats, column_type: str, value: str | None) -> Iterator[Problem]:
    """Check that both bounds are the partition's value, which all rows of it have.

    Bounds that are not values, such as those of long texts, have that value between them.
    """
    if row.is_added or column_type in UNORDERED or column_type.startswith("float"):
        return
    where = f"data file {row.data_file_id} is in the partition {value!r} of column {row.column_id}"
    if value is None:
        if row.value_count:
            yield "partition", f"{where}, and has other values"
        return
    low, high = (value_of(column_type, text) for text in (row.min_value, row.max_value))
    partition_value = value_of(column_type, value)
    if None in (low, high, partition_value):
        return
    is_long = column_type in TEXTS and len(value) > TEXT_BYTES
    fits = (
        low <= partition_value if is_long or row.min_is_exact is False else low == partition_value,
        partition_value <= high
        if is_long or row.max_is_exact is False
        else high == partition_value,
    )
    if not all(fits):
        yield "partition", f"{where}, and has values from {row.min_value!r} to {row.max_value!r}"


def _bounds(row: CatalogStats, column_type: str) -> Iterator[Problem]:
    """Check that the bounds of a file are values of the column's type, and min <= max."""
    if column_type in UNORDERED:
        return
    where = f"column {row.column_id} of data file {row.data_file_id}"
    for side, text in (("min", row.min_value), ("max", row.max_value)):
        if text is not None and value_of(column_type, text) is None and not _is_unparsed(text):
            yield "stats-text", f"the {side} of {where} is not a {column_type}: {text!r}"
    low, high = (value_of(column_type, text) for text in (row.min_value, row.max_value))
    if low is not None and high is not None and high < low:
        yield "min-max", f"{where} has the min {row.min_value!r} and the max {row.max_value!r}"


def _check_table(
    row: CatalogStats, type_then: str, type_now: str | None, table: TableColumnStats | None
) -> Iterator[Problem]:
    """Check that the statistics of the table cover those of the file.

    A bound of the file that is not a value is not compared: it may be wider than the values.

    Args:
        type_then: the column's type when the file was written.
        type_now: its type at the newest snapshot; None: it has been dropped.
        table: None: DuckDB has added the column without statistics; it then assumes nothing.
    """
    if type_now is None or table is None:
        return
    where = f"column {row.column_id} of data file {row.data_file_id}"
    if row.null_count and table.contains_null is False:
        yield "table-contains-null", f"the table's statistics exclude NULL, but {where} has it"
    if row.contains_nan and table.contains_nan is False:
        yield "table-contains-nan", f"the table's statistics exclude NaN, but {where} has it"
    if type_then != type_now or type_now in UNORDERED:
        return  # texts of two types are not compared
    low, high = (value_of(type_now, text) for text in (row.min_value, row.max_value))
    least, most = (value_of(type_now, text) for text in (table.min_value, table.max_value))
    low = None if row.min_is_exact is False else low
    high = None if row.max_is_exact is False else high
    if low == b"":
        low = None  # DuckDB excludes the empty text from a table's min, and finds it nevertheless
    if low is not None and least is not None and low < least:
        yield "table-min", f"the table's min is {table.min_value!r}; {where} has {row.min_value!r}"
    if high is not None and most is not None and high > most:
        yield "table-max", f"the table's max is {table.max_value!r}; {where} has {row.max_value!r}"


def value_of(column_type: str, text: str | None) -> Any:
    """The value of a text in the catalog, to compare; None: no text, or one that is not parsed."""
    if text is None:
        return None
    try:
        return comparable(column_type, text)
    except ValueError:
        return None


def _is_unparsed(text: str) -> bool:
    """Whether a text may be valid, but is not parsed: distant years, infinities, bytes."""
    return "(BC)" in text or "inf" in text or text[:6].lstrip("+-")[4:5].isdigit() or "\\x" in text


FLOATS = {"FLOAT", "DOUBLE"}
"""Parquet's physical types."""


def check(
    file: CatalogFile,
    footer: pq.FileMetaData,
    ids: Mapping[int, int],
    contains_nan: Mapping[int, bool | None],
) -> Iterator[Problem]:
    """Find row groups whose bounds exclude NaN, unless the column has none.

    They are findings (`nan-bounds`), or notes (`nan-unknown`) if the catalog does not say whether
    the column has NaN.

    Args:
        ids: column ids by the index of the leaf column; empty for a file that was added.
        contains_nan: by column id, from the catalog; None: it does not say.
    """
    # DuckDB writes no bounds of a row group that has a NaN.
    if (footer.created_by or "").startswith("DuckDB"):
        return
    for index in range(footer.num_columns):
        if footer.schema.column(index).physical_type not in FLOATS:
            continue
        groups = sum(_has_bounds(footer, group, index) for group in range(footer.num_row_groups))
        has_nan = contains_nan.get(ids[index]) if index in ids else None
        if not groups or has_nan is False:
            continue
        path = footer.schema.column(index).path
        if has_nan:
            yield (
                "nan-bounds",
                f"the column {path} of {file.location} holds NaN, and {groups} of its "
                f"{footer.num_row_groups} row groups have bounds, which exclude NaN: DuckDB "
                "skips these rows; an UPDATE of all rows of the table rewrites them correctly",
            )
        else:
            yield (
                "nan-unknown",
                f"the column {path} has bounds in files that DuckDB did not write, and the catalog "
                "does not say whether it holds NaN there: DuckDB would skip these rows",
            )


def _has_bounds(footer: pq.FileMetaData, group: int, index: int) -> bool:
    statistics = footer.row_group(group).column(index).statistics
    return statistics is not None and bool(statistics.has_min_max)
