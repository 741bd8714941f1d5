"""Rows of data files, delete files and inlined deletes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pg8000.native import Connection, identifier

from ..queries import inlined_delete_table
from ..rows.objects import Layout, NewName
from .rows import copy, end_live, insert


class FileColumnStats(NamedTuple):
    """A row of ducklake_file_column_stats, without the ids of file and table.

    A commit can have 200,000 of them, and a dataclass takes several times as long to create.
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
    extra_stats: str | None = None
    """The box and the types of geometries, as JSON; None: not known."""


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
    """In the order of the partition keys, one for each."""
    directory_kind: str = ""
    """That of `directories.py`; empty: it is where DuckLake puts files of these values."""
    stats: tuple[FileColumnStats, ...]
    """One for each leaf column, in the order of the table's columns."""
    has_row_ids: bool = False
    """Its rows carry their ids, so it gets no new ones."""
    names: tuple[NewName, ...] = ()
    """The columns that its names mean; empty: it has field ids."""
    mapping_id: int | None = None
    """A mapping of the table that has these names; None: there is none."""

    @property
    def new_row_ids(self) -> int:
        """The number of row ids that it needs."""
        return 0 if self.has_row_ids else self.record_count


FILE_COLUMNS = (
    *("data_file_id", "table_id", "begin_snapshot", "path", "path_is_relative", "file_format"),
    *("record_count", "file_size_bytes", "footer_size", "row_id_start", "partition_id"),
    *("row_group_count", "mapping_id"),
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
        last = (start, partition_id, file.row_group_count, file.mapping_id)
        file_rows.append((*ids, *stored, *sizes, *last))
        row_id += file.new_row_ids
        stats_rows += [(file_id, table_id, *stats) for stats in file.stats]
        for index, value in enumerate(file.partition_values):
            value_rows.append((file_id, table_id, index, value))
    copy(con, "ducklake_data_file", FILE_COLUMNS, file_rows, layout)
    copy(con, "ducklake_file_column_stats", STATS_COLUMNS, stats_rows, layout)
    copy(con, "ducklake_file_partition_value", VALUE_COLUMNS, value_rows)


NAME_COLUMNS = ("mapping_id", *NewName._fields)


def add_mapping(
    con: Connection, table_id: int, mapping_id: int, names: Sequence[NewName], layout: Layout
) -> None:
    """Add a name mapping, for files without field ids."""
    insert(
        con,
        "ducklake_column_mapping",
        mapping_id=mapping_id,
        table_id=table_id,
        type="map_by_name",
    )
    rows = [(mapping_id, *name) for name in names]
    copy(con, "ducklake_name_mapping", NAME_COLUMNS, rows, layout)


def end(con: Connection, snapshot_id: int, data_file_ids: list[int]) -> int:
    """End live data files at a snapshot, which no longer shows them; return their number."""
    return end_live(con, snapshot_id, "ducklake_data_file", data_file_id=data_file_ids)


def end_all(con: Connection, snapshot_id: int, table_id: int) -> int:
    """End all live data files of a table; return their number."""
    return end_live(con, snapshot_id, "ducklake_data_file", table_id=table_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDeleteFile:
    """A delete file that is not in the catalog yet, with what the catalog will say about it."""

    path: str
    """Relative to the table's directory."""
    delete_count: int
    file_size_bytes: int
    footer_size: int
    row_group_count: int
    first_snapshot: int | None = None
    """The snapshot of the first delete in it, if it has deletes of several snapshots."""
    partial_max: int | None = None
    """The snapshot of the newest delete, if it has deletes of several snapshots."""


DELETE_FILE_COLUMNS = (
    *("delete_file_id", "table_id", "begin_snapshot", "data_file_id", "path", "path_is_relative"),
    *("format", "delete_count", "file_size_bytes", "footer_size", "partial_max"),
    "row_group_count",
)


def add_delete_files(
    con: Connection,
    snapshot_id: int,
    table_id: int,
    first_id: int,
    files: Sequence[tuple[int, NewDeleteFile]],
    layout: Layout,
) -> None:
    """Add delete files.

    Args:
        first_id: the delete_file_id of the first file; the others follow in order.
        files: each with the data_file_id of its data file.
        layout: what the catalog has.
    """
    rows = [
        (
            *(id_, table_id, file.first_snapshot or snapshot_id),
            *(data_file_id, file.path, True, "parquet"),
            *(file.delete_count, file.file_size_bytes, file.footer_size, file.partial_max),
            file.row_group_count,
        )
        for id_, (data_file_id, file) in enumerate(files, first_id)
    ]
    copy(con, "ducklake_delete_file", DELETE_FILE_COLUMNS, rows, layout)


REMOVE_DELETE_FILES = """
DELETE FROM ducklake_delete_file
WHERE table_id = :table_id AND data_file_id = ANY(:data_file_ids) AND end_snapshot IS NULL
RETURNING delete_file_id"""


def remove_delete_files(con: Connection, table_id: int, data_file_ids: list[int]) -> set[int]:
    """Remove the rows of the live delete files of data files; return their ids."""
    # DuckLake removes them too: their deletes are in the files that replace them, also for older
    # snapshots. If they had an end, the change feed would repeat the old deletes.
    rows = con.run(REMOVE_DELETE_FILES, table_id=table_id, data_file_ids=data_file_ids)
    return {delete_file_id for (delete_file_id,) in rows}


SCHEDULE = """
INSERT INTO ducklake_files_scheduled_for_deletion
  (data_file_id, path, path_is_relative, schedule_start)
SELECT f.id, f.path, f.is_relative, now() FROM unnest(
  CAST(:ids AS bigint[]), CAST(:paths AS text[]), CAST(:are_relative AS boolean[])
) AS f (id, path, is_relative)"""


def schedule_deletion(con: Connection, paths: Mapping[int, tuple[str, bool]]) -> None:
    """Schedule files that were removed for ducklake_cleanup_old_files.

    Args:
        paths: at least one path, by delete_file_id, and whether it is relative to the lake's data
            path.
    """
    texts, are_relative = zip(*paths.values(), strict=True)
    values = {"paths": list(texts), "are_relative": list(are_relative)}
    con.run(SCHEDULE, ids=list(paths), **values)


INLINED_DELETE_COLUMNS = ("file_id", "row_id", "begin_snapshot")

# As DuckDB creates it at the first small DELETE: it is registered nowhere.
INLINED_DELETE_TABLE = """
CREATE TABLE IF NOT EXISTS {table} (file_id bigint, row_id bigint, begin_snapshot bigint)"""


REMOVE_INLINED_DELETES = """
DELETE FROM {table} WHERE file_id = ANY(:data_file_ids)"""


def remove_inlined_deletes(con: Connection, table_id: int, data_file_ids: list[int]) -> None:
    """Remove the inlined deletes of data files, which are in delete files now."""
    table = inlined_delete_table(table_id)
    con.run(REMOVE_INLINED_DELETES.format(table=table), data_file_ids=data_file_ids)


def add_inlined_deletes(
    con: Connection, snapshot_id: int, table_id: int, positions: Mapping[int, Sequence[int]]
) -> None:
    """Delete rows of data files.

    Args:
        positions: by data_file_id; rows that are not deleted yet.
    """
    name = f"ducklake_inlined_delete_{table_id}"
    con.run(INLINED_DELETE_TABLE.format(table=identifier(name)))
    rows = [
        (data_file_id, position, snapshot_id)
        for data_file_id, positions_of_file in sorted(positions.items())
        for position in positions_of_file
    ]
    copy(con, name, INLINED_DELETE_COLUMNS, rows)
