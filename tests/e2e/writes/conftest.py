"""The version of the lakes that clients write to.

Each test has both versions as a parameter, unless its mark `versions` names one: CI runs it in the
first one, `make test-slow` in the other one too. A lake of version 1.1 is taken back to 1.0 after
each commit, because DuckDB 1.5.5 cannot read 1.1 (tests/support/catalog_versions.py). That is not
possible while a native transaction has its tables open, while one of its commits fails, or when a
client has created a schema within another: such tests have 1.0 alone, and those that choose the
versions themselves.
"""

import pytest

from tests.support.catalog_versions import SERVED, VERSIONS, parametrize_versions


def pytest_generate_tests(metafunc):
    if "lake" in metafunc.fixturenames:
        parametrize_versions(metafunc, VERSIONS, scope="module")


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
