"""Level catalog, second half: what the statistics of files and tables say, compared as values.

A bound that is too narrow loses rows: DuckDB trusts those of the table, Iceberg clients those of
the files.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from pg8000.native import Connection

from ..common import texts
from ..common.database import connect
from ..ingest import writes
from ..ingest.statistics import TableColumnStats
from . import catalog
from .catalog import CatalogStats, ColumnVersion

UNCOUNTED = {"timetz", "interval", "variant", "geometry"}
"""DuckLake's own counts of these are wrong."""
UNORDERED = UNCOUNTED | {"int128", "uint128", "timestamp_ns", "timestamptz_ns"}


@dataclass(frozen=True, slots=True)
class Range:
    """Data files to look at; it travels to the executors, with a secret's ARN where one is used."""

    database: str
    metadata_schema: str
    table_id: int
    first: int
    end: int
    fragments: dict[str, str]


def check_range(range: Range) -> list[tuple[str, str]]:
    """The findings (check, words) in the statistics of some files of a table."""
    with closing(connect(range.database, range.metadata_schema)) as con:
        versions = catalog.column_versions(con, range.table_id)
        covering = writes.stats.of_columns(con, range.table_id)
        found = list(_missing(con, range))
        rows = catalog.stats(con, range.fragments, range.table_id, range.first, range.end)
        identities = catalog.identities(con, range.table_id, range.first, range.end)
    types = _Types(versions)
    for row in rows:
        column_type = types.at(row.column_id, row.begin_snapshot)
        if column_type is None:
            continue  # a column that is gone, or came with a later promotion
        found += _counts(row, column_type, types.is_repeated(row.column_id))
        key = (row.data_file_id, row.column_id)
        if key in identities:
            found += _partition(row, column_type, identities[key])
        found += _bounds(row, column_type, types.now(row.column_id), covering.get(row.column_id))
    return found


MISSING = """
SELECT f.data_file_id, c.column_id FROM ducklake_data_file AS f
JOIN ducklake_column AS c ON c.table_id = f.table_id AND c.begin_snapshot <= f.begin_snapshot
  AND (c.end_snapshot IS NULL OR c.end_snapshot > f.begin_snapshot)
LEFT JOIN {stats_table} AS s
  ON s.data_file_id = f.data_file_id AND s.column_id = c.column_id
WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND f.mapping_id IS NULL
  AND f.data_file_id >= :first AND f.data_file_id < :end
  AND c.column_type NOT IN ('struct', 'list', 'map', 'variant', 'geometry')
  AND {data_partial_max} IS NULL AND s.column_id IS NULL"""


def _missing(con: Connection, range: Range) -> Iterator[tuple[str, str]]:
    """A column without statistics is taken for one that the file does not have."""
    where = {"table_id": range.table_id, "first": range.first, "end": range.end}
    for data_file_id, column_id in con.run(MISSING.format(**range.fragments), **where):
        yield "missing-stats", f"data file {data_file_id} has none for column {column_id}"


class _Types:
    def __init__(self, versions: list[ColumnVersion]) -> None:
        self._versions = versions
        self._newest = {v.column_id: v for v in versions if v.end_snapshot is None}

    def at(self, column_id: int, snapshot_id: int) -> str | None:
        for v in self._versions:
            ended = v.end_snapshot is not None and v.end_snapshot <= snapshot_id
            if v.column_id == column_id and v.begin_snapshot <= snapshot_id and not ended:
                return v.column_type
        return None

    def now(self, column_id: int) -> str | None:
        newest = self._newest.get(column_id)
        return newest.column_type if newest else None

    def is_repeated(self, column_id: int) -> bool:
        """Within a list or a map, where counts are of levels and not of rows."""
        version = self._newest.get(column_id)
        while version and version.parent_column is not None:
            version = self._newest.get(version.parent_column)
            if version and version.column_type in {"list", "map"}:
                return True
        return False


def _counts(row: CatalogStats, column_type: str, is_repeated: bool) -> Iterator[tuple[str, str]]:
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


def _partition(row: CatalogStats, column_type: str, value: str | None) -> Iterator[tuple[str, str]]:
    """All values of a column are the partition's, so its bounds are too."""
    if row.is_added or column_type in UNORDERED or column_type.startswith("float"):
        return
    where = f"data file {row.data_file_id} is in the partition {value!r} of column {row.column_id}"
    if value is None:
        if row.value_count:
            yield "partition", f"{where}, and holds values"
        return
    low, high = (_value(column_type, text) for text in (row.min_value, row.max_value))
    wanted = _value(column_type, value)
    if None not in (low, high, wanted) and not low == high == wanted:
        yield "partition", f"{where}, and holds {row.min_value!r} to {row.max_value!r}"


def _bounds(
    row: CatalogStats, then: str, now: str | None, covering: TableColumnStats | None
) -> Iterator[tuple[str, str]]:
    of = f"column {row.column_id} of data file {row.data_file_id}"
    values: dict[str, Any] = {}
    if then not in UNORDERED:
        for side, text in (("min", row.min_value), ("max", row.max_value)):
            values[side] = _value(then, text)
            if text is not None and values[side] is None and not _is_odd(text):
                yield "stats-text", f"the {side} of {of} is no {then}: {text!r}"
    low, high = values.get("min"), values.get("max")
    if low is not None and high is not None and high < low:
        yield "min-max", f"{of} has a min of {row.min_value!r} and a max of {row.max_value!r}"
    if now is None:
        return  # dropped since: nobody asks any more
    if covering is None:
        return  # as for a column that DuckDB has added: unknown, and so never wrong
    if row.null_count and covering.contains_null is False:
        yield "table-contains-null", f"the table's say that it has no NULL; {of} has"
    if row.contains_nan and covering.contains_nan is False:
        yield "table-contains-nan", f"the table's say that it has no NaN; {of} has"
    if then != now or now in UNORDERED:
        return  # texts of two types are not compared
    least, most = (_value(now, text) for text in (covering.min_value, covering.max_value))
    if low == b"":
        low = None  # DuckDB leaves the empty text out of a table's min, and finds it none the less
    if low is not None and least is not None and low < least:
        yield "table-min", f"the table's min is {covering.min_value!r}; {of} has {row.min_value!r}"
    if high is not None and most is not None and high > most:
        yield "table-max", f"the table's max is {covering.max_value!r}; {of} has {row.max_value!r}"


def _value(column_type: str, text: str | None) -> Any:
    """None: absent, or not certain."""
    if text is None:
        return None
    try:
        return texts.comparable(column_type, text)
    except ValueError:
        return None


def _is_odd(text: str) -> bool:
    """Years that Python's dates do not have, and forms of which nothing is certain."""
    return "(BC)" in text or "inf" in text or text[:6].lstrip("+-")[4:5].isdigit() or "\\x" in text
