"""`verify` of tables that Iceberg clients have written: no finding, at any level but Spark's."""

import json

import pyarrow as pa
import pytest
from polynya_pipeline.verify.job import verify
from pyiceberg.transforms import TruncateTransform

from tests.e2e.writes.catalog.test_reports import run
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
        check(served, twin)


def check(served, twin) -> None:
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


def test_a_partitioning_that_ducklake_does_not_have(served, monkeypatch):
    """Nor does `doctor` find anything, and `inspect` shows the client's fields."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", served[2])
    with opened(*served) as twin:
        schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("n", pa.int32())])
        with twin.pyiceberg.create_table_transaction(f"main.{twin.name}", schema) as new:
            with new.update_spec() as spec:
                spec.add_field("s", TruncateTransform(1), "the letter")
            rows = {"id": [1, 2, 3], "s": ["a", "b", None], "n": pa.array([1, 2, 3], pa.int32())}
            new.append(pa.table(rows))
        twin.table().append(pa.table(rows))
        twin.con.execute(f"CALL ducklake_merge_adjacent_files('lake', '{twin.name}')")
        twin.con.execute(f"INSERT INTO {twin.source} VALUES (4, 'native', 4)")
        check(served, twin)
        table = f"main.{twin.name}"
        tables = run("doctor", served[0], served[2], "--past", "9")["tables"]
        [counts] = [found["counts"] for found in tables if found["name"] == table]
        assert counts[-1]["iceberg"] == 7
        assert all(count["iceberg"] == count["ducklake"] for count in counts)
        assert "the letter" in json.dumps(run("inspect", served[0], served[2], table))
