"""SQL that several statements share, and what differs between versions of the catalog.

The versions are 0.2 to 1.1. The columns that exist decide, not the name of the version.
"""

from ..rows.lake import Lake

# The predicate of the DuckLake specification, word for word, so that one can compare them:
# https://ducklake.select/docs/stable/specification/queries
VISIBLE = """:snapshot_id >= {0}.begin_snapshot
  AND (:snapshot_id < {0}.end_snapshot OR {0}.end_snapshot IS NULL)"""

# Partial files: the newest snapshot whose rows the file holds. Until 0.4 it was at the end of
# the text partial_file_info, '14:1|15:2' (snapshot:rows so far).
FRAGMENTS = {
    "data_partial_max": (
        ("ducklake_data_file.partial_max", "f.partial_max"),
        (
            "ducklake_data_file.partial_file_info",
            r"(regexp_match(f.partial_file_info, '(?:^|[|]|partial_max:)(\d+)(?::\d+)?$'))[1]"
            "::bigint",
        ),
    ),
    # Files flushed by DuckDB 1.4 say only 'partial_max:16', and hold the snapshot of each row.
    "partial_file_info": (
        (
            "ducklake_data_file.partial_file_info",
            "CASE WHEN f.partial_file_info NOT LIKE 'partial_max:%' THEN f.partial_file_info END",
        ),
    ),
    # DuckDB 1.5 leaves partial_max out of the deletes that it flushes together with their rows;
    # a file that was written at a flush holds deletes of the snapshots up to the flush. A flush of
    # 1.1 also writes deletion vectors so; a Puffin file that has a footer may hold several.
    "delete_partial_max": (
        (
            "ducklake_delete_file.partial_max",
            "coalesce(d.partial_max, CASE WHEN f.partial_max IS NOT NULL"
            " OR lower(d.format) = 'puffin' AND d.footer_size > 0 THEN"
            " (SELECT min(s.snapshot_id) FROM ducklake_snapshot AS s"
            " WHERE s.snapshot_id >= d.begin_snapshot AND s.next_file_id > d.delete_file_id) END)",
        ),
    ),
    "mapping_id": (("ducklake_data_file.mapping_id", "f.mapping_id"),),
    # Which snapshots made which schema versions: per table since 0.4, absent in 0.2.
    "schema_versions": (
        (
            "ducklake_schema_versions.table_id",
            "(SELECT begin_snapshot, schema_version FROM ducklake_schema_versions"
            " WHERE table_id = :table_id)",
        ),
        ("ducklake_schema_versions.begin_snapshot", "ducklake_schema_versions"),
        (
            "ducklake_data_file.data_file_id",
            "(SELECT NULL::bigint AS begin_snapshot, NULL::bigint AS schema_version)",
        ),
    ),
    "row_group_count": (("ducklake_data_file.row_group_count", "f.row_group_count"),),
    # Whether a bound is a value of the column; NULL: not known. Without the columns nobody says.
    "min_is_exact": (("ducklake_file_column_stats.min_is_exact", "s.min_is_exact"),),
    "max_is_exact": (("ducklake_file_column_stats.max_is_exact", "s.max_is_exact"),),
    "is_partition": (("ducklake_name_mapping.is_partition", "n.is_partition"),),
    "author": (("ducklake_snapshot_changes.author", "c.author"),),
    "commit_message": (("ducklake_snapshot_changes.commit_message", "c.commit_message"),),
    "stats_table": (
        ("ducklake_file_column_stats.column_id", "ducklake_file_column_stats"),
        ("ducklake_file_column_statistics.column_id", "ducklake_file_column_statistics"),
    ),
}

# The schema that a schema is in: a column of 1.1. The row itself is asked for it, so that one text
# of SQL serves catalogs with and without the column, also while a lake is migrated.
PARENT = "CAST(to_jsonb({0}) ->> 'parent_schema_id' AS bigint)"

# The names of the schemas that a schema is in, by their newest rows, outermost first. It is NULL if
# a row is missing, or a schema is within itself.
PARENTS = f"""
CASE WHEN {PARENT} IS NULL THEN CAST(ARRAY[] AS text[]) ELSE (
  WITH RECURSIVE above AS (
    SELECT ARRAY[{{0}}.schema_id] AS ids, {PARENT} AS parent_id, CAST(ARRAY[] AS text[]) AS names
    UNION ALL
    SELECT a.ids || a.parent_id, p.parent_id, CAST(p.schema_name AS text) || a.names
    FROM above AS a CROSS JOIN LATERAL (
      SELECT o.schema_name, {PARENT.format("o")} AS parent_id FROM ducklake_schema AS o
      WHERE o.schema_id = a.parent_id ORDER BY o.begin_snapshot DESC LIMIT 1) AS p
    WHERE NOT a.parent_id = ANY(a.ids))
  SELECT a.names FROM above AS a WHERE a.parent_id IS NULL) END"""


def fragment(lake: Lake, name: str) -> str:
    """The SQL for what `name` is in this catalog's version; NULL where it has no such thing."""
    return next((sql for column, sql in FRAGMENTS[name] if column in lake.layout), "NULL")


# `to_regclass` looks in the schema that `catalog_connection` puts before every table.
CATALOG_SCHEMA = "(SELECT relnamespace FROM pg_class WHERE oid = to_regclass('ducklake_metadata'))"
