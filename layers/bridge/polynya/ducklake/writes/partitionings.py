"""Partitionings of files that are not where DuckLake puts files of their values.

`ducklake_merge_adjacent_files` of version 1.0 merges files that have the same partitioning and the
same values, and fails with an internal error if their directories differ, as those of DuckLake and
of each Iceberg client do. The files of each kind of directories have a partitioning of their own,
with the same keys, which ends at the snapshot that it begins at. No other file gets it.
"""

from collections.abc import Iterable, Sequence

from pg8000.native import Connection

from ..directories import directory_kind
from ..rows.objects import PartitionColumn
from .new_snapshot import NewSnapshot

KEYS_OF = """
SELECT k.partition_key_index, k.column_id, k.transform FROM ducklake_partition_column AS k
WHERE k.table_id = :table_id AND k.partition_id = :partition_id ORDER BY 1"""


def keys_of(con: Connection, table_id: int, partition_id: int) -> list[PartitionColumn]:
    """The keys of a partitioning."""
    rows = con.run(KEYS_OF, table_id=table_id, partition_id=partition_id)
    return [PartitionColumn(*row) for row in rows]


# Without keys the table's own partitioning is among them: DuckLake puts no file into it.
WITH_KEYS_OF = """
WITH keys AS (
  SELECT k.partition_id, array_agg((k.partition_key_index, k.column_id, k.transform)::text
    ORDER BY k.partition_key_index) AS keys
  FROM ducklake_partition_column AS k WHERE k.table_id = :table_id GROUP BY 1)
SELECT i.partition_id FROM ducklake_partition_info AS i LEFT JOIN keys USING (partition_id)
WHERE i.table_id = :table_id AND i.begin_snapshot = i.end_snapshot
  AND keys.keys IS NOT DISTINCT FROM (
    SELECT own.keys FROM keys AS own WHERE own.partition_id = :partition_id)"""


def ids_with_keys_of(con: Connection, table_id: int, partition_id: int) -> list[int]:
    """The partitionings with the same keys for files that are not where DuckLake puts them."""
    ids = con.run(WITH_KEYS_OF, table_id=table_id, partition_id=partition_id)
    return [id_ for (id_,) in ids]


# The values of one file, by which its directory is named; all files of one partitioning are of one
# kind, also those that DuckLake merges.
ONE_FILE = """
SELECT i.partition_id, f.path, ARRAY(
  SELECT v.partition_value FROM ducklake_file_partition_value AS v
  WHERE v.data_file_id = f.data_file_id ORDER BY v.partition_key_index)
FROM ducklake_partition_info AS i
CROSS JOIN LATERAL (
  SELECT d.path, d.data_file_id FROM ducklake_data_file AS d
  WHERE d.table_id = i.table_id AND d.partition_id = i.partition_id LIMIT 1) AS f
WHERE i.table_id = :table_id AND i.partition_id = ANY(CAST(:ids AS bigint[])) ORDER BY 1"""

# The new one begins when the other one did: nothing changes at the snapshot of the commit.
ADD_LIKE = """
INSERT INTO ducklake_partition_info (partition_id, table_id, begin_snapshot, end_snapshot)
SELECT :new_id, i.table_id, i.begin_snapshot, i.begin_snapshot FROM ducklake_partition_info AS i
WHERE i.table_id = :table_id AND i.partition_id = :partition_id"""

ADD_KEYS_OF = """
INSERT INTO ducklake_partition_column
  (partition_id, table_id, partition_key_index, column_id, transform)
SELECT :new_id, k.table_id, k.partition_key_index, k.column_id, k.transform
FROM ducklake_partition_column AS k
WHERE k.table_id = :table_id AND k.partition_id = :partition_id"""


def ensure_partitionings(
    snapshot: NewSnapshot,
    table_id: int,
    partition_id: int,
    keys: Sequence[PartitionColumn],
    ids: Iterable[int],
    kinds: Iterable[str],
) -> dict[str, int]:
    """The partitionings for files in these kinds of directories; new ones are written.

    Args:
        partition_id: that of the table.
        keys: its own, or those of the client's spec.
        ids: of the partitionings that these files may have.
    """
    con, free = snapshot.con, {*ids}
    by_kind: dict[str, int] = {}
    for id_, path, values in con.run(ONE_FILE, table_id=table_id, ids=sorted(free)):
        by_kind.setdefault(directory_kind(path, keys, values), id_)
        free.remove(id_)
    for kind in sorted({*kinds} - {*by_kind}):
        if not free:
            like = {"table_id": table_id, "partition_id": partition_id}
            new_id = snapshot.catalog_id()
            con.run(ADD_LIKE, new_id=new_id, **like)
            con.run(ADD_KEYS_OF, new_id=new_id, **like)
            free.add(new_id)
        by_kind[kind] = min(free)
        free.remove(by_kind[kind])
    return by_kind


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
    con: Connection, table_id: int, partition_id: int, keys: int
) -> list[tuple[int, str, list[str | None]]]:
    """Remove partition values that belong to no key, the directories of files.

    Args:
        keys: how many the partitioning has, or the client's spec where DuckLake has none.

    Returns:
        The id, the path and the values, those that are removed too, of each of the files.
    """
    ids = {"table_id": table_id, "partition_id": partition_id}
    surplus = con.run(SURPLUS_VALUES, **ids, keys=keys)
    con.run(REMOVE_VALUES, keys=keys, ids=[file_id for file_id, _, _ in surplus])
    return [(file_id, path, values) for file_id, path, values in surplus]


def move(con: Connection, data_file_ids: list[int], partition_id: int) -> None:
    """Give data files another partitioning."""
    con.run(MOVE, new_id=partition_id, ids=data_file_ids)
