"""`polynya doctor` and `inspect` on a table whose snapshots have the ids of clients."""

import json
from contextlib import closing

import pyarrow as pa
import pytest
from polynya_local.cli import app
from typer.testing import CliRunner

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of, set_up_writes

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", None]})
COUNTS = [3, 6, 4, 3]
"""The rows after each of the commits below."""


@pytest.fixture(scope="module")
def written(lake, moto):
    one = set_up_writes(lake.write("reported", EMPTY))
    with bridge(one, moto, writes=True) as served:
        with closing(client_of(served)) as catalog:
            table = catalog.create_table("main.t", ROWS.schema)
            table.append(ROWS)
            table.append(ROWS)
            table.delete("id = 2")
            table.overwrite(ROWS)  # two Iceberg snapshots in one commit
            ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
            operations = [snapshot.summary.operation.value for snapshot in table.snapshots()]
        yield one, moto, ids, operations


def run(command: str, lake, s3_endpoint: str, *arguments: str) -> dict:
    where = ["--database", lake.database.url, "--metadata-schema", lake.metadata_schema]
    where += ["--s3-endpoint", s3_endpoint, "--json"]
    answer = CliRunner().invoke(app, [command, *where, *arguments])
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def test_a_commit_of_two_snapshots_is_listed_as_one_with_the_changes_of_both(written):
    _, _, ids, operations = written
    assert len(set(ids)) == 4 and min(ids) > 2**40
    assert operations == ["append", "append", "overwrite", "overwrite"]


def test_doctor_counts_the_rows_at_ducklakes_snapshots(written):
    lake, s3_endpoint, *_ = written
    document = run("doctor", lake, s3_endpoint, "--past", "9")
    [table] = document["tables"]
    assert [count["iceberg"] for count in table["counts"]] == COUNTS
    assert [count["ducklake"] for count in table["counts"]] == COUNTS
    assert document["well"]


def test_inspect_shows_ducklakes_ids(written):
    lake, s3_endpoint, *_ = written
    document = run("inspect", lake, s3_endpoint, "main.t")
    [first, *_, last] = [snapshot["snapshot_id"] for snapshot in document["snapshots"]]
    assert first < last < 20
