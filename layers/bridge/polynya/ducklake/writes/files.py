"""Rows of data files: added at a snapshot, ended at a snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pg8000.native import Connection

from ..rows.writers.layout import Layout
from .copy import copy


class FileColumnStats(NamedTuple):
    """A row of ducklake_file_column_stats, without the ids of file and table.

    A commit can have 200,000 of them, of which a dataclass takes several times as long to make.
    """

    column_id: int
    column_size_bytes: int
    value_count: int | None
    """Without NULLs, as DuckDB writes it, not as documented. None: unknown."""
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None
    min_is_exact: bool | None = None
    """Whether the bound is a value of the column; None: not known, or there is none."""
    max_is_exact: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDataFile:
    """A Parquet file that is not in the catalog yet, with what the catalog will say about it."""

    path: str
    path_is_relative: bool = True
    """To the table's directory."""
    record_count: int
    file_size_bytes: int
    footer_size: int
    row_group_count: int | None = None
    partition_values: tuple[str | None, ...] = ()
    """In the order of the partition keys."""
    stats: tuple[FileColumnStats, ...]
    """Of each leaf column, in the order of the table's columns."""
    has_row_ids: bool = False
    """Its rows carry their ids; it gets no new ones."""

    @property
    def new_row_ids(self) -> int:
        """The number of row ids that it needs."""
        return 0 if self.has_row_ids else self.record_count


FILE_COLUMNS = (
    *("data_file_id", "table_id", "begin_snapshot", "path", "path_is_relative", "file_format"),
    *("record_count", "file_size_bytes", "footer_size", "row_id_start", "partition_id"),
    "row_group_count",
)
STATS_COLUMNS = ("data_file_id", "table_id", *FileColumnStats._fields)
VALUE_COLUMNS = ("data_file_id", "table_id", "partition_key_index", "partition_value")


def add(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    partition_id: int | None,
    first_file_id: int,
    first_row_id: int,
    files: Sequence[NewDataFile],
    layout: Layout,
) -> None:
    """Add data files with their statistics and partition values.

    Args:
        partition_id: the partitioning that the partition values of the files belong to; None: none.
        first_file_id: the data_file_id of the first file; the others follow in order.
        first_row_id: the row id of the first row of the first file; the others follow in order.
        layout: what the catalog has.
    """
    file_rows: list[Sequence[object]] = []
    stats_rows: list[Sequence[object]] = []
    value_rows: list[Sequence[object]] = []
    row_id = first_row_id
    for file_id, file in enumerate(files, first_file_id):
        ids = (file_id, table_id, snapshot_id)
        stored = (file.path, file.path_is_relative, "parquet")
        sizes = (file.record_count, file.file_size_bytes, file.footer_size)
        start = None if file.has_row_ids else row_id
        file_rows.append((*ids, *stored, *sizes, start, partition_id, file.row_group_count))
        row_id += file.new_row_ids
        stats_rows += [(file_id, table_id, *stats) for stats in file.stats]
        for index, value in enumerate(file.partition_values):
            value_rows.append((file_id, table_id, index, value))
    copy(con, "ducklake_data_file", FILE_COLUMNS, file_rows, layout)
    copy(con, "ducklake_file_column_stats", STATS_COLUMNS, stats_rows, layout)
    copy(con, "ducklake_file_partition_value", VALUE_COLUMNS, value_rows)


END_FILES = """
UPDATE ducklake_data_file SET end_snapshot = :snapshot_id
WHERE data_file_id = ANY(:data_file_ids) AND end_snapshot IS NULL"""


def end(con: Connection, snapshot_id: int, data_file_ids: list[int]) -> int:
    """End live data files at a snapshot: it and later ones do not show them. Gives their number."""
    con.run(END_FILES, snapshot_id=snapshot_id, data_file_ids=data_file_ids)
    count: int = con.row_count
    return count


END_ALL_FILES = """
UPDATE ducklake_data_file SET end_snapshot = :snapshot_id
WHERE table_id = :table_id AND end_snapshot IS NULL"""


def end_all(con: Connection, snapshot_id: int, table_id: int) -> int:
    """End all live data files of a table; gives their number."""
    con.run(END_ALL_FILES, snapshot_id=snapshot_id, table_id=table_id)
    count: int = con.row_count
    return count
