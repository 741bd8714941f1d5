"""Data files of a table, their partition values and statistics."""

from ...connection.statements import Rows, Statement, select
from ...faults import DATA_FILE_FAULTS, any_of, reason_of
from ...rows.data_files import ColumnStats, DataFile, FileGroup, FileGroups
from ...rows.lake import Lake
from ...rows.lifetimes import Lifetime, UnservableRange
from ..fragments import fragment

DATA_FILE_COLUMNS = """f.data_file_id, f.begin_snapshot, f.end_snapshot, f.path,
  f.path_is_relative, f.record_count, f.file_size_bytes, {data_partial_max}, {partial_file_info},
  f.partition_id, {mapping_id}, f.row_id_start"""


def data_file_columns(lake: Lake) -> str:
    """The columns of `DataFile`, from a relation `f` with those of ducklake_data_file."""
    names = ("data_partial_max", "partial_file_info", "mapping_id")
    return DATA_FILE_COLUMNS.format(**{name: fragment(lake, name) for name in names})


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
    """For each name mapping one of the files that are visible the longest."""
    partial_max = fragment(lake, "data_partial_max")
    columns = data_file_columns(lake)
    sql = FIRST_ADDED_FILES.format(columns=columns, data_partial_max=partial_max)
    return select(DataFile, sql, table_id=table_id, snapshot_id=snapshot_id)


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
    names = ("mapping_id", "data_partial_max")
    sql = FILE_GROUPS.format(**{name: fragment(lake, name) for name in names})
    return Statement(sql, {"table_id": table_id}, _file_groups)


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
    """The lifetimes of data files that make a snapshot impossible to serve as it was, and why."""
    sql = UNSERVABLE_DATA_FILES.format(data_partial_max=fragment(lake, "data_partial_max"))
    return select(UnservableRange, sql, table_id=table_id)


PARTITION_VALUES = """
SELECT v.data_file_id, v.partition_key_index, v.partition_value
FROM ducklake_file_partition_value AS v
WHERE v.table_id = :table_id AND v.data_file_id BETWEEN :first_id AND :last_id"""


def partition_values(
    table_id: int, first_id: int, last_id: int
) -> Statement[dict[int, dict[int, str | None]]]:
    """Partition values as text: by data_file_id, by partition_key_index."""
    parameters = {"table_id": table_id, "first_id": first_id, "last_id": last_id}
    return Statement(PARTITION_VALUES, parameters, _partition_values)


def _partition_values(rows: Rows) -> dict[int, dict[int, str | None]]:
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
    sql = COLUMN_STATS.format(stats_table=fragment(lake, "stats_table"))
    return select(ColumnStats, sql, table_id=table_id, first_id=first_id, last_id=last_id)
