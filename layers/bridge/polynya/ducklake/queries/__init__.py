"""The SELECTs on DuckLake's catalog, as statements whose results are rows in DuckLake's own terms.

`_at` in a name means "as of this snapshot": visible from its begin_snapshot up to, but not
including, its end_snapshot.
"""

from .catalog import CATALOG_SCHEMA as CATALOG_SCHEMA
from .catalog import STATE_AFTER as STATE_AFTER
from .catalog import catalog_state as catalog_state
from .catalog import changes_others_only as changes_others_only
from .catalog import fragment as fragment
from .catalog import has_commits as has_commits
from .catalog import has_sinks as has_sinks
from .catalog import lake as lake
from .catalog import snapshot_exists as snapshot_exists
from .data_files import data_files_at as data_files_at
from .data_files import data_files_of as data_files_of
from .data_files import files_with as files_with
from .data_files import first_added_files as first_added_files
from .delete_rows import delete_files_at as delete_files_at
from .delete_rows import inlined_delete_names as inlined_delete_names
from .delete_rows import inlined_delete_table as inlined_delete_table
from .delete_rows import inlined_deletes_at as inlined_deletes_at
from .inlined_tables import inlined as inlined
from .inlined_tables import inlined_origin as inlined_origin
from .inlined_tables import inlined_rows_at as inlined_rows_at
from .inlined_tables import inlined_table_names as inlined_table_names
from .inlined_tables import inlined_text_bytes as inlined_text_bytes
from .inlined_tables import system_columns as system_columns
from .named_objects import has_entries as has_entries
from .named_objects import has_view_column_tags as has_view_column_tags
from .named_objects import names_now as names_now
from .named_objects import names_of_table as names_of_table
from .named_objects import others as others
from .named_objects import schemas_at as schemas_at
from .named_objects import table_at as table_at
from .named_objects import table_of_uuid as table_of_uuid
from .named_objects import tables_at as tables_at
from .named_objects import tags_at as tags_at
from .named_objects import view_column_comments_at as view_column_comments_at
from .named_objects import view_name_of_uuid as view_name_of_uuid
from .named_objects import views_at as views_at
from .planned_files import drop_keys as drop_keys
from .planned_files import files_from_elsewhere as files_from_elsewhere
from .planned_files import files_of_values as files_of_values
from .planned_files import files_without_value as files_without_value
from .planned_files import has_values_index as has_values_index
from .planned_files import planned_files as planned_files
from .planned_files import tested_keys as tested_keys
from .state_changes import ChangedTables as ChangedTables
from .state_changes import SeenState as SeenState
from .state_changes import changes_since as changes_since
from .table_columns import added_files_of_other_scale as added_files_of_other_scale
from .table_columns import columns as columns
from .table_columns import columns_now as columns_now
from .table_columns import files_from_2_31 as files_from_2_31
from .table_columns import have_short_footers as have_short_footers
from .table_columns import lacking_files as lacking_files
from .table_columns import partition_columns as partition_columns
from .table_columns import partitionings as partitionings
from .table_columns import top_level_names as top_level_names
from .writers import known_locations as known_locations
from .writers import live_files as live_files
from .writers import locations_of_names as locations_of_names
from .writers import next_row_id as next_row_id
from .writers import table_column_stats as table_column_stats
from .writers import view_texts as view_texts
