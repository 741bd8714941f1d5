"""The visible data files of a table, counted by what a reader's faults depend on."""

from ...connection.statements import Statement, select
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
