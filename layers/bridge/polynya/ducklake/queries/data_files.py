"""Data files of a table, by their ids, and those that cannot be served as they were."""

from collections.abc import Sequence

from ..connection.catalog_connection import Statement, select
from ..faults import DATA_FILE_FAULTS, any_of, reason_of
from ..rows.files import DataFile
from ..rows.lifetimes import UnservableRange
from ..rows.objects import Lake
from .catalog import sql_for_version

DATA_FILE_COLUMNS = """f.data_file_id, f.begin_snapshot, f.end_snapshot, f.path,
  f.path_is_relative, f.record_count, f.file_size_bytes, {data_partial_max}, {partial_file_info},
  f.partition_id, {mapping_id}, f.row_id_start, f.footer_size"""


def data_file_columns(lake: Lake) -> str:
    """The columns of `DataFile`, from a relation `f` with those of ducklake_data_file."""
    return sql_for_version(lake, DATA_FILE_COLUMNS)


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


DATA_FILES_OF = """
SELECT {columns} FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.data_file_id = ANY(CAST(:ids AS bigint[]))
ORDER BY f.data_file_id"""


def data_files_of(lake: Lake, table_id: int, ids: Sequence[int]) -> Statement[list[DataFile]]:
    """The data files with these ids."""
    sql = DATA_FILES_OF.format(columns=data_file_columns(lake))
    return select(DataFile, sql, table_id=table_id, ids=list(ids))


FIRST_ADDED_FILES = f"""
SELECT DISTINCT ON (f.mapping_id) {{columns}}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.mapping_id IS NOT NULL AND f.begin_snapshot <= :snapshot_id
  AND {any_of(DATA_FILE_FAULTS)} IS NOT TRUE
ORDER BY f.mapping_id, f.end_snapshot DESC NULLS FIRST, f.data_file_id"""


def first_added_files(lake: Lake, table_id: int, snapshot_id: int) -> Statement[list[DataFile]]:
    """One file for each name mapping, of those that are visible the longest."""
    sql = sql_for_version(lake, FIRST_ADDED_FILES, columns=data_file_columns(lake))
    return select(DataFile, sql, table_id=table_id, snapshot_id=snapshot_id)


# As in LACKING_FILES: a file has a column if it has statistics of it. A file that is no older than
# the column may have it without statistics.
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
        sql_for_version(lake, FILES_WITH, columns=data_file_columns(lake)),
        table_id=table_id,
        snapshot_id=snapshot_id,
        column_ids=list(borns),
        borns=list(borns.values()),
        most=most,
    )


UNSERVABLE_DATA_FILES = f"""
SELECT DISTINCT f.begin_snapshot, f.end_snapshot, {reason_of(DATA_FILE_FAULTS)}
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.begin_snapshot IS NOT NULL AND {any_of(DATA_FILE_FAULTS)}
ORDER BY 1, 2, 3"""


def unservable_data_files(lake: Lake, table_id: int) -> Statement[list[UnservableRange]]:
    """The lifetimes of data files whose snapshots cannot be served as they were, and why."""
    return select(UnservableRange, sql_for_version(lake, UNSERVABLE_DATA_FILES), table_id=table_id)
