"""The data path of a lake: S3, or a local folder that becomes a bucket."""

import os
from pathlib import Path

import pytest
from polynya.runtime.errors import Misconfigured
from polynya_local.clients.duckdb import connect
from polynya_local.lakes.lake_files import BUCKET, DataPath, data_path_of

LOCAL = [
    ("/data/lake/", "/data/lake"),
    ("/data/lake", "/data/lake"),
    ("file:///data/lake/", "/data/lake"),
    ("file:/data/lake/", "/data/lake"),
    ("data lake/", "{cwd}/data lake"),
    ("./x/", "{cwd}/x"),
]


@pytest.mark.parametrize(("stored", "folder"), LOCAL)
def test_a_local_path_is_relative_to_this_process(stored, folder):
    found = data_path_of(stored, None)
    assert found.folder == Path(folder.format(cwd=os.getcwd()))
    assert found.renamed.data_path == f"s3://{BUCKET}/"


def test_data_in_s3_stays_where_it_is():
    assert data_path_of("s3://bucket/lake/", None) == DataPath(None, None)
    moved = data_path_of("/old/", "s3://bucket/new")
    assert (moved.folder, moved.renamed.data_path) == (None, "s3://bucket/new/")


@pytest.mark.parametrize("stored", ["", "/", "//", "file:///", "gs://bucket/lake/", "az://x/y"])
def test_another_path_is_refused(stored):
    with pytest.raises(Misconfigured, match="--data-path"):
        data_path_of(stored, None)


LOCATIONS = [
    ("/data/lake/main/t/x.parquet", f"s3://{BUCKET}/main/t/x.parquet"),
    ("/data/lake-2/x.parquet", "/data/lake-2/x.parquet"),
    ("s3://other/x.parquet", "s3://other/x.parquet"),
    ("it's/x.parquet", "it's/x.parquet"),
]


@pytest.mark.parametrize(("path", "location"), LOCATIONS)
def test_locations_below_a_local_path_become_those_of_its_bucket(path, location):
    renamed = data_path_of("/data/lake/", None).renamed
    with connect() as con:
        found = con.execute(f"SELECT {renamed.location('path')} FROM (SELECT ? AS path)", [path])
        assert found.fetchone() == (location,)
