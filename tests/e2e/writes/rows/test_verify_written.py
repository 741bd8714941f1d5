"""`verify` of tables that Iceberg clients have written: no finding, at any level but Spark's."""

import pyarrow as pa
import pytest
from polynya_pipeline.verify.job import verify

from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, LAKE, STARTS
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("verified", LAKE))
    with bridge(one, moto, writes=True) as found:
        yield one, found, moto


@pytest.mark.parametrize("hidden", ["", "ALTER TABLE {t} ADD COLUMN h HUGEINT"])
def test_a_table_of_several_writers_has_no_finding(served, monkeypatch, hidden):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", served[2])
    with opened(*served) as twin:
        twin.native(DO_NOT_INLINE, *STARTS["partitions with inlined rows and deletes"])
        if hidden:
            twin.native(hidden)
        rows = pa.table({"id": [50, 51], "s": ["x", None], "p": pa.array([1, 2], pa.int32())})
        twin.table().append(rows)
        twin.table().delete("id = 50")
        twin.table().append(rows)
        report = verify(
            database=served[0].database.url,
            levels=("catalog", "storage", "metadata"),
            table=f"main.{twin.name}",
            footers=True,
            catalog_uri=served[1].catalog_uri,
            bridge_s3_endpoint=served[1].s3_endpoint,
        )
    assert report.findings == []
    assert report.checked["tables with metadata"] == 1 and report.checked["footers"] > 1
