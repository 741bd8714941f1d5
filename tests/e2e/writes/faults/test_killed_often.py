"""`kill -9` of the server after the upload, within the commit and before its answer, many times."""

import os
import random
from collections import Counter
from contextlib import closing, suppress
from dataclasses import replace

import pytest

from tests.support.servers.killing import POINTS, Killing
from tests.support.servers.restarted import Server
from tests.support.writes.altered import newest
from tests.support.writes.sinks import FAILURES, IN_JAVA, SINKS
from tests.support.writes.writable import EMPTY, judging, set_up_writes

pytestmark = [pytest.mark.versions("1.0"), pytest.mark.slow]

TIMES = int(os.environ.get("POLYNYA_KILLS", "50"))


@pytest.mark.parametrize(
    "kind", [*SINKS, *(pytest.param(kind, marks=pytest.mark.spark) for kind in IN_JAVA)]
)
def test_no_row_is_lost_or_doubled(lake, moto, tmp_path, kind):
    """Each sink goes on by its own rule; what it commits twice counts as Iceberg's rules say."""
    written, draw = set_up_writes(lake.write("killed_often", EMPTY)), random.Random(3)
    outcomes: Counter[str] = Counter()
    with judging(written, moto) as judge:
        judge.query("CREATE TABLE lake.main.t (id INTEGER, s VARCHAR)")
    commits = []
    with closing(Server(written.database.url, moto, tmp_path)) as server, Killing(server) as proxy:
        bridge = replace(server.bridge, catalog_uri=proxy.uri)
        with closing(kind(bridge, moto, proxy)) as sink:
            for number in range(TIMES):
                point, before = POINTS[number % 3], newest(written)
                proxy.arm(point, draw.random(), draw.randrange(sink.commits))
                with pytest.raises(FAILURES) as error:
                    sink.write(number)
                assert proxy.killed.wait(60), error.value
                server.start()
                landed = newest(written) - before - proxy.answered
                outcomes[f"{point}, {['not ', ''][landed]}committed"] += 1
                go_on(sink, number, outcomes)
                commits += [number] * (newest(written) - before)
            expected = sink.rows(commits)
    print(kind.__name__, dict(outcomes), f"{len(expected)} rows")
    with judging(written, moto) as judge:
        assert judge.query("SELECT id, s FROM lake.main.t ORDER BY ALL") == expected
    assert kind.is_forgetful or commits == [*range(TIMES)]
    assert "uploaded, committed" not in outcomes and "committed, committed" in outcomes


def go_on(sink, number, outcomes) -> None:
    """Write the batch again, unless it is there. On a busy machine this can fail, too."""
    for _ in range(5):
        with suppress(*FAILURES):
            if not sink.has_landed(number):
                sink.write(number)
            return
        outcomes["failed again"] += 1
    raise AssertionError("no try succeeded")
