"""Iceberg's sink of Kafka Connect, its coordinator and its worker, while all is killed.

Kafka's clients are its own mocks, with the topics in files, so that a task goes on where the one
before it was killed. `make kafka-connect` runs this file. Its name keeps it out of CI.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import KEY_ID, REGION, SECRET
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tests.support.servers.killing import POINTS
from tests.support.servers.restarted import Server
from tests.support.servers.watched import Watched
from tests.support.writes.maintenance import Maintenance, in_thread
from tests.support.writes.writable import set_up_writes

HERE = Path(__file__).parent
TARGET = Path(__file__).parents[3] / ".cache" / "engines" / "kafka-connect"
KILLS = int(os.environ.get("POLYNYA_KILLS", "10"))
RATE = 200
MORE = 20 * RATE
"""Records after the last kill."""
GROUP = "connect-sink"
OFFSETS = f"kafka.connect.offsets.control.{GROUP}"

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE other (n BIGINT);
"""
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))


class Task:
    """A task of the sink in a process of its own, which reads the numbers up to `count`."""

    def __init__(self, uri: str, s3_endpoint: str, folder: Path) -> None:
        self._folder, self._log = folder, (folder / "sink.log").open("ab")
        settings = {
            "name": "sink",
            "topics": "source",
            "iceberg.tables": "main.feed",
            "iceberg.control.topic": "control",
            "iceberg.connect.group-id": GROUP,
            "iceberg.control.commit.interval-ms": "1000",
            "iceberg.control.commit.timeout-ms": "30000",
            "iceberg.catalog.type": "rest",
            "iceberg.catalog.uri": uri,
            "iceberg.catalog.warehouse": "lake",
            "iceberg.catalog.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "iceberg.catalog.s3.endpoint": s3_endpoint,
            "iceberg.catalog.s3.path-style-access": "true",
            "iceberg.catalog.s3.access-key-id": KEY_ID,
            "iceberg.catalog.s3.secret-access-key": SECRET,
            "iceberg.catalog.client.region": REGION,
        }
        self._words = [str(RATE), *(f"{k}={v}" for k, v in settings.items())]
        self.count = 10**9
        self.start()

    def start(self) -> None:
        program = "org.apache.iceberg.connect.channel.Sink"
        path = f"{TARGET}/classes:{TARGET}/jars/*"
        self._process = subprocess.Popen(
            [
                "java",
                "-Xmx400m",
                "-XX:+UseSerialGC",
                "-cp",
                path,
                program,
                self._folder,
                str(self.count),
                *self._words,
            ],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "AWS_REGION": REGION},
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith(b"started at ")
        self.offset = int(line.removeprefix(b"started at "))

    def start_again(self, count: int) -> None:
        """Kill it, and let it read the numbers up to `count`."""
        self.kill()
        self.count = count
        self.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.kill()
        self._log.close()


@pytest.fixture(scope="module", autouse=True)
def program():
    goals = ["compile", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    folders = [f"-Dbuild.folder={TARGET}", f"-DoutputDirectory={TARGET}/jars"]
    subprocess.run(["mvn", "-q", "-B", "-C", "-f", str(HERE), *folders, *goals], check=True)


def test_each_record_is_there_once(lake, moto, tmp_path):
    written, draw = set_up_writes(lake.write("kafka_connect", SCRIPT)), random.Random(5)
    told: Counter[str] = Counter()
    with (
        closing(Server(written.database.url, moto, tmp_path)) as server,
        Watched(server) as proxy,
        connect(LAKE, moto) as con,
        connect(LAKE, moto) as keeping_house,
    ):
        s3 = server.bridge.s3_endpoint
        with closing(
            RestCatalog("c", uri=proxy.uri, warehouse="lake", **s3_properties(s3))
        ) as catalog:
            catalog.create_table("main.feed", SCHEMA)
        attach(con, written)
        attach(keeping_house, written, read_only=False)
        maintenance = Maintenance(keeping_house)
        with closing(Task(proxy.uri, s3, tmp_path)) as task, in_thread(maintenance.work):

            def runs() -> bool:
                """Start a task again that has failed, as Kafka Connect does when it is told to."""
                if not task.is_running():
                    task.kill()
                    task.start()
                    told["tasks that failed"] += 1
                return True

            for number in range(KILLS):
                proxy.wait_for_commit(runs)
                time.sleep(draw.uniform(0, 3))
                point = POINTS[number % 3]
                proxy.arm(point, draw.random())
                assert proxy.wait_for_kill(runs)
                time.sleep(draw.uniform(0.5, 2))
                landed = has_landed(written, proxy.unanswered)
                told[f"{point}, {['not ', ''][landed]}committed"] += 1
                server.start()
                if number % 3 == number // 3 % 3:  # after each of the points
                    task.kill()
                    task.start()
                    told["tasks killed"] += 1
            task.start_again(0)
            count = task.offset + MORE
            task.start_again(count)
            end = time.monotonic() + 300
            while con.execute("SELECT count(*) FROM lake.main.feed").fetchone() != (count,):
                assert time.monotonic() < end, "rows are missing"
                runs()
                time.sleep(0.5)
        rows = con.execute("SELECT id, s FROM lake.main.feed ORDER BY id").fetchall()
        summaries = [
            json.loads(text)
            for [text] in written.database.run(
                "SELECT summary FROM polynya_commits WHERE client_snapshot_id IS NOT NULL "
                "ORDER BY snapshot_id"
            )
        ]
        log = (tmp_path / "sink.log").read_text()
    told |= {
        "commits": len(summaries),
        "commits that failed": log.count("failed to commit"),
        "commits found to have landed": log.count("found nothing to commit"),
    }
    print(f"\n{dict(told)} {dict(maintenance.done)}, answers {dict(proxy.statuses)}")
    print("\n".join(f"{count} × {text}" for text, count in proxy.refusals.items()))
    assert rows == [(number, f"row {number}") for number in range(count)]
    offsets = [json.loads(summary[OFFSETS])["0"] for summary in summaries]
    assert offsets == sorted(set(offsets))


def has_landed(written, commit) -> bool:
    """Whether the snapshot of a commit is in the lake."""
    [id_] = [
        update["snapshot"]["snapshot-id"]
        for update in json.loads(commit.body)["updates"]
        if update["action"] == "add-snapshot"
    ]
    sql = "SELECT 1 FROM polynya_commits WHERE client_snapshot_id = :id_"
    return bool(written.database.run(sql, id_=id_))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
