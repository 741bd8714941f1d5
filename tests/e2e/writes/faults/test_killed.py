"""`kill -9` of the function within a commit: the lake is as before or after, a retry ends it."""

import sys
from contextlib import closing

import pyarrow as pa
import pytest
import urllib3
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import serving
from pyiceberg.catalog.rest import RestCatalog

from tests.support.servers.killed import STEPS
from tests.support.servers.lost_answers import LostAnswers
from tests.support.writes.writable import EMPTY, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

DATA = pa.table({"id": pa.array([1, 2], pa.int64())})
IN_CI = ("commit",)


@pytest.mark.parametrize(
    "step", [pytest.param(s, marks=[pytest.mark.slow] * (s not in IN_CI)) for s in STEPS]
)
def test_a_commit_of_a_process_that_is_killed(lake, moto, monkeypatch, tmp_path, step):
    one = set_up_writes(lake.write("killed", EMPTY))
    where = one.database.url, moto
    armed = tmp_path / "armed"
    monkeypatch.setenv("KILL_WHEN", str(armed))
    launcher = [sys.executable, "-m", "tests.support.servers.killed", step]
    with (
        pytest.raises(RuntimeError, match="ended with -9"),
        serving(*where, writes=True, command=launcher) as served,
        LostAnswers(served.catalog_uri) as proxy,
    ):
        sent = _append(served, proxy, armed)
    expected = [(1,), (2,)]
    with judging(one, moto) as judge:
        found = judge.query("SELECT id FROM lake.main.t ORDER BY id")
        assert found == (expected if STEPS[step] else [])
        snapshots = judge.query("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    armed.unlink()
    with serving(*where, writes=True) as served:
        answers = [
            urllib3.request("POST", served.catalog_uri + sent.path, body=sent.body, timeout=60)
            for _ in range(2)
        ]
    assert [answer.status for answer in answers] == [200, 200]
    with judging(one, moto) as judge:
        assert judge.query("SELECT id FROM lake.main.t ORDER BY id") == expected
        [[last]] = judge.query("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
        assert last == snapshots[0][0] + (not STEPS[step])


def _append(served, proxy, armed):
    """Append to a new table; the commit that the process dies of."""
    s3 = s3_properties(served.s3_endpoint)
    with closing(RestCatalog("c", uri=proxy.uri, warehouse="lake", **s3)) as catalog:
        table = catalog.create_table("main.t", DATA.schema)
        armed.touch()
        with pytest.raises(OSError):
            table.append(DATA)
    return proxy.last
