"""Files that other programs wrote, added by clients: native DuckLake and all clients read them."""

import io
import itertools
import json

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.servers.in_process import bridge
from tests.support.writes.starts import LAKE
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

NUMBERS = itertools.count(1)
LANDING = "s3://lakes/landing/"
POLICY = {
    "principals": ["*"],
    "tables": {"*": ["*"]},
    "write": {"*": ["*"]},
    "add_files": [LANDING],
}


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("rows", LAKE))
    policy = json.dumps({"rules": [POLICY]})
    with bridge(one, moto, writes=True, settings={"AUTHORIZATION": policy}) as found:
        yield one, found, moto


@pytest.fixture
def twin(served):
    with opened(*served) as found:
        yield found


def put(moto, table, name=None, **options):
    """Put a Parquet file into the landing place; gives its location."""
    body = io.BytesIO()
    pq.write_table(table, body, **options)
    key = (name or f"landing/{next(NUMBERS)}.parquet")
    s3 = boto3.client("s3", endpoint_url=moto, region_name="us-east-1")
    s3.put_object(Bucket="lakes", Key=key, Body=body.getvalue())
    return f"s3://lakes/{key}"


CREATE = "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER)"


def rows(*ids, **columns):
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "s": [f"s{i}" for i in ids],
            "p": pa.array([i % 3 for i in ids], pa.int32()),
        }
    )


def test_pyiceberg(twin, moto):
    twin.native(CREATE, "INSERT INTO {t} VALUES (100, 'own', 1)")
    where = put(moto, rows(1, 2, 3))
    twin.changes(
        "INSERT INTO {t} VALUES (1, 's1', 1), (2, 's2', 2), (3, 's3', 0)",
        lambda: twin.table().add_files([where]),
    )
    twin.check()
    for table in ("ducklake_column_mapping", "ducklake_name_mapping"):
        print(twin.lake.database.run(f"SELECT * FROM {table}"))
    print(twin.table().properties)
    print(twin.table().inspect.files())
