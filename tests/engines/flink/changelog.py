"""Debezium's changes stream through Flink into a table that native DuckDB reads at the same time.

The job and the server are killed and started again, and native DuckLake merges, flushes and expires
meanwhile. Each state that anybody reads is one of the source, and the last one has all its rows.

`make flink-changelog` runs this file, for POLYNYA_CHANGELOG_SECONDS. Its name keeps it out of CI,
which has no Flink.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from tests.engines.flink.session import settings, started
from tests.support.servers.killing import POINTS
from tests.support.servers.restarted import Server
from tests.support.servers.watched import Watched
from tests.support.writes.maintenance import Maintenance, in_thread
from tests.support.writes.writable import set_up_writes

SECONDS = int(os.environ.get("POLYNYA_CHANGELOG_SECONDS", "60"))
RATE = 250
"""Changes a second."""
KEYS = 3000

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE other (n BIGINT);
"""
SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "lsn", LongType()),
    NestedField(3, "name", StringType()),
    identifier_field_ids=[1],
)


class Source:
    """Random changes of rows by their key; the number of a change is its `lsn`, from 1 on."""

    def __init__(self, count: int) -> None:
        draw, rows = random.Random(1), {}
        self.changes: list[dict] = []
        for lsn in range(1, count + 1):
            id_ = draw.randrange(KEYS)
            before = rows.get(id_)
            if before is not None and draw.random() < 0.3:
                del rows[id_]
                change = {"op": "d", "before": before, "after": None}
            else:
                name = None if draw.random() < 0.1 else f"név {draw.randrange(1000)}"
                rows[id_] = {"id": id_, "lsn": lsn, "name": name}
                change = {"op": "u" if before else "c", "before": before, "after": rows[id_]}
            self.changes.append(change)
        self.rows = rows

    def write(self, path: Path) -> None:
        path.write_text("".join(f"{json.dumps(change)}\n" for change in self.changes))


class Replay:
    """Finds the states that a reader sees among those of the source, in their order."""

    def __init__(self, source: Source) -> None:
        self._changes, self._rows, self.place = source.changes, {}, 0

    def check(self, rows: list[tuple]) -> None:
        """Go on to the state with these rows (id, lsn, name).

        Raises:
            AssertionError: there is none.
        """
        newest = max((row[1] for row in rows), default=0)
        while self.place < newest:
            self._apply()
        while not self._is(rows) and self._next_op() == "d":
            self._apply()
        assert self._is(rows), self._difference(rows)

    def _is(self, rows: list[tuple]) -> bool:
        return len(rows) == len(self._rows) and set(rows) == set(self._rows.values())

    def _next_op(self) -> str:
        return self._changes[self.place]["op"] if self.place < len(self._changes) else ""

    def _apply(self) -> None:
        change = self._changes[self.place]
        self.place += 1
        if change["op"] == "d":
            del self._rows[change["before"]["id"]]
        else:
            self._rows[change["after"]["id"]] = tuple(change["after"].values())

    def _difference(self, rows: list[tuple]) -> str:
        read, known = Counter(rows), Counter(self._rows.values())
        return (
            f"{len(rows)} rows at change {self.place}: {list((read - known).items())[:5]} are too "
            f"many, {list((known - read).items())[:5]} are missing"
        )


class Job:
    """The job of Flink, which goes on from its newest checkpoint or savepoint."""

    def __init__(
        self,
        of_catalog: dict[str, str],
        sink: str,
        changes: Path,
        folder: Path,
        *,
        rate: int = RATE,
        ends: bool = False,
    ) -> None:
        """Start it. Args:

        of_catalog: the settings of the catalog.
        ends: the source ends after its last change, and the job with it.
        """
        self._checkpoints = folder / "checkpoints"
        self._before = ["main.feed", str(changes), str(rate), sink, str(self._checkpoints)]
        self._after = ["ends" if ends else "goes-on"]
        self._after += [f"{name}={value}" for name, value in of_catalog.items()]
        self._log = (folder / "flink.log").open("ab")
        self.start()

    def start(self) -> None:
        newest = self.newest()
        words = *self._before, str(newest.parent) if newest else "-", *self._after
        self._process = started(
            "Changes", *words, stdin=subprocess.PIPE, stderr=self._log.fileno(), logged="warn"
        )

    def newest(self) -> Path | None:
        """The newest checkpoint or savepoint."""
        paths = self._checkpoints.glob("**/_metadata")
        return max(paths, key=lambda path: path.stat().st_mtime_ns, default=None)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def stop(self) -> bool:
        """Stop with a savepoint; False: the job failed meanwhile, as when it is killed."""
        out, _ = self._process.communicate("stop\n", timeout=120)
        return "savepoint" in out

    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self.kill()
        self._log.close()


class Reader:
    """Native DuckDB, which reads the table again and again."""

    def __init__(self, con, source: Source) -> None:
        self._con, self._replay = con, Replay(source)
        self.reads, self.states = 0, set()
        self._end = len(source.changes)

    def read(self) -> None:
        rows = self._con.execute("SELECT id, lsn, name FROM lake.main.feed").fetchall()
        self._replay.check(rows)
        self.reads += 1
        self.states.add(self._replay.place)
        time.sleep(0.3)

    def wait_for_the_end(self) -> None:
        """Wait until a read has shown the last change."""
        end = time.monotonic() + SECONDS + 300
        while self._replay.place < self._end:
            assert time.monotonic() < end, f"the job stays at change {self._replay.place}"
            time.sleep(0.5)


