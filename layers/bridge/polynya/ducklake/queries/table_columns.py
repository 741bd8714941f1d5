"""Columns, sort keys, partition columns and name mappings of a table."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..column_tree import ColumnNode, column_node, column_tree, column_version
from ..connection.catalog_connection import Rows, Statement, constant, select
from ..rows.objects import Column, Lake, MappedName, PartitionColumn, SortKey
from .catalog import VISIBLE, sql_for_version

COLUMNS = """
SELECT {table_id}c.column_id, c.begin_snapshot, c.end_snapshot, c.column_name, c.column_type,
  c.initial_default, c.parent_column, coalesce(c.nulls_allowed, true),
  CASE WHEN to_jsonb(c)->>'default_value_type' = 'literal'
    THEN nullif(to_jsonb(c)->>'default_value', 'NULL') END
FROM ducklake_column AS c
WHERE {condition} AND c.begin_snapshot <= :snapshot_id
ORDER BY c.column_order, c.column_id, c.begin_snapshot"""


def columns(table_id: int, snapshot_id: int) -> Statement[list[Column]]:
    """Every version of every column that began up to `snapshot_id`."""
    sql = COLUMNS.format(table_id="", condition="c.table_id = :table_id")
    return select(column_version, sql, table_id=table_id, snapshot_id=snapshot_id)


TOP_LEVEL = """
SELECT c.column_id, c.column_name, c.end_snapshot IS NOT DISTINCT FROM t.end_snapshot
FROM ducklake_column AS c CROSS JOIN (
  SELECT n.end_snapshot FROM ducklake_table AS n WHERE n.table_id = :table_id
  ORDER BY n.begin_snapshot DESC LIMIT 1) AS t
WHERE c.table_id = :table_id AND c.parent_column IS NULL"""


@dataclass(frozen=True, slots=True)
class ColumnNaming:
    """A name that a column of the top level has, or has had."""

    column_id: int
    column_name: str | None
    is_last: bool
    """The column has it now; of a dropped table: it had it in the end."""


def top_level_names(table_id: int) -> Statement[list[ColumnNaming]]:
    """All names of the columns of the top level, of all snapshots."""
    return select(ColumnNaming, TOP_LEVEL, table_id=table_id)


def columns_of_tables(
    table_ids: Sequence[int], snapshot_id: int
) -> Statement[dict[int, list[Column]]]:
    """`columns` of several tables, by table_id."""

    def result(rows: Rows) -> dict[int, list[Column]]:
        columns: dict[int, list[Column]] = {}
        for table_id, *row in rows:
            columns.setdefault(table_id, []).append(column_version(*row))
        return columns

    condition = "c.table_id = ANY(CAST(:table_ids AS bigint[]))"
    sql = COLUMNS.format(table_id="c.table_id, ", condition=condition)
    return Statement(sql, {"table_ids": list(table_ids), "snapshot_id": snapshot_id}, result)


# DuckLake writes the text NULL where a column has no default.
COLUMNS_NOW = """
SELECT c.column_id, c.column_name, c.column_type, c.nulls_allowed,
  nullif(c.default_value, 'NULL'), c.parent_column
FROM ducklake_column AS c WHERE c.table_id = :table_id AND c.end_snapshot IS NULL
ORDER BY c.column_order"""


def columns_now(table_id: int) -> Statement[tuple[ColumnNode, ...]]:
    """The top-level columns at the newest snapshot, with their nested columns."""

    def result(rows: Rows) -> tuple[ColumnNode, ...]:
        return column_tree((column_node(*row[:5]), row[5]) for row in rows)

    return Statement(COLUMNS_NOW, {"table_id": table_id}, result)


SORT_KEYS_AT = f"""
SELECT e.expression, e.sort_direction, e.null_order
FROM ducklake_sort_info AS i JOIN ducklake_sort_expression AS e USING (sort_id)
WHERE i.table_id = :table_id AND {VISIBLE.format("i")} ORDER BY e.sort_key_index"""


def sort_keys_at(lake: Lake, snapshot_id: int, table_id: int) -> Statement[list[SortKey]]:
    """What a table is SORTED BY; an empty list in catalogs before 0.4."""
    if "ducklake_sort_info.sort_id" not in lake.layout:
        return constant([])
    return select(SortKey, SORT_KEYS_AT, snapshot_id=snapshot_id, table_id=table_id)


PARTITION_COLUMNS = """
SELECT i.partition_id, c.partition_key_index, c.column_id, c.transform
FROM ducklake_partition_info AS i JOIN ducklake_partition_column AS c USING (partition_id)
WHERE i.table_id = :table_id ORDER BY i.partition_id, c.partition_key_index"""


def partition_columns(table_id: int) -> Statement[dict[int | None, list[PartitionColumn]]]:
    """The columns of every partitioning the table ever had, by partition_id."""
    return Statement(PARTITION_COLUMNS, {"table_id": table_id}, _partition_columns)


def _partition_columns(rows: Rows) -> dict[int | None, list[PartitionColumn]]:
    columns: dict[int | None, list[PartitionColumn]] = {}
    for partition_id, *row in rows:
        columns.setdefault(partition_id, []).append(PartitionColumn(*row))
    return columns


# A partitioning that ends where it begins belongs to clients. One without keys is current until
# another one begins (decision 26). Those for files in other directories do not count: they have
# keys, or begin together with one that has a smaller id.
PARTITIONINGS = f"""
SELECT i.partition_id, i.begin_snapshot, {VISIBLE.format("i")} OR i.begin_snapshot = i.end_snapshot
FROM ducklake_partition_info AS i
WHERE i.table_id = :table_id AND i.begin_snapshot <= :snapshot_id AND NOT (
  i.begin_snapshot = coalesce(i.end_snapshot, -1)
  AND EXISTS (SELECT FROM ducklake_partition_column AS c
    WHERE c.partition_id = i.partition_id AND c.table_id = i.table_id))
