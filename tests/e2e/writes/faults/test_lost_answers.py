"""A commit lands and its answer does not arrive, or says otherwise: rows are there exactly once.

Clients cannot delete files, as with the credentials that a deployment vends.
"""

import json
from contextlib import closing, suppress

import pyarrow as pa
import pytest
import urllib3
from polynya_local.clients import duckdb as duckdb_client
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitStateUnknownException,
    ServerError,
    ServiceUnavailableError,
)

from tests.support.lakes import BUCKET
from tests.support.servers.in_process import bridge
from tests.support.servers.lost_answers import CLOSED, LostAnswers, RefusedPuts
from tests.support.writes.writable import EMPTY, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

DATA = pa.table({"id": pa.array([1, 2], pa.int64())})
ANSWERS = {"409": 409, "500": 500, "502": 502, "504": 504, "closed": CLOSED}


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("lost", EMPTY))
    with bridge(one, moto, writes=True) as bridge_, LostAnswers(bridge_.catalog_uri) as proxy:
        yield one, bridge_, proxy


@pytest.fixture(scope="module")
def pyiceberg(served):
    s3 = s3_properties(served[1].s3_endpoint)
    with closing(RestCatalog("c", uri=served[2].uri, warehouse="lake", **s3)) as found:
        yield found


def check(judge, proxy, table: str, rows: int) -> None:
    """The answers were lost, each row is there once, and no file is missing."""
    assert proxy.lost
    proxy.lost.clear()
    counted = judge.query(
        f"SELECT count(*), count(DISTINCT id) FROM lake.main.{table} WHERE id > 0"
    )
    assert counted == [(rows, rows)]


@pytest.mark.slow(but=["[409]", "[500]"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_pyiceberg(served, pyiceberg, judge, answer):
    table = pyiceberg.create_table(f"main.p{answer}", DATA.schema)
    served[2].lose(ANSWERS[answer])
    if answer == "409":
        table.append(DATA)  # it finds its own snapshot
    else:
        with pytest.raises((CommitStateUnknownException, OSError)):
            table.append(DATA)
    check(judge, served[2], f"p{answer}", 2)
    sent = served[2].requests[-1]
    shown = [s.snapshot_id for s in pyiceberg.load_table(f"main.p{answer}").snapshots()]
    assert len(shown) == 1 and str(shown[0]).encode() in sent.body


@pytest.mark.slow(but=["[500]"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_duckdb(served, judge, answer):
    """DuckDB 1.5.5 tries to delete its files, which nobody lets it do."""
    where = served[2].uri, "lake", served[1].s3_endpoint
    with closing(duckdb_client.open(*where)) as client:
        client.query(f"CREATE TABLE ice.main.d{answer} (id BIGINT)")
        served[2].lose(ANSWERS[answer])
        with suppress(RuntimeError):
            client.query(f"INSERT INTO ice.main.d{answer} VALUES (1), (2)")
        check(judge, served[2], f"d{answer}", 2)
        client.restart()
        client.query(f"INSERT INTO ice.main.d{answer} VALUES (3)")
        assert client.rows("main", f"d{answer}").num_rows == 3


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("answer", ANSWERS)
def test_spark(served, judge, answer):
    from polynya_local.clients import spark

    one = spark.open(served[2].uri, "lake", served[1].s3_endpoint)
    run, name = spark.session().sql, f"{one.catalog}.main.s{answer}"
    run(f"CREATE TABLE {name} (id BIGINT)")
    served[2].lose(ANSWERS[answer])
    with suppress(Exception):  # of Java, if it cannot find out
        run(f"INSERT INTO {name} VALUES (1), (2)")
    check(judge, served[2], f"s{answer}", 2)
    run(f"INSERT INTO {name} VALUES (3)")
    assert run(f"SELECT count(*) FROM {name}").collect()[0][0] == 3


UNKNOWN = CommitStateUnknownException, ServerError, ServiceUnavailableError
"""What PyIceberg raises if it does not know whether a commit took place; it removes no file."""


@pytest.fixture(scope="module")
def s3_that_fails(lake, moto):
    """A lake whose files of commits are put through a proxy, and the two proxies."""
    one = set_up_writes(lake.write("s3_that_fails", EMPTY))
    with RefusedPuts(moto, f"/{BUCKET}/polynya/") as s3:
        settings = {"AWS_ENDPOINT_URL_S3": s3.uri}
        with (
            bridge(one, moto, writes=True, settings=settings) as bridge_,
            LostAnswers(bridge_.catalog_uri) as proxy,
        ):
            yield one, bridge_, proxy, s3


def send_again(proxy) -> tuple[int, dict]:
    """The answer to the last commit, sent once more."""
    sent = proxy.requests[-1]
    answer = urllib3.request("POST", proxy.uri + sent.path, body=sent.body, retries=False)
    return answer.status, json.loads(answer.data or "{}")


@pytest.mark.slow(but=["[503]"])
@pytest.mark.parametrize("status", [403, 500, 503, CLOSED])
def test_s3_fails_after_commit(s3_that_fails, moto, status):
    """The rows are there once, all files stay, and the same commit is found when S3 is back."""
    one, bridge_, proxy, s3 = s3_that_fails
    name, properties = f"f{status}", s3_properties(bridge_.s3_endpoint)
    with (
        closing(RestCatalog("c", uri=proxy.uri, warehouse="lake", **properties)) as catalog,
        judging(one, moto) as judge,
    ):
        table = catalog.create_table(f"main.{name}", DATA.schema)
        table.append(DATA)
        rows = f"SELECT count(*), count(DISTINCT id) FROM lake.main.{name}"
        puts, s3.status = s3.refused, status
        try:
            with pytest.raises(UNKNOWN):
                table.append(pa.table({"id": pa.array([3], pa.int64())}))
            assert s3.refused > puts
            assert judge.query(rows) == [(3, 3)]
            again, body = send_again(proxy)
            assert again >= 500, body
            assert judge.query(rows) == [(3, 3)]
        finally:
            s3.status = None
        again, body = send_again(proxy)
        now = catalog.load_table(f"main.{name}")
        assert (again, body["metadata-location"]) == (200, now.metadata_location)
        assert sorted(now.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
        assert judge.query(rows) == [(3, 3)]
        assert [s.snapshot_id for s in now.snapshots()][-1:] == [
            update["snapshot"]["snapshot-id"]
            for update in json.loads(proxy.requests[-1].body)["updates"]
            if update["action"] == "add-snapshot"
        ]
        now.append(pa.table({"id": pa.array([4], pa.int64())}))
        assert judge.query(rows) == [(4, 4)]
