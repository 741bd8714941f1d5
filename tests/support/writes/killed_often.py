"""A sink writes batches, and the catalog is killed once in each of them."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

from polynya_local.clients.duckdb import ICEBERG, attaching, connect
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import Bridge
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField, StringType

from bench.support.writing.fixture import IcebergFixture
from tests.support.lakes import Lakes
from tests.support.servers.killing import POINTS, Killing
from tests.support.servers.restarted import Server
from tests.support.writes.altered import newest
from tests.support.writes.sinks import FAILURES, Rows, Sink
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

SCHEMA = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "s", StringType()))


class Catalog:
    """A catalog that can be killed, with the table main.t."""

    server: Any
    bridge: Bridge

    def create_table(self) -> None:
        raise NotImplementedError

    def commits(self) -> int:
        """How many there are; the difference of two is what a sink has committed."""
        raise NotImplementedError

    def rows(self) -> Rows:
        """The rows that an independent reader finds."""
        raise NotImplementedError


class Polynya(Catalog):
    """A lake that `polynya serve` serves, read by native DuckLake, and by PyIceberg the same."""

    def __init__(self, lake: Lakes, s3_endpoint: str, folder: Path, delivery: str) -> None:
        self._lake = set_up_writes(lake.write("killed_often", EMPTY))
        self._s3_endpoint = s3_endpoint
        self.server = Server(self._lake.database.url, s3_endpoint, folder, delivery=delivery)
        self.bridge = self.server.bridge

    def create_table(self):
        self._query("CREATE TABLE lake.main.t (id INTEGER, s VARCHAR)")

    def commits(self):
        return newest(self._lake)

    def rows(self):
        rows = self._query("SELECT id, s::VARCHAR FROM lake.main.t ORDER BY ALL")
        with closing(client_of(self.bridge)) as client:
            table = client.load_table("main.t").scan(selected_fields=("id", "s")).to_arrow()
        assert sorted((row["id"], str(row["s"])) for row in table.to_pylist()) == rows
        return rows

    def _query(self, sql: str) -> Rows:
        with judging(self._lake, self._s3_endpoint) as judge:
            return judge.query(sql)


class Fixture(Catalog):
    """Iceberg's own REST fixture, read by DuckDB."""

    def __init__(self, lake: Lakes, s3_endpoint: str, folder: Path, delivery: str) -> None:
        data_path = lake.write("killed_often", EMPTY).data_path
        self.server = IcebergFixture(s3_endpoint, folder, f"{data_path}iceberg")
        self.bridge = Bridge(self.server.uri, "lake", s3_endpoint, delivery, True)
        with self._client() as client:
            client.create_namespace("main")

    def create_table(self):
        with self._client() as client:
            client.create_table("main.t", SCHEMA)

    def commits(self):
        with self._client() as client, suppress(NoSuchTableError):
            return len(client.load_table("main.t").snapshots())
        return 0

    def rows(self):
        with connect(ICEBERG, self.bridge.s3_endpoint) as con:
            con.execute(attaching(self.server.uri, "lake"))
            return con.execute("SELECT id, s::VARCHAR FROM ice.main.t ORDER BY ALL").fetchall()

    @contextmanager
    def _client(self) -> Iterator[RestCatalog]:
        s3 = s3_properties(self.bridge.s3_endpoint)
        with closing(RestCatalog("c", uri=self.server.uri, **s3)) as client:
            yield client


def kill_often(catalog: Catalog, kind: type[Sink], s3_endpoint: str, times: int) -> None:
    """Kill the catalog in each batch; at the end the rows must be as they should.

    Raises:
        AssertionError: there are other rows, or a batch was committed twice that should not.
    """
    outcomes: Counter[str] = Counter()
    draw, commits = random.Random(3), []
    with ExitStack() as stack:
        stack.enter_context(closing(catalog.server))
        if not kind.creates_its_table:
            catalog.create_table()
        proxy = stack.enter_context(Killing(catalog.server))
        bridge = replace(catalog.bridge, catalog_uri=proxy.uri)
        sink = stack.enter_context(closing(kind(bridge, s3_endpoint, proxy)))
        for number in range(times):
            point, before = POINTS[number % 3], catalog.commits()
            proxy.arm(point, draw.random(), draw.randrange(sink.commits))
            failed = False
            restart = Thread(target=_restart, args=(catalog.server, proxy))
            if kind.waits_for_the_server:
                restart.start()
            try:
                sink.write(number)
            except FAILURES as error:
                failed = True
                print(number, point, error)
            assert (failed or kind.waits_for_the_server) and proxy.killed.wait(60)
            if not kind.waits_for_the_server:
                restart.start()
            restart.join()
            landed = catalog.commits() - before - proxy.answered
            if failed:
                outcomes[f"{point}, {'' if landed else 'not '}committed"] += 1
                _go_on(sink, number, outcomes)
            else:
                outcomes[f"{point}, then {landed} commits"] += 1
            commits += [number] * (catalog.commits() - before)
        expected, rows = sink.rows(commits), catalog.rows()
    print(kind.__name__, dict(outcomes), f"{len(expected)} rows, {len(commits)} commits")
    assert rows == expected, (rows, expected)
    assert kind.is_forgetful or commits == [*range(times)], commits
    assert "uploaded, committed" not in outcomes
    assert kind.waits_for_the_server or "committed, committed" in outcomes


def _restart(server: Any, proxy: Killing) -> None:
    if proxy.killed.wait(300):
        server.start()


def _go_on(sink: Sink, number: int, outcomes: Counter[str]) -> None:
    """Write the batch again, unless it is there. On a busy machine this can fail, too."""
    errors = []
    for _ in range(5):
        try:
            if not sink.has_landed(number):
                sink.write(number)
            return
        except FAILURES as error:
            errors.append(str(error))
            outcomes["failed again"] += 1
    raise AssertionError(f"no try succeeded: {errors[-1]}")
