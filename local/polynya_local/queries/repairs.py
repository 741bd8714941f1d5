"""Finds rows with which native DuckLake fails, from an earlier Polynya and from DuckLake itself.

An earlier Polynya wrote the directory of a file as one partition value more than there are keys,
and created no tables of inlined rows.
"""

from dataclasses import dataclass

from polynya.ducklake.connection.catalog_connection import Rows, Statement, select
from polynya.ducklake.queries.catalog import CATALOG_SCHEMA

from .partition_texts import partition_texts

VALUE_COUNTS = """
SELECT f.partition_id, v.partition_key_index, count(*)
FROM ducklake_data_file AS f JOIN ducklake_file_partition_value AS v USING (data_file_id, table_id)
WHERE f.table_id = :table_id AND f.partition_id IS NOT NULL
GROUP BY 1, 2 ORDER BY 1, 2"""


@dataclass(frozen=True, slots=True)
class ValueCount:
    """How many files of a partitioning have a value of a partition key."""

    partition_id: int
    key_index: int
    """Counted from 0."""
    files: int


def value_counts(table_id: int) -> Statement[list[ValueCount]]:
    """The numbers of partition values of all files that a table has, or has had."""
    return select(ValueCount, VALUE_COUNTS, table_id=table_id)


# A hash of the directory: to sort texts takes longer than all else.
DIRECTORY = "hashtextextended(left(f.path, -position('/' in reverse(f.path))), 0)"
SCATTERED = f"""
SELECT count(*) FROM (
  SELECT FROM ducklake_data_file AS f JOIN {{partitions}} AS p USING (data_file_id)
  WHERE f.table_id = :table_id AND f.end_snapshot IS NULL
  GROUP BY f.partition_id, p.partition HAVING min({DIRECTORY}) < max({DIRECTORY})) AS groups"""


def scattered_groups(table_id: int, keys: int) -> Statement[int]:
    """How many groups of live files DuckLake 1.0 would try to merge, and fail.

    The files of a group have one partitioning and equal values, and are in several directories.

    Args:
        keys: how many partition keys there are, see `partition_keys`.
    """
    sql = SCATTERED.format(partitions=partition_texts(keys))
    return Statement(sql, {"table_id": table_id}, lambda rows: int(rows[0][0]))


PARTITIONINGS = """
SELECT
  (SELECT count(*) FROM ducklake_partition_info AS i
   WHERE i.table_id = :table_id AND i.end_snapshot IS NULL),
  (SELECT count(*) FROM ducklake_data_file AS f
   WHERE f.table_id = :table_id AND f.end_snapshot IS NULL AND f.partition_id IS NOT NULL
     AND NOT EXISTS (SELECT FROM ducklake_partition_info AS i
       WHERE i.table_id = f.table_id AND i.partition_id = f.partition_id))"""


def partitionings(table_id: int) -> Statement[tuple[int, int]]:
    """How many live partitionings a table has, and how many live files have an unknown one."""
    return Statement(PARTITIONINGS, {"table_id": table_id}, lambda rows: (rows[0][0], rows[0][1]))


TAG_TEXTS = """
SELECT value FROM ducklake_tag WHERE object_id = :table_id AND key = :key AND value IS NOT NULL
ORDER BY begin_snapshot"""


def tag_texts(table_id: int, key: str) -> Statement[list[str]]:
    """All values that a tag of a table has, or has had."""
    return select(str, TAG_TEXTS, table_id=table_id, key=key)


# Names alone: a type changes with a new table of inlined rows, and a lost one is noticed by a name.
ALTERED = """
(SELECT count(*) > 0 FROM ducklake_column AS c
 WHERE c.table_id = {table_id} AND c.begin_snapshot > (
   SELECT min(t.begin_snapshot) FROM ducklake_table AS t WHERE t.table_id = {table_id}))"""

UNVERSIONED = f"""
SELECT i.table_name FROM ducklake_inlined_data_tables AS i
WHERE i.table_id = :table_id AND {ALTERED.format(table_id=":table_id")}
  AND NOT EXISTS (SELECT FROM ducklake_schema_versions AS v
    WHERE v.table_id = i.table_id AND v.schema_version = i.schema_version)
  AND EXISTS (SELECT FROM pg_class AS c
    WHERE c.relname = i.table_name AND c.relnamespace = {CATALOG_SCHEMA})
ORDER BY i.schema_version"""


def unversioned_inlined_tables(table_id: int) -> Statement[list[str]]:
    """The tables of inlined rows whose columns DuckLake does not know.

    There are none if the table's columns have not changed since it was created.
    """
    return select(str, UNVERSIONED, table_id=table_id)


TABLES = """
SELECT t.table_id, t.table_name, t.table_uuid::text FROM ducklake_table AS t
WHERE t.end_snapshot IS NULL ORDER BY 1"""


@dataclass(frozen=True, slots=True)
class LiveTable:
    """A table of the newest snapshot."""

    table_id: int
    table_name: str
    table_uuid: str


def live_tables() -> Statement[list[LiveTable]]:
    """All tables of the newest snapshot."""
    return select(LiveTable, TABLES)


# DuckDB itself creates a table without one only if the limit of inlined rows is 0.
LACKS_INLINED_TABLE = f"""
SELECT NOT EXISTS (
    SELECT FROM ducklake_inlined_data_tables AS i WHERE i.table_id = :table_id)
  AND EXISTS (SELECT FROM polynya_commits AS p
    WHERE p.table_uuid = CAST(:table_uuid AS uuid) AND p.operation IS NULL)
  AND {ALTERED.format(table_id=":table_id")}"""


def lacks_inlined_table(table: LiveTable) -> Statement[bool]:
    """Whether clients have altered a table that has no table of inlined rows.

    The next small INSERT would create one whose columns DuckLake does not know.
    """
    parameters = {"table_id": table.table_id, "table_uuid": table.table_uuid}

    def result(rows: Rows) -> bool:
        return bool(rows[0][0])

    return Statement(LACKS_INLINED_TABLE, parameters, result)
