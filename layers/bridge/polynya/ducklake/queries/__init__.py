"""The SELECTs on DuckLake's catalog, as statements whose results are rows in DuckLake's own terms.

`_at` in a name means "as of this snapshot": visible from its begin_snapshot up to, but not
including, its end_snapshot.
"""

from .catalog import lake, layout, snapshot_exists
from .commits import client_snapshots, has_commits
from .deletes import (
    delete_files_at,
    inlined_delete_names,
    inlined_delete_table,
    inlined_deletes_at,
    unservable_deletes,
    unservable_inlined_deletes,
)
from .files.data_files import (
    column_stats,
    data_files_at,
    file_groups,
    first_added_files,
    partition_values,
    unservable_data_files,
)
from .files.planned_files import planned_files
from .fragments import CATALOG_SCHEMA, fragment
from .inlined_tables import (
    inlined,
    inlined_origin,
    inlined_rows_at,
    inlined_table_names,
    inlined_text_bytes,
    system_columns,
    unservable_inlined_tables,
)
from .named_objects import (
    column_tags_at,
    has_entries,
    names_now,
    schemas_at,
    table_at,
    table_of_uuid,
    tables_at,
    tags_at,
    view_column_comments_at,
    view_name_of_uuid,
    views_at,
)
from .table_columns import (
    columns,
    columns_now,
    lacking_files,
    mapped_names,
    partition_columns,
    partitionings,
    sort_keys_at,
)
from .table_snapshots import next_snapshots, previous_snapshot, snapshots
from .writers.known_paths import known_locations
from .writers.live_files import live_files
from .writers.table_stats import next_row_id, table_column_stats
from .writers.view_texts import view_texts

__all__ = [
    "CATALOG_SCHEMA",
    "client_snapshots",
    "column_stats",
    "column_tags_at",
    "columns",
    "columns_now",
    "data_files_at",
    "delete_files_at",
    "file_groups",
    "first_added_files",
    "fragment",
    "has_commits",
    "has_entries",
    "inlined",
    "inlined_delete_names",
    "inlined_delete_table",
    "inlined_deletes_at",
    "inlined_origin",
    "inlined_rows_at",
    "inlined_table_names",
    "inlined_text_bytes",
    "known_locations",
    "lacking_files",
    "lake",
    "layout",
    "live_files",
    "mapped_names",
    "names_now",
    "next_row_id",
    "next_snapshots",
    "partition_columns",
    "partition_values",
    "partitionings",
    "planned_files",
    "previous_snapshot",
    "schemas_at",
    "snapshot_exists",
    "snapshots",
    "sort_keys_at",
    "system_columns",
    "table_at",
    "table_column_stats",
    "table_of_uuid",
    "tables_at",
    "tags_at",
    "unservable_data_files",
    "unservable_deletes",
    "unservable_inlined_deletes",
    "unservable_inlined_tables",
    "view_column_comments_at",
    "view_name_of_uuid",
    "view_texts",
    "views_at",
]
