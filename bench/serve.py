"""`polynya serve` from the socket, beside Iceberg's REST fixture with the same S3, in one run."""

import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import boto3
from polynya.ducklake.queries.writers import writer_rights
from polynya.ducklake.writes import new_snapshot
from polynya_local.clients.native import Lake
from polynya_local.processes.serving import REGION, serving
from polynya_pipeline.common.database import connect

from .report import Row, Table, ms, ratio
from .support.lakes import NAMESPACE, TABLE
from .support.workshop import FEW, Workshop, say
from .support.writing.fixture import iceberg_fixture
from .support.writing.writers import open_pyiceberg, rows

HELP = "loadTable and appends by many connections, and requests beside a first build"

TABLES, COMMITS = 20, 5
CONNECTIONS = (1, 4, 16)
CLIENTS = (1, 8)
SECONDS = 8.0
LARGE = 100_000
"""Files of the table whose first manifest list is made."""
DELIVERIES = ("object-lambda", "materialize")
LISTED = 20
"""Requests to know how long one takes on an idle server."""


@dataclass(frozen=True, slots=True)
class Served:
    """A catalog of the tables `t0` … that are read, where clients create others."""

    name: str
    uri: str
    s3_endpoint: str
    prefix: str
    """How the paths of its operations begin."""


def run(shop: Workshop) -> list[Table]:
    loads: list[Row] = []
    appends: list[Row] = []
    with iceberg_fixture(shop.s3_endpoint, shop.folder) as uri:
        fixture = Served("fixture", uri, shop.s3_endpoint, "/v1")
        _create(fixture)
        theirs = _loads(fixture), _appends(fixture)
    for delivery in DELIVERIES:
        with _serving(shop.lake(LARGE, FEW), shop.s3_endpoint, delivery) as ours:
            _create(ours)
            loads += _rows(delivery, _loads(ours), theirs[0])
            appends += _rows(delivery, _appends(ours), theirs[1])
    with _serving(shop.lake(LARGE, FEW), shop.s3_endpoint, "object-lambda") as ours:
        _create(ours)
        beside = _beside_a_build(ours)
    return [
        Table(
            f"loadTable of {TABLES} tables of {COMMITS} commits, beside one of {LARGE:,} files",
            loads,
            ("a second, by so many connections; median: milliseconds of a request",),
        ),
        Table(
            "Appends of PyIceberg, each client to a table of its own",
            appends,
            ("a second, by so many clients; median: milliseconds of an append",),
        ),
        Table(
            f"Other requests while the first manifest list of {LARGE:,} files is made",
            [beside],
            ("milliseconds; idle: the median before; longest: of all meanwhile",),
        ),
    ]


Measured = dict[int, tuple[float, float]]
"""By the number of connections: how many a second, and the median of their seconds."""


def _rows(delivery: str, ours: Measured, theirs: Measured) -> list[Row]:
    return [
        {
            "delivery": delivery,
            "at a time": number,
            "serve": ours[number][0],
            "fixture": theirs[number][0],
            "ratio": ratio(ours[number][0], theirs[number][0]),
            "median": ms(ours[number][1]),
            "fixture median": ms(theirs[number][1]),
        }
        for number in ours
    ]


@contextmanager
def _serving(lake: Lake, s3_endpoint: str, delivery: str) -> Iterator[Served]:
    with closing(connect(lake.database.url, "public")) as con:
        new_snapshot.set_up(con, writer_rights().run(con))
    with serving(lake.database.url, s3_endpoint, delivery=delivery, writes=True, workers=2) as one:
        s3 = one.s3_endpoint if delivery == "object-lambda" else s3_endpoint
        yield Served(delivery, one.catalog_uri, s3, "/v1/lake")


def _create(served: Served) -> None:
    say(f"serve: tables through {served.name} ...")
    catalog, data = open_pyiceberg(served.uri, served.s3_endpoint), rows(0)
    for number in range(TABLES):
        table = catalog.create_table((NAMESPACE, f"t{number}_{served.name}"), data.schema)
        for _ in range(COMMITS):
            table.append(data.slice(0, 10))


