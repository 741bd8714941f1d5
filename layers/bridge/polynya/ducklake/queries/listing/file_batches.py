"""The visible data files of a table, counted by what a reader's faults depend on."""

from collections.abc import Mapping

from ...connection.statements import Rows, Statement, known, select
from ...rows.lake import Lake
from ...rows.listing import FileBatch
from ..fragments import VISIBLE, fragment

FILE_BATCHES = f"""
SELECT f.begin_snapshot, f.partition_id, {{mapping_id}}, count(*),
  coalesce(sum(f.file_size_bytes), 0)::bigint
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND {VISIBLE.format("f")}
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""


def file_batches(lake: Lake, table_id: int, snapshot_id: int) -> Statement[list[FileBatch]]:
    """The data files that are visible at a snapshot, by the snapshot that wrote them."""
    sql = FILE_BATCHES.format(mapping_id=fragment(lake, "mapping_id"))
    return select(FileBatch, sql, table_id=table_id, snapshot_id=snapshot_id)


EARLY_FILES = f"""
SELECT c.column_id, count(DISTINCT f.data_file_id)
FROM unnest(CAST(:column_ids AS bigint[]), CAST(:borns AS bigint[])) AS c(column_id, born)
JOIN ducklake_data_file AS f ON f.table_id = :table_id AND f.begin_snapshot < c.born
  AND {{mapping_id}} IS NULL AND {VISIBLE.format("f")}
JOIN {{stats_table}} AS s ON s.table_id = :table_id AND s.data_file_id = f.data_file_id
  AND s.column_id = c.column_id
GROUP BY 1"""


def early_files(
    lake: Lake, table_id: int, snapshot_id: int, borns: Mapping[int, int]
) -> Statement[dict[int, int]]:
    """How many visible files began before a column and have it, by column_id.

    A merge has written them since. Files that somebody has added are not counted.

    Args:
        borns: the snapshot that added each column, by column_id.
    """
    if not borns:
        return known({})
    names = ("stats_table", "mapping_id")
    sql = EARLY_FILES.format(**{name: fragment(lake, name) for name in names})
    return Statement(
        sql,
        {
            "column_ids": list(borns),
            "borns": list(borns.values()),
            "table_id": table_id,
            "snapshot_id": snapshot_id,
        },
        _early_files,
    )


def _early_files(rows: Rows) -> dict[int, int]:
    return {row[0]: row[1] for row in rows}
