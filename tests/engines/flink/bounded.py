"""A source that ends while the catalog fails: what the two sinks of Flink commit last.

`make flink-changelog` runs this file.
"""

import json
import sys
import time
from contextlib import closing

import pytest
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import Bridge
from pyiceberg.catalog.rest import RestCatalog

from bench.support.writing.fixture import IcebergFixture
from tests.engines.flink.changelog import SCHEMA, SCRIPT, Job, Replay, Source
from tests.engines.flink.session import settings, sql
from tests.support.servers.lost_answers import LostAnswers
from tests.support.servers.restarted import Server
from tests.support.writes.writable import set_up_writes

CHANGES, RATE = 600, 200
SECONDS = 6


class Failing(LostAnswers):
    """Answers commits with 500 for some seconds, and does not pass them on."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.until = 0.0
        self.failed = 0

    def forward(self, method, sent):
        is_commit = method == "POST" and sent.path.endswith("/tables/feed")
        if is_commit and time.monotonic() < self.until:
            self.failed += 1
            error = {"error": {"message": "down", "type": "ServiceFailure", "code": 500}}
            return 500, [("Content-Type", "application/json")], json.dumps(error).encode()
        return super().forward(method, sent)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("of", ["iceberg", "polynya"])
@pytest.mark.parametrize("sink", ["v1", "v2"])
def test_the_end(lake, moto, tmp_path, sink, of, fails):
    source, changes = Source(CHANGES), tmp_path / "changes.json"
    source.write(changes)
    written = set_up_writes(lake.write("bounded", SCRIPT))
    if of == "polynya":
        server = Server(written.database.url, moto, tmp_path)
        s3 = server.bridge.s3_endpoint
    else:
        server = IcebergFixture(moto, tmp_path, f"{written.data_path}iceberg")
        s3 = moto
    with closing(server), Failing(server.uri) as proxy:
        bridge = Bridge(proxy.uri, "lake", s3, "", True)
        with closing(
            RestCatalog("c", uri=proxy.uri, warehouse="lake", **s3_properties(s3))
        ) as catalog:
            catalog.create_namespace_if_not_exists("main")
            catalog.create_table("main.feed", SCHEMA)
        with closing(Job(settings(bridge), sink, changes, tmp_path, rate=RATE, ends=True)) as job:
            assert job._process.stdout.readline() == "last\n"
            if fails:
                proxy.until = time.monotonic() + SECONDS
            out, _ = job._process.communicate(timeout=120)
            print(sink, of, "failed", proxy.failed, "ended", job._process.returncode, out)
        lines = sql(bridge, "BATCH", "SELECT id, lsn, name FROM ice.main.feed")
    rows = []
    for line in lines:
        assert line.startswith("row +I["), line
        id_, lsn, name = line.removeprefix("row +I[").removesuffix("]").split(", ", 2)
        rows.append((int(id_), int(lsn), None if name == "null" else name))
    replay = Replay(source)
    replay.check(rows)
    print(f"{sink} {of} fails={fails}: state of change {replay.place} of {CHANGES}")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-s"]))
