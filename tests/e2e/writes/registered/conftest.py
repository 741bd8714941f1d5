"""A lake that Iceberg clients write, and catalogs whose tables are registered in it."""

import json

import pytest

from tests.support.writes.everywhere import everywhere
from tests.support.writes.sources import ROOT, SparkSource, pyiceberg_source

RULE = {
    "principals": ["*"],
    "tables": {"*": ["*"]},
    "write": {"*": ["*"]},
    "add_files": [ROOT],
}


@pytest.fixture(scope="module")
def lake_of(lake, moto):
    policy = json.dumps({"rules": [RULE]})
    with everywhere(lake, moto, "registered", AUTHORIZATION=policy) as served:
        yield served


@pytest.fixture(scope="module")
def source(tmp_path_factory, moto, served_version):
    folder = tmp_path_factory.mktemp("source")
    with pyiceberg_source(folder, moto, f"source_{served_version}") as catalog:
        yield catalog


@pytest.fixture(scope="module")
def java(moto):
    return SparkSource(moto)