ORDER BY i.begin_snapshot, {VISIBLE.format("i")}, i.partition_id DESC"""


def partitionings(table_id: int, snapshot_id: int) -> Statement[tuple[int | None, list[int]]]:
    """The partition_id of files that are written at the snapshot, and when each one began."""
    parameters = {"table_id": table_id, "snapshot_id": snapshot_id}
    return Statement(PARTITIONINGS, parameters, _partitionings)


def _partitionings(rows: Rows) -> tuple[int | None, list[int]]:
    current = [partition_id for partition_id, _, is_visible in rows if is_visible]
    return current[-1] if current else None, [begin for _, begin, _ in rows]


# Two tables share a mapping_id if another program (ducklake-dataframe) did not take it from the
# catalog's counter. Then the rows do not show which table they belong to, but a column is mapped by
# its own name, which the group of a list is not.
MAPPED_NAMES = """
SELECT DISTINCT n.mapping_id, n.column_id, n.source_name, n.target_field_id, n.parent_column,
  {is_partition}
FROM ducklake_name_mapping AS n JOIN ducklake_column_mapping AS m USING (mapping_id)
WHERE m.table_id = :table_id AND (
  NOT EXISTS (SELECT FROM ducklake_column_mapping AS o
    WHERE o.mapping_id = m.mapping_id AND o.table_id <> m.table_id)
  OR EXISTS (SELECT FROM ducklake_column AS c
    WHERE c.table_id = m.table_id AND c.column_id = n.target_field_id
      AND (lower(c.column_name) = lower(n.source_name)
        OR n.source_name = 'list' AND c.column_name = 'element')))
ORDER BY n.mapping_id, n.column_id"""


def mapped_names(lake: Lake, table_id: int) -> Statement[list[MappedName]]:
    """The names of columns in the files that were added to the table."""
    sql = sql_for_version(lake, MAPPED_NAMES)
    return select(MappedName, sql, table_id=table_id)


# A file has a column if it has statistics of it. A file that is older than the column need not lack
# it: a merge may have rewritten it since. The snapshot that added the column may have files from
# before and from after the change.
LACKING_FILES = """
SELECT c.column_id, bool_or(f.end_snapshot IS NULL), max(f.end_snapshot)
FROM unnest(CAST(:column_ids AS bigint[]), CAST(:borns AS bigint[])) AS c(column_id, born)
JOIN ducklake_data_file AS f ON f.table_id = :table_id
  AND (f.end_snapshot > c.born OR f.end_snapshot IS NULL)
  AND f.begin_snapshot <= c.born
WHERE NOT EXISTS (SELECT FROM {stats_table} AS s
  WHERE s.table_id = :table_id AND s.data_file_id = f.data_file_id AND s.column_id = c.column_id)
  AND (c.column_id <> ALL(CAST(:filled_in AS bigint[]))
    OR {mapping_id} IS NOT NULL AND NOT CAST(:fills_added AS boolean)
    OR f.footer_size BETWEEN 1 AND least(f.file_size_bytes, :largest_footer) IS NOT TRUE)
GROUP BY 1"""


# The statistics of a file cover all of its rows if their counts do. An added file may hold a BIGINT
# as UINTEGER, of which the catalog has only the bounds.
FROM_2_31 = """
SELECT DISTINCT s.column_id, f.begin_snapshot, f.end_snapshot
FROM unnest(CAST(:column_ids AS bigint[]), CAST(:in_added_files AS boolean[]))
  AS c(column_id, in_added_files)