def _together(number: int, work: Callable[..., None], *arguments: Any) -> tuple[float, float]:
    """Run it in so many processes at the same time: calls a second, and the median of seconds."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(number), context.Queue()
    processes = [
        context.Process(target=work, args=(*arguments, n, barrier, queue)) for n in range(number)
    ]
    for process in processes:
        process.start()
    seconds = [one for _ in processes for one in queue.get(timeout=300)]
    for process in processes:
        process.join()
    return len(seconds) / SECONDS, statistics.median(seconds)


def _loads(served: Served) -> Measured:
    say(f"serve: loadTable through {served.name} ...")
    return {number: _together(number, _load, served) for number in CONNECTIONS}


def _load(served: Served, client: int, barrier: Any, queue: Any) -> None:
    host = urlsplit(served.uri)
    connection, number = HTTPConnection(host.hostname or "", host.port or 0), client * 7

    def load() -> None:
        nonlocal number
        number += 1
        name = f"t{number % TABLES}_{served.name}"
        _get(connection, f"{served.prefix}/namespaces/{NAMESPACE}/tables/{name}")

    queue.put(_repeated(load, barrier))


def _get(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"{path}: {response.status}: {body[:500]!r}")
    return body


def _repeated(work: Callable[[], object], barrier: Any) -> list[float]:
    """The seconds of each call until the time is up, after one that is not counted."""
    work()
    barrier.wait(300)
    seconds, end = [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def _appends(served: Served) -> Measured:
    say(f"serve: appends through {served.name} ...")
    return {number: _together(number, _append, served) for number in CLIENTS}


def _append(served: Served, client: int, barrier: Any, queue: Any) -> None:
    catalog, data = open_pyiceberg(served.uri, served.s3_endpoint), rows(0)
    name = (NAMESPACE, f"own_{client}_{time.time_ns()}")
    catalog.create_table(name, data.schema)
    queue.put(_repeated(lambda: catalog.load_table(name).append(data), barrier))


def _beside_a_build(served: Served) -> Row:
    say("serve: requests beside a first build ...")
    s3 = boto3.client("s3", endpoint_url=served.s3_endpoint, region_name=REGION)
    catalog = open_pyiceberg(served.uri, served.s3_endpoint)
    small = f"t0_{served.name}"
    snapshot = catalog.load_table((NAMESPACE, small)).current_snapshot()
    assert snapshot is not None
    bucket, _, cached = snapshot.manifest_list.removeprefix("s3://").partition("/")
    host = urlsplit(served.uri)
    connection = HTTPConnection(host.hostname or "", host.port or 0)
    requests = {
        "loadTable": lambda: _get(
            connection, f"{served.prefix}/namespaces/{NAMESPACE}/tables/{small}"
        ),
        "cached list": lambda: s3.get_object(Bucket=bucket, Key=cached)["Body"].read(),
    }
    idle = {name: statistics.median(_times(work, LISTED)) for name, work in requests.items()}
    large = catalog.load_table((NAMESPACE, TABLE)).current_snapshot()
    assert large is not None
    key = large.manifest_list.removeprefix(f"s3://{bucket}/")
    building = threading.Thread(
        target=lambda: (
            boto3.client("s3", endpoint_url=served.s3_endpoint, region_name=REGION)
            .get_object(Bucket=bucket, Key=key)["Body"]
            .read()
        )
    )
    start = time.perf_counter()
    building.start()
    longest = dict.fromkeys(requests, 0.0)
    while building.is_alive():
        for name, work in requests.items():
            longest[name] = max(longest[name], *_times(work, 1), 0.0)
    row: Row = {"first list": ms(time.perf_counter() - start)}
    for name in requests:
        row[f"{name}, idle"], row[f"{name}, longest"] = ms(idle[name]), ms(longest[name])
        row[f"{name}, ratio"] = ratio(longest[name], idle[name])
    return row


def _times(work: Callable[[], object], times: int) -> list[float]:
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds
