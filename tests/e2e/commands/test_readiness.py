"""What a balancer sees of `polynya serve`: whether it is ready, and how it ends."""

import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import psutil
import pytest
import requests
from pg8000.native import identifier
from polynya_local.processes.serving import serving

from tests.e2e.commands.test_container import healthcheck
from tests.e2e.commands.test_workers import SCRIPT, TABLE, eventually, listening, workers_of

TERMINATE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()"""
WAITING = """
SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE NOT l.granted AND a.datname = current_database()"""


def status(uri: str) -> int:
    return requests.get(uri, timeout=60).status_code


def test_a_server_is_ready_while_the_database_answers_and_lives_meanwhile(
    lake, moto, postgres_server
):
    one = lake.write("readiness", SCRIPT)
    name = identifier(one.database.dbname)
    allow = f"ALTER DATABASE {name} ALLOW_CONNECTIONS"
    with serving(one.database.url, moto, delivery="object-lambda") as bridge:
        live, ready = f"{bridge.catalog_uri}/live", f"{bridge.catalog_uri}/health"
        assert (status(live), status(ready)) == (200, 200)
        with closing(one.database.connect()) as con:
            postgres_server.maintenance.run(f"{allow} false")
            con.run(TERMINATE)
        try:
            assert (status(live), status(ready)) == (200, 503)
            # Nobody restarts a container because of that.
            check = healthcheck(live.removesuffix("/live").rpartition(":")[2])
            assert subprocess.run(check).returncode == 0
        finally:
            postgres_server.maintenance.run(f"{allow} true")
        eventually(lambda: status(ready) == 200)


def test_a_server_of_several_lakes_is_ready_while_one_of_them_can_be_read(
    lake, moto, postgres_server, tmp_path
):
    lakes = {name: lake.write(f"ready_{name}", SCRIPT) for name in ("a", "b")}
    lines = [f'[{name}]\ndatabase_url = "{one.database.url}"\n' for name, one in lakes.items()]
    (tmp_path / "lakes.toml").write_text("".join(lines))

    with (
        serving(
            None,
            moto,
            delivery="object-lambda",
            options=("--lakes", str(tmp_path / "lakes.toml")),
        ) as bridge,
        ExitStack() as allowed,
    ):

        def health() -> tuple[int, object]:
            answer = requests.get(f"{bridge.catalog_uri}/health", timeout=60)
            return answer.status_code, answer.json().get("unavailable")

        assert health() == (200, None)
        for name, expected in (("b", (200, ["b"])), ("a", (503, None))):
            database = identifier(lakes[name].database.dbname)
            again = f"ALTER DATABASE {database} ALLOW_CONNECTIONS true"
            with closing(lakes[name].database.connect()) as con:
                postgres_server.maintenance.run(again.replace("true", "false"))
                allowed.callback(postgres_server.maintenance.run, again)
                con.run(TERMINATE)
            assert health() == expected
        assert status(f"{bridge.catalog_uri}/live") == 200
        allowed.close()
        eventually(lambda: health() == (200, None))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_a_server_that_ends_takes_no_connections_and_answers_what_it_has_begun(lake, moto, workers):
    one = lake.write("draining", SCRIPT)
    options = ("--workers", str(workers))
    with serving(one.database.url, moto, delivery="object-lambda", options=options) as bridge:
        if workers > 1:
            eventually(lambda: len(workers_of(bridge)) == workers)
        [server] = [
            process
            for process in psutil.Process().children()
            if any(c.laddr.port == port_of(bridge) for c in listening(process))
        ]
        with closing(one.database.connect()) as con, ThreadPoolExecutor(1) as pool:
            con.run("BEGIN")
            con.run("LOCK TABLE ducklake_snapshot IN ACCESS EXCLUSIVE MODE")
            under_way = pool.submit(requests.get, bridge.catalog_uri + TABLE, timeout=60)
            eventually(lambda: con.run(WAITING) == [[1]])
            os.kill(server.pid, signal.SIGTERM)
            eventually(lambda: refuses(f"{bridge.catalog_uri}/health"))
            assert refuses(f"{bridge.s3_endpoint}/health")
            # Longer than uvicorn is used to wait, and than a signal takes.
            time.sleep(6)
            assert not under_way.done()
            con.run("ROLLBACK")
            assert under_way.result().status_code == 200
        server.wait(20)


def port_of(bridge) -> int:
    return int(bridge.catalog_uri.rpartition(":")[2])


def refuses(uri: str) -> bool:
    """Whether the port refuses a connection."""
    try:
        requests.get(uri, timeout=5)
    except requests.ConnectionError as error:
        return "refused" in str(error)
    except requests.Timeout:
        pass
    return False
