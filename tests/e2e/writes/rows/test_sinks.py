"""What a sink reads back, when DuckLake has expired the snapshot that says it.

Sinks walk from main through the parents to the newest summary that is theirs.
"""

from collections import Counter
from contextlib import closing

import pyarrow as pa
import pytest
import urllib3
from polynya_local.clients import duckdb as duckdb_client
from pyiceberg.exceptions import BadRequestError

from tests.support.servers.in_process import bridge
from tests.support.writes.spark_sql import SparkSQL
from tests.support.writes.starts import LAKE
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

EXPIRE = "CALL ducklake_expire_snapshots('lake', older_than => now())"
OFFSETS = "kafka.connect.offsets.control-iceberg.group 1"


def flink(job: str, checkpoint: int, operator: str = "sink") -> dict[str, str]:
    return {
        "flink.job-id": job,
        "flink.operator-id": operator,
        "flink.max-committed-checkpoint-id": str(checkpoint),
    }


def spark(epoch: int) -> dict[str, str]:
    return {"spark.sql.streaming.queryId": "q", "spark.sql.streaming.epochId": str(epoch)}


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [f"row {id_}" for id_ in ids]})


@pytest.fixture(scope="module", params=["materialize", "object-lambda"])
def served(request, lake, moto):
    written = set_up_writes(lake.write("sinks", LAKE))
    settings = {"SNAPSHOT_LIMIT": "3"}
    with bridge(written, moto, delivery=request.param, writes=True, settings=settings) as running:
        yield written, running, moto


@pytest.fixture
def twin(served):
    with opened(*served) as twin:
        twin.native(
            "CREATE TABLE {t} (id BIGINT, s VARCHAR)", "INSERT INTO {t} VALUES (1, 'row 1')"
        )
        twin.con.execute("CREATE TABLE IF NOT EXISTS lake.main.other (n BIGINT)")
        yield twin


@pytest.fixture
def line(served, twin):
    """The snapshots of main, from the newest to its last ancestor that is listed."""
    url = f"{served[1].catalog_uri}/v1/lake/namespaces/main/tables/{twin.name}"

    def line() -> list[dict]:
        metadata = urllib3.request("GET", url).json()["metadata"]
        by_id = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
        assert len(by_id) == len(metadata["snapshots"])
        logged = {entry["snapshot-id"] for entry in metadata["snapshot-log"]}
        ancestors, id_ = [], metadata.get("current-snapshot-id")
        while id_ in by_id:
            ancestors.append(by_id[id_])
            assert (id_ in logged) == ("polynya.summary-only" not in by_id[id_]["summary"])
            id_ = by_id[id_].get("parent-snapshot-id")
        return ancestors

    return line


def append(twin, summary: dict[str, str], *ids: int) -> None:
    twin.changes(
        "".join(f"INSERT INTO {{t}} VALUES ({id_}, 'row {id_}');" for id_ in ids),
        lambda: twin.table().append(rows(*ids), snapshot_properties=summary),
    )


def touch_another_table(twin) -> None:
    twin.con.execute("INSERT INTO lake.main.other VALUES (1)")
    twin.past[twin.newest()] = twin.past[max(twin.past)]


def expire(twin) -> None:
    """Expire all snapshots but that of another table's rows."""
    touch_another_table(twin)
    twin.con.execute(EXPIRE)
    twin.con.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    twin.forget(twin.newest())


def test_the_newest_summary_of_each_sink_stays(twin, line):
    append(twin, flink("a", 1), 2)
    append(twin, {OFFSETS: '{"0": 7}', "kafka.connect.commit-id": "c"}, 3)
    append(twin, flink("a", 2) | {"text": 'a "quoted" \\ word'}, 4)
    append(twin, spark(5), 5)
    append(twin, flink("b", 9), 6)
    append(twin, {"equality-convert-staging-snapshot": "12"}, 7)
    append(twin, flink("b", 4, "other sink"), 8)
    expected = [
        flink("b", 4, "other sink"),
        {"equality-convert-staging-snapshot": "12"},
        flink("b", 9),
        spark(5),
        flink("a", 2) | {"text": 'a "quoted" \\ word'},
        {OFFSETS: '{"0": 7}', "kafka.connect.commit-id": "c"},
    ]
    # Three are listed, and the others are older than these.
    assert [those_of(snapshot, expected) for snapshot in line()] == expected
    expire(twin)
    head, *summaries = line()
    assert [those_of(snapshot, expected) for snapshot in summaries] == expected
    assert "flink.job-id" not in head["summary"]
    twin.check()
    # Everything is as it was for the next commit of a sink.
    append(twin, flink("a", 3), 9)
    assert [those_of(snapshot, expected) for snapshot in line()[:1]] == [flink("a", 3)]
    assert not any(s["summary"].get("flink.max-committed-checkpoint-id") == "2" for s in line())
    twin.check()