@pytest.mark.parametrize("sink", ["v1", "v2"])
def test_a_changelog(lake, moto, tmp_path, sink):
    written = set_up_writes(lake.write("changelog", SCRIPT))
    # What is killed and started again takes nearly half of the time.
    source, changes = Source(SECONDS * RATE * 6 // 10), tmp_path / "changes.json"
    source.write(changes)
    with (
        closing(Server(written.database.url, moto, tmp_path)) as server,
        Watched(server) as proxy,
        connect(LAKE, moto) as reading,
        connect(LAKE, moto) as keeping_house,
    ):
        with iceberg(proxy.uri, server) as catalog:
            catalog.create_table("main.feed", SCHEMA)
        attach(reading, written)
        attach(keeping_house, written, read_only=False)
        reader, maintenance = Reader(reading, source), Maintenance(keeping_house)
        began, told = time.monotonic(), Counter()
        with (
            closing(Job(catalog_at(proxy.uri, server), sink, changes, tmp_path)) as job,
            in_thread(reader.read),
            in_thread(maintenance.work),
        ):
            trouble(job, server, proxy, source, told)
            reader.wait_for_the_end()
            job.stop()
        seconds = time.monotonic() - began
        summaries = [
            json.loads(text)
            for [text] in written.database.run(
                "SELECT summary FROM polynya_commits WHERE client_snapshot_id IS NOT NULL"
            )
        ]
        checkpoints = {
            (s["flink.job-id"], s["flink.max-committed-checkpoint-id"]) for s in summaries
        }
        told |= {
            "seconds": round(seconds),
            "changes": len(source.changes),
            "rows at the end": len(source.rows),
            "commits": len(summaries),
            "jobs": len({job_id for job_id, _ in checkpoints}),
            "reads": reader.reads,
            "states read": len(reader.states),
            "conflicts of maintenance": maintenance.conflicts,
        }
        print(f"\n{sink}", dict(told), dict(maintenance.done))
        print(f"answers to commits: {dict(proxy.statuses)}, the longest took {proxy.longest:.2f} s")
        print("\n".join(f"{count} × {text}" for text, count in proxy.refusals.items()))
        assert len(checkpoints) == len(summaries), "a checkpoint was committed twice"
        expected = sorted(tuple(row.values()) for row in source.rows.values())
        native = reading.execute("SELECT id, lsn, name FROM lake.main.feed ORDER BY id").fetchall()
        assert native == expected
        with iceberg(proxy.uri, server) as catalog:
            table = catalog.load_table("main.feed")
            assert rows_of(table) == expected
    assert has_all(told)


def trouble(job: Job, server: Server, proxy: Watched, source: Source, told: Counter) -> None:
    """Kill and stop, and start again, until the time is over, and each once at least."""
    draw, replay = random.Random(2), Replay(source)
    end = time.monotonic() + SECONDS - 5
    turns = 0
    while (time.monotonic() < end or not has_all(told)) and job.is_running():
        proxy.wait_for_commit(job.is_running)
        time.sleep(draw.uniform(0, 6))
        turns += 1
        if turns % 4 == 1:
            proxy.arm(POINTS[turns // 4 % 3], draw.random())
            if proxy.wait_for_kill(job.is_running):
                time.sleep(draw.uniform(0, 2))
                server.start()
                told["servers killed"] += 1
        elif turns % 4 == 2:
            job.kill()
            job.start()
            told["jobs killed"] += 1
        elif turns % 4 == 3:
            with iceberg(proxy.uri, server) as catalog:
                replay.check(read(catalog, told))
            told["reads of PyIceberg"] += 1
        else:
            told["jobs stopped" if job.stop() else "jobs that failed when stopped"] += 1
            job.start()


def has_all(told: Counter) -> bool:
    """Whether the server and a job were killed, and a job was stopped: that can fail."""
    return all(told[name] for name in ("servers killed", "jobs killed", "jobs stopped"))


def catalog_at(uri: str, server: Server) -> dict[str, str]:
    """The settings of the catalog behind a proxy."""
    return settings(server.bridge) | {"uri": uri}


@contextmanager
def iceberg(uri: str, server: Server):
    s3 = s3_properties(server.bridge.s3_endpoint)
    with closing(RestCatalog("c", uri=uri, warehouse="lake", **s3)) as catalog:
        yield catalog


def read(catalog: RestCatalog, told: Counter) -> list[tuple]:
    """The rows now. DuckLake may expire a snapshot between two requests of the client."""
    for _ in range(10):
        try:
            return rows_of(catalog.load_table("main.feed"))
        except FileNotFoundError:
            told["reads of PyIceberg that began again"] += 1
    raise AssertionError("PyIceberg cannot read the table")


def rows_of(table) -> list[tuple]:
    return sorted(tuple(row.values()) for row in table.scan().to_arrow().to_pylist())


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
