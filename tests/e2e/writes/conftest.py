"""Which tests of writes CI runs: all cases of all clients take ten minutes, most of it in Spark.

And the version of the lakes in them. Half of the tests, by a hash of their names, commit to lakes
of version 1.1, which are taken back to 1.0 after each commit, because DuckDB 1.5.5 cannot read 1.1
(tests/support/catalog_versions.py). `make test-slow` runs each test in the other version too.
"""

import re
from pathlib import Path
from zlib import crc32

import pytest

from tests.support.catalog_versions import SERVED, VERSIONS

HERE = Path(__file__).parent

TURNS = ("by half", "other half")

# By folder or module, parts of the names of tests that run in version 1.0 only: a catalog cannot be
# taken back while a native transaction has its tables open, while one of its commits fails, or when
# a client has created a schema within another.
ONLY_1_0 = {
    # Those that choose the versions themselves.
    **dict.fromkeys(("test_same_rows", "test_inlined_values", "test_partition_values"), ("",)),
    "test_client_partitions": ("timestamptz", "spark"),
    "faults": ("",),
    "test_native_conflicts": ("native_transaction_runs",),
    "test_native_writers": ("native_transaction_meets",),
    "test_other_writers": ("native_transaction_runs",),
    "test_spark_names": ("test_spark",),
    "test_statistics_files": ("no_conflict_with_native_writers",),
}

# By module, parts of the names of the only tests that CI runs: each operation once, each on another
# state of the table.
IN_CI = {
    "test_add_files": (
        *(
            "[element]",
            "[a column that the table has not]",
            "[a place that nobody permits]",
        ),
        *("in_a_table", "values_in_paths"),
    ),
    "test_deletes": ("[both deletes-update]",),
    "test_overwrites": (
        "everywhere[inlined rows of two versions-upsert]",
        "every_kind",
    ),
    "test_native_conflicts": tuple(
        f"{test}[deletes-{native}]"
        for test, natives in (
            ("its_commit", ("delete", "flush")),
            ("transaction_runs", ("update", "rewrite")),
        )
        for native in natives
    ),
    "test_lost_answers": (
        *("test_pyiceberg[409]", "test_pyiceberg[500]", "test_duckdb[500]"),
        "after_commit[503]",
    ),
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
    "test_ended_files": ("flush", "deletion vector-delete all]"),
    "test_hand_made_files": ("twice", "smallest value", "in a list", "DuckLake takes", "vector"),
    "test_lake_histories": (),
    "test_mixed_histories": (),
    "test_refused": ("[rows deleted now]",),
    "test_lakes": ("[17_",),
    "test_client_partitions": ("timestamptz[day",),
    "test_spark_rows": (),
    "test_file_lakes": (
        *("changes_a_native_table[duckdb]", "half_way[duckdb]"),
        "waits_for_a_native_writer[duckdb]",
    ),
    "test_spark_names": (),
    "test_alter_in_sql": ("test_duckdb",),
    "test_plain_clients": (
        *("not_vended[object-lambda]", "told", "warehouse[object-lambda]"),
        *("rolls_back[object-lambda]", "not_removed[object-lambda"),
        "one[object-lambda-removes]",
        *("under_way[object-lambda", "function_that_writes[object-lambda]"),
        "[object-lambda-inlined rows-merge]",
    ),
    "test_same_rows": ("test_in_postgres[1.0]",),
    "test_inlined_values": ("by_a_client[postgres]",),
    "test_partition_values": ("[ducklake-pyiceberg-duckdb-days]", "in_a_catalog"),
    "test_version_3": (
        *("updates[files]", "test_pyiceberg"),
        "see_the_row_ids_of_ducklake[both deletes]",
    ),
}

# By module, parts of the names of tests that CI leaves out.
LEFT_OUT = {
    "test_append": ("test_pyiceberg[materialize]", "test_duckdb[object-lambda]"),
    "test_layout": ("duckdb[files]",),
    "test_native_writers": (
        *("go_on_after_each_append", "native_insert[1]", "native_insert[3]", "native_insert[5]"),
    ),
    "test_refused_rows": (
        *("[values have changed]", "[MOST_REWRITTEN_BYTES]", "[another client overwrites]"),
    ),
    "test_renames": (
        *("[natively twice]", "[by a client]", "of a column]", "[partitions]", "[order]"),
        "[delete]",
    ),
    "test_schema": ("[top level-", "[nested-files]"),
    "test_stale_clients": ("test_duckdb[a file and inlined rows",),
    "test_statements": ("earlier_commits",),
    "test_versions": (
        *("[loaded-", "[claimed-append]", "[claimed-add column]"),
        "clients_wrote[inlined rows of two versions]",
    ),
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
    name = without_turn(item.nodeid)
    if TURNS[1] in item.nodeid:
        return False
    if item.get_closest_marker("spark"):
        return name.endswith(SPARK_IN_CI)
    module = item.path.stem
    wanted, unwanted = IN_CI.get(module, ("",)), LEFT_OUT.get(module, ())
    return any(part in name for part in wanted) and not any(part in name for part in unwanted)


def pytest_generate_tests(metafunc):
    path = Path(metafunc.module.__file__)
    only = [*ONLY_1_0.get(path.stem, ()), *ONLY_1_0.get(path.parent.stem, ())]
    if "lake" in metafunc.fixturenames and not any(p in metafunc.definition.name for p in only):
        metafunc.parametrize("turn", TURNS, indirect=True, scope="module")


def without_turn(name: str) -> str:
    """The name of a test, the same for both turns."""
    return re.sub(f"({'|'.join(TURNS)})-?", "", name).replace("-]", "]").removesuffix("[]")


@pytest.fixture(scope="module")
def turn(request) -> str:
    """Which of the two runs of a test it is."""
    return getattr(request, "param", "")


@pytest.fixture(scope="module")
def lake(lake, turn):
    """The lakes: a module has other ones in each turn, in which the same names are free."""
    return lake


@pytest.fixture(autouse=True)
def version(request, turn, monkeypatch):
    """The version that a lake has while clients commit to it."""
    half = crc32(without_turn(request.node.name).encode())
    found = VERSIONS[(half + TURNS.index(turn)) % 2] if turn else VERSIONS[0]
    monkeypatch.setattr(SERVED, "version", found)
    return found
