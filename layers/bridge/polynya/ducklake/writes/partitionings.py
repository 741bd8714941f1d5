"""Partitionings of files that are not where DuckLake puts files of their values.

`ducklake_merge_adjacent_files` of version 1.0 takes files together that have the same partitioning
and the same values, and fails with an internal error if their directories differ: so do those of
Iceberg clients and of DuckLake. The files of each kind of directories have a partitioning of their
own, with the same keys, which ends at the snapshot that it begins at. No other file gets it.
"""

from collections.abc import Iterable

from pg8000.native import Connection

from ..directories import directory_kind
from ..rows.objects import PartitionColumn
from .new_snapshot import NewSnapshot
from .rows import copy, insert

# Of a file the values by which its directory is named; all files of one partitioning are of one
# kind, also those that DuckLake merges.
OTHERS = """
WITH keys AS (
  SELECT k.partition_id, array_agg((k.partition_key_index, k.column_id, k.transform)::text
    ORDER BY k.partition_key_index) AS keys
  FROM ducklake_partition_column AS k WHERE k.table_id = :table_id GROUP BY 1)
SELECT i.partition_id, f.path, ARRAY(
  SELECT v.partition_value FROM ducklake_file_partition_value AS v
  WHERE v.data_file_id = f.data_file_id ORDER BY v.partition_key_index)
FROM ducklake_partition_info AS i
JOIN keys USING (partition_id)
CROSS JOIN LATERAL (
  SELECT d.path, d.data_file_id FROM ducklake_data_file AS d
  WHERE d.table_id = i.table_id AND d.partition_id = i.partition_id LIMIT 1) AS f
WHERE i.table_id = :table_id AND i.begin_snapshot = i.end_snapshot
  AND keys.keys = (SELECT own.keys FROM keys AS own WHERE own.partition_id = :partition_id)
ORDER BY 1"""

KEYS_OF = """
SELECT k.partition_key_index, k.column_id, k.transform FROM ducklake_partition_column AS k
WHERE k.table_id = :table_id AND k.partition_id = :partition_id ORDER BY 1"""


def of_directories(
    snapshot: NewSnapshot, table_id: int, partition_id: int, kinds: Iterable[str]
) -> dict[str, int]:
    """The partitionings for files in these kinds of directories; new ones are written.

    Args:
        partition_id: that of files where DuckLake puts them.
    """
    con, ids = snapshot.con, {"table_id": table_id, "partition_id": partition_id}
    keys = _keys(con, table_id, partition_id)
    by_kind: dict[str, int] = {}
    for id_, path, values in con.run(OTHERS, **ids):
        by_kind.setdefault(directory_kind(path, keys, values), id_)
    for kind in sorted({*kinds} - {*by_kind}):
        by_kind[kind] = id_ = snapshot.catalog_id()
        lifetime = {"begin_snapshot": snapshot.snapshot_id, "end_snapshot": snapshot.snapshot_id}
        insert(con, "ducklake_partition_info", partition_id=id_, table_id=table_id, **lifetime)
        copy(
            con,
            "ducklake_partition_column",
            ("partition_id", "table_id", "partition_key_index", "column_id", "transform"),
            [(id_, table_id, k.partition_key_index, k.column_id, k.transform) for k in keys],
        )
    return by_kind


def _keys(con: Connection, table_id: int, partition_id: int) -> list[PartitionColumn]:
    rows = con.run(KEYS_OF, table_id=table_id, partition_id=partition_id)
    return [PartitionColumn(*row) for row in rows]


SURPLUS_VALUES = """
SELECT f.data_file_id, f.path, ARRAY(
  SELECT o.partition_value FROM ducklake_file_partition_value AS o
  WHERE o.data_file_id = f.data_file_id ORDER BY o.partition_key_index)
FROM ducklake_data_file AS f
WHERE f.table_id = :table_id AND f.partition_id = :partition_id AND EXISTS (
  SELECT FROM ducklake_file_partition_value AS v
  WHERE v.data_file_id = f.data_file_id AND v.partition_key_index >= :keys)
ORDER BY 1"""

REMOVE_VALUES = """
DELETE FROM ducklake_file_partition_value AS v
WHERE v.partition_key_index >= :keys AND v.data_file_id = ANY(CAST(:ids AS bigint[]))"""

MOVE = """
UPDATE ducklake_data_file SET partition_id = :new_id
WHERE data_file_id = ANY(CAST(:ids AS bigint[]))"""


def remove_surplus_values(
    snapshot: NewSnapshot, table_id: int, partition_id: int, keys: int
) -> None:
    """Remove partition values that belong to no key, the directories of files.

    Args:
        keys: how many the partitioning has, or the client's spec where DuckLake has none.
    """
    con = snapshot.con
    ids = {"table_id": table_id, "partition_id": partition_id}
    surplus = con.run(SURPLUS_VALUES, **ids, keys=keys)
    con.run(REMOVE_VALUES, keys=keys, ids=[file_id for file_id, _, _ in surplus])
    columns = _keys(con, table_id, partition_id)
    if snapshot.layout.is_1_1 or not columns:
        return
    by_kind: dict[str, list[int]] = {}
    for file_id, path, values in surplus:
        by_kind.setdefault(directory_kind(path, columns, values), []).append(file_id)
    new_ids = of_directories(snapshot, table_id, partition_id, by_kind)
    for kind, file_ids in by_kind.items():
        con.run(MOVE, new_id=new_ids[kind], ids=file_ids)
