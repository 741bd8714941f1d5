"""Which tests of writes CI runs: all cases of all clients take ten minutes, most of it in Spark."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent

# By module, parts of the names of its tests that CI runs. Modules that are absent run as a whole.
IN_CI = {
    "test_deletes": ("[both deletes-", "[inlined rows of two versions-"),
    "test_overwrites": ("[both deletes-", "[inlined rows of two versions-", "a column dropped-"),
    "test_native_conflicts": ("[deletes-",),
    "test_lost_answers": ("test_pyiceberg[409]", "test_pyiceberg[500]", "test_duckdb[500]"),
    "test_database_faults": ("lost_is_found", "lost_anywhere", "terminated"),
    "test_spark_rows": (),
    "test_spark_names": (),
    "test_alter_in_sql": ("test_duckdb",),
}

SPARK_IN_CI = "test_append.py::test_spark[materialize]"


def pytest_collection_modifyitems(items):
    for item in items:
        if HERE in item.path.parents and not _is_in_ci(item):
            item.add_marker(pytest.mark.slow)


def _is_in_ci(item) -> bool:
    if item.get_closest_marker("spark"):
        return item.nodeid.endswith(SPARK_IN_CI)
    wanted = IN_CI.get(item.path.stem)
    return wanted is None or any(part in item.nodeid for part in wanted)
