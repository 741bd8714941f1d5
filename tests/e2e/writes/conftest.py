"""The version of the lakes that clients write to.

Each test has both versions as a parameter: CI runs it in one of them, `make test-slow` in the other
one too. A lake of version 1.1 is taken back to 1.0 after each commit, because DuckDB 1.5.5 cannot
read 1.1 (tests/support/catalog_versions.py).
"""

from pathlib import Path

import pytest

from tests.support.catalog_versions import SERVED, VERSIONS, served_in

# The modules whose lakes are of version 1.1 in CI; half of the tests are in them.
IN_1_1 = {
    *("test_alter_in_sql", "test_metadata_log", "test_namespaces", "test_renames"),
    *("test_transactions", "test_views", "test_other_writers", "test_rows", "test_stale_clients"),
    *("test_append", "test_deletes", "test_ended_files", "test_overwrites", "test_versions"),
    *("test_row_lineage", "test_types", "test_version_3"),
}

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


def pytest_generate_tests(metafunc):
    path = Path(metafunc.module.__file__)
    only = [*ONLY_1_0.get(path.stem, ()), *ONLY_1_0.get(path.parent.stem, ())]
    if "lake" in metafunc.fixturenames and not any(p in metafunc.definition.name for p in only):
        versions = served_in(VERSIONS[path.stem in IN_1_1])
        metafunc.parametrize("served_version", versions, indirect=True, scope="module")


@pytest.fixture(scope="module")
def served_version(request) -> str:
    """The version that a lake has while clients commit to it."""
    return getattr(request, "param", "1.0")


@pytest.fixture(scope="module")
def lake(lake, served_version):
    """The lakes: a module has other ones in each version, in which the same names are free."""
    return lake


@pytest.fixture(autouse=True)
def version(served_version, monkeypatch):
    """The same, while a test runs."""
    monkeypatch.setattr(SERVED, "version", served_version)
    return served_version