JOIN {stats_table} AS s ON s.column_id = c.column_id AND s.table_id = :table_id
JOIN ducklake_data_file AS f USING (data_file_id)
WHERE f.table_id = :table_id AND ({mapping_id} IS NOT NULL OR NOT c.in_added_files)
  AND (s.value_count = 0 AND s.max_value IS NULL) IS NOT TRUE
  AND CASE
    WHEN s.max_value ~ '^[0-9]{{1,20}}$'
    THEN s.max_value::numeric >= 2147483648 AND (NOT c.in_added_files
      OR s.max_value::numeric <= 4294967295 AND left(s.min_value, 1) IS DISTINCT FROM '-')
    WHEN s.max_value ~ '^-[0-9]{{1,20}}$' THEN NOT c.in_added_files
    ELSE TRUE END
ORDER BY 1, 2"""


def files_from_2_31(
    lake: Lake, table_id: int, column_ids: Mapping[int, bool]
) -> Statement[list[tuple[int, int, int | None]]]:
    """The snapshots that show data files which may have a UINTEGER of 2147483648 or more in these
    columns, in ascending order for each column: (column_id, begin_snapshot, end_snapshot).

    Args:
        column_ids: True: only added files may have a UINTEGER there.
    """
    if not column_ids:
        return constant([])
    sql = sql_for_version(lake, FROM_2_31)
    columns = {"column_ids": [*column_ids], "in_added_files": [*column_ids.values()]}
    return Statement(sql, {"table_id": table_id, **columns}, _ranges)


def _ranges(rows: Rows) -> list[tuple[int, int, int | None]]:
    return [(column_id, begin, end) for column_id, begin, end in rows]


# DuckLake takes the bounds of an added file as they are, with the digits that its type has. Where
# there is none, the type is not known.
OF_OTHER_SCALE = """
SELECT DISTINCT s.column_id, f.begin_snapshot, f.end_snapshot
FROM unnest(CAST(:column_ids AS bigint[]), CAST(:scales AS integer[])) AS c(column_id, scale)
JOIN {stats_table} AS s ON s.column_id = c.column_id AND s.table_id = :table_id
JOIN ducklake_data_file AS f USING (data_file_id)
WHERE f.table_id = :table_id AND {mapping_id} IS NOT NULL
  AND (s.value_count = 0 AND s.max_value IS NULL) IS NOT TRUE
  AND length(split_part(s.max_value, '.', 2)) IS DISTINCT FROM c.scale
ORDER BY 1, 2"""


def added_files_of_other_scale(
    lake: Lake, table_id: int, scales: Mapping[int, int]
) -> Statement[list[tuple[int, int, int | None]]]:
    """The snapshots that show added files which may have another number of digits after the point
    in these columns, in ascending order for each column: (column_id, begin_snapshot, end_snapshot).
    """
    if not scales:
        return constant([])
    sql = sql_for_version(lake, OF_OTHER_SCALE)
    columns = {"column_ids": [*scales], "scales": [*scales.values()]}
    return Statement(sql, {"table_id": table_id, **columns}, _ranges)


SHORT_FOOTERS = """
SELECT bool_and(f.footer_size BETWEEN 1 AND least(f.file_size_bytes, :largest_footer) IS TRUE)
FROM ducklake_data_file AS f WHERE f.table_id = :table_id AND {mapping_id} IS NOT NULL"""


def have_short_footers(lake: Lake, table_id: int, largest_footer: int) -> Statement[bool]:
    """Whether the lengths of the footers of all added files are certain, and not too large."""
    sql = sql_for_version(lake, SHORT_FOOTERS)
    parameters = {"table_id": table_id, "largest_footer": largest_footer}
    return Statement(sql, parameters, lambda rows: rows[0][0] is not False)


def lacking_files(
    lake: Lake,
    table_id: int,
    borns: dict[int, int],
    filled_in: Collection[int] = (),
    largest_footer: int = 0,
    *,
    fills_added: bool = False,
) -> Statement[dict[int, int | None]]:
    """The end snapshot of the files that clients read without a column, by column_id.

    None: such files are visible now. A column without such files is absent.

    Args:
        borns: the snapshot that added each column, by column_id.
        filled_in: the columns that clients find in files of DuckLake which lack them, if the
            length of the footer is certain.
        largest_footer: the longest with which they do.
        fills_added: they also find them in files that somebody has added.
    """
    if not borns:
        return constant({})
    sql = sql_for_version(lake, LACKING_FILES)
    parameters = {
        "column_ids": list(borns),
        "borns": list(borns.values()),
        "filled_in": list(filled_in),
        "largest_footer": largest_footer,
        "fills_added": fills_added,
        "table_id": table_id,
    }
    return Statement(sql, parameters, _lacking_files)


def _lacking_files(rows: Rows) -> dict[int, int | None]:
    return {column_id: None if is_visible else until for column_id, is_visible, until in rows}