def test_a_commit_without_files_stays(twin, line):
    append(twin, flink("a", 1), 2)
    for checkpoint in (2, 3):
        table = twin.table()
        with (
            table.transaction() as changes,
            changes.update_snapshot(flink("a", checkpoint)).fast_append(),
        ):
            pass
        twin.past[twin.newest()] = twin.past[max(twin.past)]
        newest = [s["summary"].get("flink.max-committed-checkpoint-id") for s in line()]
        assert newest[0] == str(checkpoint)
    expire(twin)
    newest = [s["summary"].get("flink.max-committed-checkpoint-id") for s in line()]
    assert newest == [None, "3"]
    twin.check()


def test_what_expires_between_others_stays_between_them(twin, line):
    append(twin, flink("a", 1), 2)
    append(twin, flink("a", 2), 3)
    gone = twin.newest()
    twin.native("INSERT INTO {t} VALUES (4, NULL)")
    twin.con.execute(f"CALL ducklake_expire_snapshots('lake', versions => [{gone}])")
    del twin.past[gone]
    checkpoints = [s["summary"].get("flink.max-committed-checkpoint-id") for s in line()]
    assert checkpoints[:3] == [None, "2", "1"]
    shown = [(twin.table().scan(snapshot_id=id_).to_arrow(), rows) for id_, rows in twin.listed()]
    assert len(shown) == 3
    for found, expected in shown:
        assert Counter(tuple(row.values()) for row in found.to_pylist()) == expected


def test_nobody_reads_rows_of_a_snapshot_of_which_the_summary_is_left(twin, line, served):
    append(twin, flink("a", 1), 2)
    client_id = twin.table().current_snapshot().snapshot_id
    expire(twin)
    [_, summary] = line()
    assert summary["snapshot-id"] != client_id  # whoever has read it looks for what came next
    table, id_ = twin.table(), summary["snapshot-id"]
    assert table.snapshot_by_id(client_id) is None
    with (
        pytest.warns(UserWarning, match="does not contain schema"),
        pytest.raises(FileNotFoundError, match="has-no-rows-any-more"),
    ):
        table.scan(snapshot_id=id_).to_arrow()
    assert table.snapshot_as_of_timestamp(summary["timestamp-ms"]) is None
    assert table.inspect.all_manifests().num_rows > 0
    with pytest.raises(BadRequestError, match="does not list"):
        table.manage_snapshots().create_tag(id_, "old").commit()
    uri = f"{served[1].catalog_uri}/v1/lake/namespaces/main/tables/{twin.name}/plan"
    planned = urllib3.request("POST", uri, json={"snapshot-id": id_})
    assert (planned.status, "does not list" in planned.json()["error"]["message"]) == (400, True)


def test_duckdb_reads_rows_beside_a_summary(twin, line, served):
    append(twin, flink("a", 1), 2)
    expire(twin)
    where = served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
    with closing(duckdb_client.open(*where)) as client:
        found = client.rows("main", twin.name).to_pylist()
        assert found == [{"id": 1, "s": "row 1"}, {"id": 2, "s": "row 2"}]
        with pytest.raises(RuntimeError, match="does not exist at version"):
            client.rows("main", twin.name, line()[1]["snapshot-id"])


@pytest.mark.slow
def test_spark_walks_over_a_summary(twin, line, served, tmp_path):
    append(twin, flink("a", 1), 2)
    expire(twin)
    append(twin, flink("b", 1), 3)
    id_ = line()[-1]["snapshot-id"]
    spark = SparkSQL(served[1])
    assert sorted(spark(twin, "SELECT id FROM {t}").collect()) == [(1,), (2,), (3,)]
    with pytest.raises(Exception, match="schema"):
        spark(twin, f"SELECT * FROM {{t}} VERSION AS OF {id_}").collect()
    summaries = spark(twin, "SELECT snapshot_id, summary['flink.job-id'] FROM {t}.snapshots")
    assert (id_, "a") in summaries.collect()
    assert len(spark(twin, "SELECT * FROM {t}.all_manifests").collect()) > 1
    assert id_ not in [
        row[0] for row in spark(twin, "SELECT snapshot_id FROM {t}.history").collect()
    ]
    # A stream begins with the oldest snapshot.
    options = {"streaming-skip-overwrite-snapshots": "true", "checkpointLocation": str(tmp_path)}
    source = spark(twin, "SELECT 1").sparkSession.readStream.format("iceberg").options(**options)
    stream = source.load(f"{spark.client.catalog}.main.{twin.name}").writeStream
    stream = stream.format("memory").queryName("streamed").trigger(availableNow=True)
    stream.options(**options).start().awaitTermination()
    assert spark(twin, "SELECT id FROM streamed").collect() == [(3,)]


def those_of(snapshot: dict, expected: list[dict[str, str]]) -> dict[str, str]:
    """What a sink has said in a summary."""
    names = {name for summary in expected for name in summary}
    return {name: value for name, value in snapshot["summary"].items() if name in names}
