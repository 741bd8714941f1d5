"""`kill -9` of the server after the upload, within the commit and before its answer, many times."""

import json
import os
import random
from collections import Counter
from contextlib import closing, suppress
from threading import Timer

import pyarrow as pa
import pytest
import urllib3
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog

from tests.support.servers.lost_answers import LostAnswers
from tests.support.servers.restarted import Server
from tests.support.writes.writable import EMPTY, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

TIMES = int(os.environ.get("POLYNYA_KILLS", "50"))
POINTS = ("uploaded", "within", "committed")


class Killing(LostAnswers):
    """Kills the server at a point of the next commit, and gives the client no answer."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.uri)
        self._killed = server
        self.point: str | None = None
        self.delay = 0.0
        """Seconds from the beginning of the commit, for the point `within`."""

    def forward(self, method, sent):
        point = self.point if method == "POST" and "/tables/" in sent.path else None
        if point is None:
            return super().forward(method, sent)
        self.point, self.last = None, sent
        if point == "within":
            Timer(self.delay, self._killed.kill).start()
        with suppress(OSError):  # killed within
            if point != "uploaded":
                super().forward(method, sent)
        if point != "within":
            self._killed.kill()
        raise ConnectionError


@pytest.mark.slow
def test_no_row_is_lost_or_doubled(lake, moto, tmp_path):
    """The client sends its request again until it has an answer, as Iceberg's Java does."""
    written, draw = set_up_writes(lake.write("killed_often", EMPTY)), random.Random(3)
    outcomes: Counter[str] = Counter()
    with (
        closing(Server(written.database.url, moto, tmp_path)) as server,
        Killing(server) as proxy,
        closing(
            RestCatalog(
                "c", uri=proxy.uri, warehouse="lake", **s3_properties(server.bridge.s3_endpoint)
            )
        ) as catalog,
    ):
        table = catalog.create_table("main.t", pa.schema([("id", pa.int64())]))
        for number in range(TIMES):
            table.refresh()
            proxy.point, proxy.delay = POINTS[number % 3], draw.uniform(0, 0.2)
            with pytest.raises(OSError):
                table.append(pa.table({"id": [number]}))
            server.wait()
            count = "SELECT count(*) FROM polynya_commits WHERE client_snapshot_id IS NOT NULL"
            [[landed]] = written.database.run(count)
            outcomes[f"{POINTS[number % 3]}, {['not ', ''][landed - number]}committed"] += 1
            server.start()
            assert answered_twice(proxy) == [200, 200]
    print(dict(outcomes))
    with judging(written, moto) as judge:
        rows = judge.query("SELECT id FROM lake.main.t ORDER BY id")
    assert rows == [(number,) for number in range(TIMES)]
    assert sum(outcomes.values()) == TIMES
    assert {"uploaded, not committed", "committed, committed"} <= outcomes.keys()


def answered_twice(proxy: Killing) -> list[int]:
    """The answers to the last commit, sent again."""
    sent = proxy.last
    assert json.loads(sent.body)["updates"]
    url = proxy.uri + sent.path
    headers = {"Content-Type": "application/json"}
    answers = (
        urllib3.request("POST", url, body=sent.body, headers=headers, timeout=60) for _ in range(2)
    )
    return [answer.status for answer in answers]
