"""`polynya serve --workers`: processes that share two ports and a folder of generated files."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import requests
from polynya_local.processes.serving import Bridge, serving

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER);
INSERT INTO t VALUES (1), (2);
"""
TABLE = "/v1/lake/namespaces/main/tables/t"


def workers_of(bridge: Bridge) -> list[psutil.Process]:
    """The processes that answer: children of the command that listens at the port."""
    port = int(bridge.catalog_uri.rpartition(":")[2])
    children = psutil.Process().children(recursive=True)
    parents = [
        process for process in children if any(c.laddr.port == port for c in listening(process))
    ]
    return [p for p in parents if any(p in other.children() for other in parents)]


def listening(process: psutil.Process) -> list:
    with suppress(psutil.NoSuchProcess, FileNotFoundError):  # it ends meanwhile
        return [c for c in process.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
    return []


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


TWO_WORKERS = ("--workers", "2")


@pytest.fixture(scope="module")
def bridge(lake, moto):
    one = lake.write("workers", SCRIPT)
    with serving(one.database.url, moto, delivery="object-lambda", options=TWO_WORKERS) as served:
        yield served


def test_a_worker_that_is_killed_costs_no_more_than_a_request_of_each_connection(bridge):
    eventually(lambda: len(workers_of(bridge)) == 2)

    def client(number: int) -> list[object]:
        session, seen = requests.Session(), []
        for _ in range(20):
            try:
                seen.append(session.get(bridge.catalog_uri + TABLE, timeout=60).status_code)
            except requests.ConnectionError:
                seen.append("connection")
                session = requests.Session()
        return seen

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(client, number) for number in range(8)]
        os.kill(workers_of(bridge)[0].pid, signal.SIGKILL)
        seen = [answer.result() for answer in answers]
    assert {status for one in seen for status in one} <= {200, "connection"}
    assert all(one.count("connection") <= 1 for one in seen)
    eventually(lambda: len(workers_of(bridge)) == 2)


def test_a_file_is_generated_once_for_all_workers(bridge):
    metadata = requests.get(bridge.catalog_uri + TABLE, timeout=60).json()["metadata"]
    manifest_list = metadata["snapshots"][-1]["manifest-list"].removeprefix("s3://")
    bodies = {requests.get(f"{bridge.s3_endpoint}/{manifest_list}").content for _ in range(8)}
    assert len(bodies) == 1


def test_metrics_are_those_of_all_workers(bridge):
    url = bridge.catalog_uri + TABLE

    def loads() -> float:
        text = requests.get(f"{bridge.catalog_uri}/metrics", timeout=60).text
        name = 'polynya_request_seconds_count{lake="lake",operation="load_table",status="200"}'
        return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(name))

    before = loads()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: requests.get(url, timeout=60), range(40)))
    assert {loads() - before for _ in range(6)} == {40}


@pytest.mark.slow
def test_workers_end_when_their_supervisor_is_killed(lake, moto, tmp_path: Path):
    one = lake.write("workers_killed", SCRIPT)
    with (
        pytest.raises(RuntimeError, match="-9"),
        serving(one.database.url, moto, delivery="object-lambda", options=TWO_WORKERS) as served,
    ):
        eventually(lambda: len(workers_of(served)) == 2)
        workers = workers_of(served)
        os.kill(workers[0].ppid(), signal.SIGKILL)
        eventually(lambda: not any(w.is_running() and w.status() != "zombie" for w in workers))
