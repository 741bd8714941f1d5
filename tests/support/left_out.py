"""What CI leaves to `make test-slow` beside the marks in the modules: what takes longer than two
seconds of CPU and combines things that CI has each by itself (docs/developers/testing.md says
where)."""

ALL = ("",)

# By file and test, parts of the ids of the cases that are left out.
LEFT_OUT = {
    "tests/differential/preview/test_advice.py": {
        "test_an_undo_of_a_column_that_is_called_like_one_of_the_feed": (
            "[Change_Type]",
            "[ROWID]",
            "[Snapshot_Id]",
        ),
    },
    "tests/differential/preview/test_changed_rows.py": {
        "test_a_column_that_is_called_like_one_of_the_feed": (
            "[change_type]",
            "[ROWID]",
        ),
    },
    "tests/differential/preview/test_preview.py": {
        "test_a_filter_finds_the_rows_of_native_ducklake": (
            "[f > 1]",
            "[b = 00ff]",
        ),
    },
    "tests/differential/test_catalog_versions.py": {
        "test_filters_find_what_the_writer_has": (
            "[0.3]",
            "[0.4]",
            "[1.1 of",
            "migrated]",
        ),
        "test_client_reads_what_the_writer_reads": (
            "[0.4-",
            "[0.3-pyiceberg]",
        ),
    },
    "tests/differential/test_derived_changes.py": {
        "test_each_change_can_be_derived": ("[36_",),
    },
    "tests/differential/test_emptied_chunks.py": {
        "test_every_snapshot_has_its_rows": (
            "[dropped-duckdb]",
            "[added-pyiceberg]",
            "[renamed-pyiceberg]",
        ),
    },
    "tests/differential/test_epoch_partitions.py": {
        "test_duckdb_finds_the_rows": (
            "tz_hour",
            "tz_month",
            "ms_month",
            "d_day",
        ),
        "test_pyiceberg_finds_every_row": (
            "tz_hour",
            "tz_month",
            "ms_month",
            "d_day",
        ),
    },
    "tests/differential/test_file_lakes.py": {
        "test_clients_read_what_a_writer_has_just_committed": ALL,
        "test_lakes_of_1_1_with_a_relative_data_path": ("[54-",),
    },
    "tests/differential/test_filters.py": {
        "test_pyiceberg_finds_the_same_rows_with_a_filter_as_in_the_whole_table": (
            "[03-",
            "[19-",
            "[01-",
        ),
        "test_duckdb_finds_the_same_rows_with_a_filter_as_in_the_whole_table": (
            "[04-",
            "[19-",
        ),
    },
    "tests/differential/test_inexact_bounds.py": {
        "test_a_file_that_a_filter_selects_as_a_whole_has_no_other_row": ALL,
    },
    "tests/differential/test_lakes_of_1_1.py": {
        "test_clients_read_what_ducklake_read": (
            "[14_inlined_flush-raised]",
            "[life-raised]",
        ),
        "test_a_file_of_sqlite_is_served": ALL,
    },
    "tests/differential/test_late_inlining.py": {
        "test_rows_are_read_in_the_columns_that_they_were_written_in": ("[evolved]",),
    },
    "tests/differential/test_partitioned_rows.py": {
        "test_every_row_of_a_file_has_the_partition_of_the_file": ("[by_parts-4]",),
    },
    "tests/differential/test_row_lineage.py": {
        "test_duckdb_reads_the_ids_of_ducklake": ("-merged]",),
    },
    "tests/e2e/access/test_vended_clients.py": {
        "test_duckdb_creates_a_table": ALL,
        "test_duckdb_changes_a_native_table": ALL,
    },
    "tests/e2e/access/test_vended_places.py": {
        "test_credentials_read_all_of_one_table_and_nothing_of_another": ("[object-lambda]",),
    },
    "tests/e2e/access/test_vended_writes.py": {
        "test_writers_and_readers_of_a_table_get_sessions_of_different_roles": ("[object-lambda]",),
    },
    "tests/e2e/commands/test_addresses.py": {
        "test_other_commands_read_a_file_too": ALL,
        "test_sigterm_leaves_no_postgresql": ALL,
        "test_verify_finds_data_that_has_moved": ALL,
        "test_data_elsewhere_than_beside_the_catalog_is_named": ALL,
        "test_catalog_and_data_may_be_anywhere": ALL,
    },
    "tests/e2e/commands/test_container.py": {
        "test_without_the_option_only_the_loopback_interface_is_listened_on": ALL,
    },
    "tests/e2e/test_immutable_names.py": {
        "test_a_change_of_the_layout_changes_no_bytes": ALL,
    },
    "tests/e2e/test_planned_scans.py": {
        "test_an_index_finds_the_files_that_a_scan_of_all_values_finds": (
            "[statement0]",
            "[statement2]",
            "[statement3]",
            "[statement4]",
            "[statement7]",
        ),
    },
    "tests/pages/test_browser.py": {
        "test_a_phone_shows_what_changed_and_who_said_it": ALL,
        "test_from_the_metadata_document_to_a_file": ALL,
        "test_two_snapshots_are_compared": ALL,
    },
    "tests/pages/test_command.py": {
        "test_views_say_that_a_locked_file_is_served_as_it_was": ALL,
    },
    "tests/pages/test_numbers.py": {
        "test_a_second_delete_on_a_file_changes_no_number_of_the_past": ALL,
    },
    "tests/pages/test_old_lakes.py": {
        "test_each_page_of_an_old_lake_can_be_visited": ALL,
    },
    "tests/pages/test_rows.py": {
        "test_a_snippet_is_copied_with_one_click_and_reads_the_table": ALL,
    },
    "tests/pipeline/test_bad_input.py": {
        "test_a_table_in_a_schema_of_several_levels": ALL,
        "test_each_process_fetches_role_and_password_itself": ALL,
    },
    "tests/pipeline/test_exactly_once.py": {
        "test_jobs_and_duckdb_commit_side_by_side": ALL,
    },
    "tests/pipeline/test_export.py": {
        "test_spark_reads_an_export_by_its_folder": ALL,
    },
    "tests/pipeline/test_glue.py": {
        "test_rows_read_through_glue_are_those_of_the_lake": ("[17]",),
    },
    "tests/pipeline/test_modes.py": {
        "test_append_and_overwrite_with_rows_inlined_by_duckdb": ALL,
    },
    "tests/pipeline/test_publish.py": {
        "test_a_role_without_the_right_to_export_a_snapshot_can_publish": ALL,
        "test_existing_files_are_found_with_a_listing": ALL,
        "test_executors_make_the_same_files": ALL,
        "test_readers_of_a_warm_store_build_no_files": ALL,
        "test_with_only_the_newest_snapshots_no_document_is_published": ALL,
        "test_all_files_belong_to_one_snapshot_despite_commits": ("[merge-True]",),
        "test_lost_files_are_built_again": ALL,
    },
    "tests/pipeline/test_round_trips.py": {
        "test_native_filters_find_every_row_of_every_type": ALL,
        "test_native_filters_find_nan_where_ingest_wrote_it": ALL,
    },
    "tests/pipeline/test_statistics.py": {
        "test_no_filter_loses_a_row": ALL,
    },
    "tests/pipeline/test_verify.py": {
        "test_executors_find_what_one_process_finds": ALL,
    },
}


def is_left_out(nodeid: str) -> bool:
    file, _, test = nodeid.partition("::")
    name = test.partition("[")[0]
    parts = LEFT_OUT.get(file, {}).get(name, ())
    return any(part in test[len(name) :] for part in parts)
