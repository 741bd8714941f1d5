"""Which tests of writes CI runs: all cases of all clients take ten minutes, most of it in Spark."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent

# By module, parts of the names of the only tests that CI runs: each operation once, each on another
# state of the table.
IN_CI = {
    "test_deletes": (
        "[both deletes-update]",
        "[partitions with inlined rows and deletes-merge]",
    ),
    "test_overwrites": (
        "[delete files-delete all]",
        "[inlined rows of two versions-upsert]",
        "[inlined rows, and a column dropped-overwrite by filter]",
        "[partitions with inlined rows and deletes-delete some]",
    ),
    "test_native_conflicts": tuple(
        f"{test}[deletes-{native}]"
        for test, natives in (
            ("its_commit", ("delete", "delete the same row", "merge", "flush")),
            ("transaction_runs", ("insert", "update", "rewrite")),
        )
        for native in natives
    ),
    "test_lost_answers": ("test_pyiceberg[409]", "test_pyiceberg[500]", "test_duckdb[500]"),
    "test_database_faults": (
        *("lost_is_found", "lost_anywhere", "terminated"),
        *("-after_commit", "[drop a table-before_commit]", "in_the_table"),
    ),
    "test_as_native": (),
    "test_rows": (
        "[partitions-delete twice]",
        "expired",
    ),
    "test_many_rows": (),
    "test_other_writers": (
        *("claim", "fails", "[delete-both deletes]", "[flush-both deletes]"),
        *("[merge-files]", "[update-files]"),
    ),
    "test_unknown_statistics": ("[only NULL before]", "[a file without statistics]"),
    "test_missing_columns": ("statistics_are", "told", "[integer-"),
    "test_ended_files": ("flush", "[two snapshots-delete all]", "deletion vector-delete all]"),
    "test_hand_made_files": ("twice", "smallest value", "in a list", "DuckLake takes", "vector"),
    "test_lake_histories": ("[17_",),
    "test_lakes": ("[13_", "[17_", "[22_"),
    "test_spark_rows": (),
    "test_spark_names": (),
    "test_alter_in_sql": ("test_duckdb",),
    "test_plain_clients": (
        *("configuration", "told", "pyiceberg_needs", "rolls_back", "not_removed[object-lambda"),
        *("no_option_if_nothing_is_vended[object-lambda]", "one[object-lambda-removes]"),
        *("under_way[object-lambda", "function_that_writes[object-lambda]"),
        "[object-lambda-inlined rows-merge]",
        "[object-lambda-inlined rows of two versions-update]",
    ),
    "test_version_3": (
        *("updates[files]", "test_pyiceberg"),
        "see_the_row_ids_of_ducklake[both deletes]",
    ),
}

# By module, parts of the names of tests that CI leaves out.
LEFT_OUT = {
    "test_append": ("test_pyiceberg[materialize]", "test_duckdb[object-lambda]"),
    "test_layout": ("duckdb[files]",),
    "test_native_writers": ("go_on_after_each_append",),
    "test_schema": ("[top level-", "[nested-files]"),
    "test_statements": ("earlier_commits",),
}

SPARK_IN_CI = (
    "test_append.py::test_spark[materialize]",
    "test_version_3.py::test_spark_deletes_with_deletion_vectors[both deletes]",
)


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and not _is_in_ci(item):
            item.add_marker(pytest.mark.slow)


def _is_in_ci(item) -> bool:
    if item.get_closest_marker("spark"):
        return item.nodeid.endswith(SPARK_IN_CI)
    module = item.path.stem
    wanted, unwanted = IN_CI.get(module, ("",)), LEFT_OUT.get(module, ())
    return any(part in item.nodeid for part in wanted) and not any(
        part in item.nodeid for part in unwanted
    )
