"""Invariants of DuckLake's tables as SQL: each statement selects the rows that violate it.

A row is (table_id, what); table_id NULL: the lake as a whole. `statistics` checks bounds.
"""

from dataclasses import dataclass

from pg8000.native import Connection
from polynya.ducklake.queries.catalog import PARENT

from .catalog import Fragments


@dataclass(frozen=True, slots=True)
class Invariant:
    """A rule for DuckLake's tables: the SQL selects the rows that violate it."""

    name: str
    sentence: str
    """The message, with `{}` for the second column of the row."""
    sql: str


# Only what is visible at the newest snapshot is checked: DuckLake rewrites older snapshots.
LIVE = "f.end_snapshot IS NULL"

INVARIANTS = (
    Invariant(
        "next-file-id",
        "the newest snapshot would assign file id {} again",
        """
SELECT NULL, max(id)::text FROM (
  SELECT max(data_file_id) AS id FROM ducklake_data_file
  UNION ALL SELECT max(delete_file_id) FROM ducklake_delete_file) AS ids
HAVING max(id) >=
  (SELECT next_file_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1)""",
    ),
    Invariant(
        "next-catalog-id",
        "the newest snapshot would assign the id {} of a table again",
        """
SELECT NULL, max(id)::text FROM (
  SELECT max(table_id) AS id FROM ducklake_table
  UNION ALL SELECT max(schema_id) FROM ducklake_schema
  UNION ALL SELECT max(partition_id) FROM ducklake_partition_info) AS ids
HAVING max(id) >=
  (SELECT next_catalog_id FROM ducklake_snapshot ORDER BY snapshot_id DESC LIMIT 1)""",
    ),
    Invariant(
        "snapshot-changes",
        "snapshot {} has no list of changes",
        """
SELECT NULL, s.snapshot_id::text FROM ducklake_snapshot AS s
LEFT JOIN ducklake_snapshot_changes AS c USING (snapshot_id) WHERE c.snapshot_id IS NULL""",
    ),
    Invariant(
        "schema-version",
        "snapshot {} has a smaller schema version than the one before",
        """
SELECT NULL, snapshot_id::text FROM (
  SELECT snapshot_id, schema_version, lag(schema_version) OVER (ORDER BY snapshot_id) AS before
  FROM ducklake_snapshot) AS s WHERE schema_version < before""",
    ),
    Invariant(
        "future",
        "{} begins after the newest snapshot",
        """
SELECT table_id, 'data file ' || data_file_id FROM ducklake_data_file
WHERE begin_snapshot > (SELECT max(snapshot_id) FROM ducklake_snapshot)
UNION ALL SELECT table_id, 'table ' || table_name FROM ducklake_table
WHERE begin_snapshot > (SELECT max(snapshot_id) FROM ducklake_snapshot)""",
    ),
    Invariant(
        "table-name",
        "two tables have the name {}",
        """
SELECT min(table_id), min(table_name) FROM ducklake_table WHERE end_snapshot IS NULL
GROUP BY schema_id, lower(table_name) HAVING count(*) > 1""",
    ),
    Invariant(
        "table-schema",
        "the table {} is in a schema that does not exist",
        f"""
SELECT t.table_id, t.table_name FROM ducklake_table AS t
LEFT JOIN ducklake_schema AS s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
WHERE t.end_snapshot IS NULL AND (s.schema_id IS NULL
  OR {PARENT.format("s")} IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ducklake_schema AS o
    WHERE o.schema_id = {PARENT.format("s")} AND o.end_snapshot IS NULL))""",
    ),
    Invariant(
        "column-name",
        "two columns have the name {}",
        """
SELECT table_id, min(column_name) FROM ducklake_column WHERE end_snapshot IS NULL
GROUP BY table_id, coalesce(parent_column, -1), lower(column_name) HAVING count(*) > 1""",
    ),
    Invariant(
        "column-parent",
        "the column {} is a field of a column that does not exist",
        """
SELECT c.table_id, c.column_name FROM ducklake_column AS c
LEFT JOIN ducklake_column AS p
  ON p.table_id = c.table_id AND p.column_id = c.parent_column AND p.end_snapshot IS NULL
WHERE c.end_snapshot IS NULL AND c.parent_column IS NOT NULL AND p.column_id IS NULL""",
    ),
    Invariant(
        "file-of-nothing",
        "data file {} belongs to a table that never existed",
        f"""
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
LEFT JOIN ducklake_table AS t USING (table_id) WHERE {LIVE} AND t.table_id IS NULL""",
    ),
    # DuckDB 1.3 does not end the files of a table that it drops.
    Invariant(
        "file-of-dropped-table",
        "data file {} has not ended with its table",
        f"""
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
WHERE {LIVE} AND f.table_id IN (SELECT table_id FROM ducklake_table)
  AND f.table_id NOT IN (SELECT table_id FROM ducklake_table WHERE end_snapshot IS NULL)""",
    ),
    # ducklake_add_data_files may have added a file twice on purpose.
    Invariant(
        "duplicate-path",
        "the rows of {} are counted more than once",
        f"""
SELECT f.table_id, f.path FROM ducklake_data_file AS f WHERE {LIVE} AND f.mapping_id IS NULL
GROUP BY f.table_id, f.path, f.path_is_relative HAVING count(*) > 1""",
    ),
    Invariant(
        "duplicate-id",
        "a data file and a delete file have the id {}",
        """
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
JOIN ducklake_delete_file AS d ON d.delete_file_id = f.data_file_id""",
    ),
    Invariant(
        "sizes",
        "data file {} has an impossible footer size, file size or number of rows",
        f"""
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
WHERE {LIVE} AND (f.record_count < 0 OR f.file_size_bytes <= 0
  OR f.footer_size >= f.file_size_bytes)""",
    ),
    Invariant(
        "row-groups",
        "data file {} has an impossible number of row groups",
        f"""
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
WHERE {LIVE} AND {{row_group_count}} < least(f.record_count, 1)""",
    ),
    Invariant(
        "row-ids",
        "data files {} have the same row ids",
        f"""
SELECT table_id, data_file_id || ' and ' || after FROM (
  SELECT f.table_id, f.data_file_id, f.row_id_start + f.record_count AS row_id_end,
    lead(f.row_id_start) OVER w AS next_start, lead(f.data_file_id) OVER w AS after
  FROM ducklake_data_file AS f WHERE {LIVE} AND f.row_id_start IS NOT NULL
    AND {{data_partial_max}} IS NULL
  WINDOW w AS (PARTITION BY f.table_id ORDER BY f.row_id_start, f.data_file_id)) AS r
WHERE next_start < row_id_end""",
    ),
    Invariant(
        "table-row-ids",
        "new rows would get row ids that {} has already",
        f"""
SELECT f.table_id, 'data file ' || f.data_file_id FROM ducklake_data_file AS f
LEFT JOIN ducklake_table_stats AS s USING (table_id)
WHERE {LIVE} AND f.row_id_start + f.record_count > coalesce(s.next_row_id, 0)
  AND {{data_partial_max}} IS NULL""",
    ),
    # DuckDB subtracts too much in expire_snapshots, and does not use this number.
    Invariant(
        "table-stats",
        "the table's statistics count fewer rows than {} in its files",
        f"""
SELECT f.table_id, sum(f.record_count)::text FROM ducklake_data_file AS f
LEFT JOIN ducklake_table_stats AS s USING (table_id) WHERE {LIVE}
GROUP BY f.table_id, s.record_count HAVING sum(f.record_count) > coalesce(s.record_count, 0)""",
    ),
    Invariant(
        "partition-values",
        "data file {} does not have exactly one value for each key of its partitioning",
        f"""
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
LEFT JOIN (SELECT p.data_file_id, count(*) AS n, count(c.partition_id) AS of_keys
  FROM ducklake_file_partition_value AS p
  JOIN ducklake_data_file AS o USING (data_file_id)
  LEFT JOIN ducklake_partition_column AS c
    ON c.partition_id = o.partition_id AND c.partition_key_index = p.partition_key_index
  GROUP BY 1) AS v
  USING (data_file_id)
LEFT JOIN (SELECT i.partition_id, count(k.partition_id) AS n
  FROM ducklake_partition_info AS i LEFT JOIN ducklake_partition_column AS k USING (partition_id)
  GROUP BY 1) AS c
  USING (partition_id)
WHERE {LIVE} AND f.partition_id IS NOT NULL
  AND (coalesce(v.of_keys, 0) IS DISTINCT FROM coalesce(c.n, -1) OR c.n > 0 AND v.n <> c.n)""",
    ),
    Invariant(
        "stats-of-nothing",
        "there are statistics of data file {}, which does not exist",
        """
SELECT s.table_id, min(s.data_file_id)::text FROM {stats_table} AS s
LEFT JOIN ducklake_data_file AS f USING (data_file_id) WHERE f.data_file_id IS NULL
GROUP BY s.table_id""",
    ),
    Invariant(
        "exact-bounds",
        "the statistics of data file {} say that a bound is a value, but have no bound",
        """
SELECT s.table_id, min(s.data_file_id)::text FROM {stats_table} AS s
WHERE s.min_value IS NULL AND {min_is_exact} OR s.max_value IS NULL AND {max_is_exact}
GROUP BY s.table_id""",
    ),
    Invariant(
        "duplicate-stats",
        "data file {} has two rows of statistics for one column",
        """
SELECT table_id, data_file_id::text FROM {stats_table}
GROUP BY table_id, data_file_id, column_id HAVING count(*) > 1""",
    ),
    Invariant(
        "delete-count",
        "data file {} has more deleted rows than rows",
        f"""
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
JOIN ducklake_delete_file AS d USING (data_file_id)
WHERE {LIVE} AND d.end_snapshot IS NULL AND d.delete_count > f.record_count""",
    ),
    Invariant(
        "delete-of-nothing",
        "delete file {} belongs to a data file that does not exist",
        """
SELECT d.table_id, d.delete_file_id::text FROM ducklake_delete_file AS d
LEFT JOIN ducklake_data_file AS f USING (data_file_id)
-- Files of staged snapshots belong to the data file -1 (ducklake/writes/staged_files.py).
WHERE d.end_snapshot IS NULL AND d.data_file_id <> -1 AND f.data_file_id IS NULL""",
    ),
    Invariant(
        "delete-files",
        "data file {} has two delete files at once",
        f"""
SELECT f.table_id, f.data_file_id::text FROM ducklake_data_file AS f
JOIN ducklake_delete_file AS d USING (data_file_id)
WHERE {LIVE} AND d.end_snapshot IS NULL GROUP BY f.table_id, f.data_file_id
HAVING count(*) > 1""",
    ),
)


def violations(
    con: Connection, invariant: Invariant, fragments: Fragments
) -> list[tuple[int | None, str]]:
    """The rows that violate an invariant: the id of a table or None, and what is wrong."""
    rows = con.run(invariant.sql.format(**fragments))
    return [(table_id, what) for table_id, what in rows]
