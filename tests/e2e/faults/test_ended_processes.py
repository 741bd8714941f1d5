"""A process that works for a request of `polynya serve` ends: the request is refused, no other."""

import os
import signal
import sys
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


def table_at(bridge, table: str) -> str:
    return f"{bridge.catalog_uri}/v1/lake/namespaces/main/tables/{table}"


def manifest_list(bridge, table: str) -> str:
    """The address of the list of a table's newest snapshot."""
    metadata = requests.get(table_at(bridge, table), timeout=60).json()["metadata"]
    location = metadata["snapshots"][-1]["manifest-list"]
    return f"{bridge.s3_endpoint}/{location.removeprefix('s3://')}"


@pytest.mark.parametrize(
    "delivery, number",
    [
        ("object-lambda", signal.SIGKILL),
        pytest.param("object-lambda", signal.SIGSEGV, marks=pytest.mark.slow),
        pytest.param("materialize", signal.SIGKILL, marks=pytest.mark.slow),
    ],
)
def test_one_that_builds_is_killed(lake, moto, crash, pause, delivery, number):
    one = lake.write("ended_builder", SCRIPT)
    with (
        serving(one.database.url, moto, delivery=delivery, command=LAUNCHER) as bridge,
        ThreadPoolExecutor(1) as thread,
    ):
        kept = manifest_list(bridge, "other")
        body = requests.get(kept, timeout=60).content
        is_put = delivery == "materialize"  # by loadTable
        address = table_at(bridge, "t") if is_put else manifest_list(bridge, "t")
        pause.touch()
        first = thread.submit(requests.get, address, timeout=60)
        eventually(lambda: pause.read_text() != "")
        assert requests.get(kept, timeout=10).content == body
        assert requests.get(table_at(bridge, "other"), timeout=10).ok
        os.kill(int(pause.read_text()), number)
        refused = first.result()
        pause.unlink()
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
        assert ("SlowDownException" if is_put else "<Code>SlowDown</Code>") in refused.text
        assert "the process that generated this file has ended" in refused.text
        assert requests.get(address, timeout=60).status_code == 200
        with closing(client_of(bridge)) as catalog:
            assert sorted(rows(catalog.load_table("main.t"))) == [1, 2]


def rows(table) -> list[int]:
    return table.scan().to_arrow()["i"].to_pylist()


def test_one_that_reads_uploads_dies_of_them(lake, moto, crash, pause):
    one = set_up_writes(lake.write("ended_reader", SCRIPT))
    with (
        serving(
            one.database.url, moto, delivery="object-lambda", writes=True, command=LAUNCHER
        ) as bridge,
        closing(client_of(bridge)) as catalog,
    ):
        table = catalog.load_table("main.t")
        for reader in ("list", "manifest", "footer"):
            crash.write_text(reader)
            with pytest.raises(BadRequestError, match="has ended, or needed too much memory"):
                table.append(ROWS)
            assert requests.get(manifest_list(bridge, "other"), timeout=60).ok
        crash.unlink()
        table.refresh().append(ROWS)
        assert sorted(rows(table)) == [1, 2, 3]
        with judging(one, moto) as judge:
            assert judge.query("SELECT i FROM lake.main.t ORDER BY i") == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    "reader, reason",
    [("rows", "DuckDB has crashed"), ("deletes", "the process that read files")],
)
def test_one_that_reads_for_the_page_dies_of_a_file(lake, moto, crash, pause, reader, reason):
    one = lake.write("ended_doctor", f"{SCRIPT} DELETE FROM t WHERE i = 1;")
    with serving(one.database.url, moto, delivery="object-lambda", command=LAUNCHER) as bridge:
        health = f"{bridge.catalog_uri}/tables/main/t/doctor?format=json"
        crash.write_text(reader)
        assert reason in messages(health)
        crash.unlink()
        assert reason not in messages(f"{health}&check=again")
        assert requests.get(manifest_list(bridge, "other"), timeout=60).ok


def messages(health: str) -> str:
    """What the page about the health of a table says, when it has found that out."""
    reports = []

    def is_done() -> bool:
        reports.append(requests.get(health.replace("&check=again", ""), timeout=60).json())
        return reports[-1]["is_done"]

    if "check=again" in health:
        requests.get(health, timeout=60)
    eventually(is_done)
    return " ".join(finding["message"] for finding in reports[-1]["findings"])
