"""A process that works for a request of `polynya serve` ends: the request is refused, no other."""

import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pyarrow as pa
import pytest
import requests
from polynya_local.processes.serving import serving
from pyiceberg.exceptions import BadRequestError

from tests.e2e.commands.test_workers import eventually
from tests.support.writes.writable import client_of, judging, set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i BIGINT);
INSERT INTO t VALUES (1), (2);
CREATE TABLE other(i BIGINT);
INSERT INTO other VALUES (1);
"""
ROWS = pa.table({"i": pa.array([3], pa.int64())})
LAUNCHER = [sys.executable, "-m", "tests.support.servers.crashing"]


@pytest.fixture
def crash(tmp_path, monkeypatch):
    """While this file exists, readers crash."""
    monkeypatch.setenv("CRASH_WHEN", str(tmp_path / "crash"))
    return tmp_path / "crash"


@pytest.fixture
def pause(tmp_path, monkeypatch):
    """While this file exists, builders wait."""
    monkeypatch.setenv("PAUSE_WHEN", str(tmp_path / "pause"))
    return tmp_path / "pause"


def manifest_list(bridge, table: str) -> str:
    """The address of the list of a table's newest snapshot."""
    url = f"{bridge.catalog_uri}/v1/lake/namespaces/main/tables/{table}"
    location = requests.get(url, timeout=60).json()["metadata"]["snapshots"][-1]["manifest-list"]
    return f"{bridge.s3_endpoint}/{location.removeprefix('s3://')}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_one_that_builds_is_killed(lake, moto, crash, pause, number):
    one = lake.write("ended_builder", SCRIPT)
    with (
        serving(one.database.url, moto, delivery="object-lambda", command=LAUNCHER) as bridge,
        ThreadPoolExecutor(1) as thread,
    ):
        kept, address = manifest_list(bridge, "other"), manifest_list(bridge, "t")
        body = requests.get(kept, timeout=60).content
        pause.touch()
        first = thread.submit(requests.get, address, timeout=60)
        eventually(lambda: pause.read_text() != "")
        assert requests.get(kept, timeout=10).content == body
        assert manifest_list(bridge, "t") == address
        os.kill(int(pause.read_text()), number)
        refused = first.result()
        pause.unlink()
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
        assert "<Code>SlowDown</Code>" in refused.text
        assert "the process that generated this file has ended" in refused.text
        assert requests.get(address, timeout=60).status_code == 200


def test_one_that_reads_uploads_dies_of_them(lake, moto, crash, pause):
    one = set_up_writes(lake.write("ended_reader", SCRIPT))
    with (
        serving(
            one.database.url, moto, delivery="object-lambda", writes=True, command=LAUNCHER
        ) as bridge,
        closing(client_of(bridge)) as catalog,
    ):
        table = catalog.load_table("main.t")
        for change in changes(table):
            crash.touch()
            with pytest.raises(BadRequestError, match="has ended, or needed too much memory"):
                change()
            assert requests.get(manifest_list(bridge, "other"), timeout=60).ok
            crash.unlink()
            table.refresh()
            change()
        with judging(one, moto) as judge:
            assert judge.query("SELECT i FROM lake.main.t ORDER BY i") == [(1,), (2,), (3,)]


def changes(table) -> Iterator:
    yield lambda: table.append(ROWS)
