"""`polynya serve` from the socket, beside Iceberg's REST fixture with the same S3, in one run."""

import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psutil
from polynya_local.clients.native import Lake
from polynya_local.processes.serving import serving
from polynya_local.writes import writes
from pyiceberg.exceptions import CommitFailedException, ValidationException

from .measure import SECONDS_TO_START, measure_together
from .report import Row, Table, ms, ratio
from .support.lakes import NAMESPACE, TABLE, lake_of_tables
from .support.relay import relay
from .support.workshop import FEW, Workshop, say
from .support.writing import many_added
from .support.writing.fixture import iceberg_fixture
from .support.writing.writers import InMemoryCatalog, open_pyiceberg, rows

HELP = "loadTable and appends by many connections, and requests beside a first build"

TABLES, COMMITS = 20, 5
CONNECTIONS = (1, 4, 16)
CLIENTS = (1, 8, 16)
MANY_TABLES = 2_000
SECONDS = 8.0
LARGE = 100_000
"""Files of the table whose first manifest list is made."""
DELIVERIES = ("object-lambda", "materialize")
ADDED = 2_000
"""Files of the commit beside which other requests are measured."""
ALONE = 1_500
"""Requests of each kind on an idle server: as many as there are beside the work, for a fair
longest one."""
KILLED_CLIENTS = 16
FAR = 0.02
"""Seconds by which answers of S3 are late."""


@dataclass(frozen=True, slots=True)
class Served:
    """A catalog of the tables `t0` … that are read, where clients create others."""

    name: str
    uri: str
    s3_endpoint: str
    prefix: str
    """How the paths of its operations begin."""
    behind: str
    """The S3 with the data."""

    def path(self, table: str) -> str:
        """The path of a table's operations."""
        return f"{self.prefix}/namespaces/{NAMESPACE}/tables/{table}"


def run(shop: Workshop) -> list[Table]:
    loads: list[Row] = []
    appends: list[Row] = []
    of_one_table: list[Row] = []
    with iceberg_fixture(shop.s3_endpoint, shop.folder) as uri:
        fixture = Served("fixture", uri, shop.s3_endpoint, "/v1", shop.s3_endpoint)
        _create(fixture)
        theirs = _loads(fixture), _appends(fixture), _appends_to_one_table(fixture)
    costs = _costs("none", _appends_without_catalog(shop)) + _costs("fixture", theirs[1])
    for delivery in DELIVERIES:
        with _serving(shop.lake(LARGE, FEW), shop.s3_endpoint, delivery) as ours:
            _create(ours)
            loads += _rows(delivery, _loads(ours), theirs[0])
            own_appends = _appends(ours)
            appends += _rows(delivery, own_appends, theirs[1])
            costs += _costs(delivery, own_appends)
            to_one_table = _appends_to_one_table(ours)
            of_one_table.append(
                {"delivery": delivery, "clients": CLIENTS[-1]}
                | {f"serve {name}": value for name, value in to_one_table.items()}
                | {f"fixture {name}": value for name, value in theirs[2].items()}
                | {"ratio": ratio(to_one_table["a second"], theirs[2]["a second"])}
            )
            if delivery == "object-lambda":
                beside, killed = _measure_other_requests(ours), _kill_a_worker(ours)
    far = _appends_far(shop)
    of_many = lake_of_tables(shop.server, shop.s3_endpoint, MANY_TABLES)
    with _serving(of_many, shop.s3_endpoint, "object-lambda") as ours:
        many = _loads_of_many(ours)
    return [
        Table(
            f"loadTable of {TABLES} tables of {COMMITS} commits, beside one of {LARGE:,} files",
            loads,
            (
                "a second, by so many connections; median: milliseconds of a request",
                "the lake has the indexes that `polynya writes --setup` creates",
            ),
        ),
        Table(
            "Appends of PyIceberg, each client to a table of its own",
            appends,
            ("a second, by so many clients; median: milliseconds of an append",),
        ),
        Table(
            f"The same, with S3 {FAR * 1000:.0f} ms away",
            far,
            ("for the server too, which passes on what clients send to S3 with object-lambda",),
        ),
        Table(
            "Whose time an append is",
            costs,
            (
                "milliseconds of CPU; a second: as above",
                "none: the client keeps the table in its memory, as if a catalog took no time;",
                "  with object-lambda the server passes on what the client sends to S3",
            ),
        ),
        Table(
            f"Appends of {CLIENTS[-1]} clients to one table",
            of_one_table,
            ("a second: of commits; failed: in spite of the retries that the table allows",),
        ),
        Table(
            f"loadTable of {MANY_TABLES:,} tables, {CONNECTIONS[-1]} connections",
            many,
            ("changing: a client appends to another one of them each second",),
        ),
        Table(
            "Other requests while the server works for one",
            beside,
            (
                "milliseconds: the median, what one of twenty takes longer than, and the longest",
                f"idle: {ALONE} of each before; busy: one after the other, until the work is done",
                "seconds: of the work, with the start of the client that asks for it",
            ),
        ),
        Table(f"kill -9 of a worker while clients load a table for {SECONDS:.0f} s", [killed], ()),
    ]


class Calls(NamedTuple):
    """What some processes have done at the same time."""

    a_second: float
    median: float
    """Seconds of a call."""
    cpu: dict[str, float]
    """Seconds of each program for a call."""


Measured = dict[int, Calls]
"""By the number of connections."""


def _rows(delivery: str, ours: Measured, theirs: Measured) -> list[Row]:
    return [
        {
            "delivery": delivery,
            "at a time": number,
            "serve": ours[number].a_second,
            "fixture": theirs[number].a_second,
            "ratio": ratio(ours[number].a_second, theirs[number].a_second),
            "median": ms(ours[number].median),
            "fixture median": ms(theirs[number].median),
        }
        for number in ours
    ]


@contextmanager
def _serving(lake: Lake, s3_endpoint: str, delivery: str) -> Iterator[Served]:
    writes(lake.database.url, setup=True)
    workers = ("--workers", "2")
    with serving(
        lake.database.url, s3_endpoint, delivery=delivery, writes=True, options=workers
    ) as one:
        s3 = one.s3_endpoint if delivery == "object-lambda" else s3_endpoint
        yield Served(delivery, one.catalog_uri, s3, "/v1/lake", s3_endpoint)


def _create(served: Served) -> None:
    say(f"serve: tables through {served.name} ...")
    catalog, data = open_pyiceberg(served.uri, served.s3_endpoint), rows(0)
    for number in range(TABLES):
        table = catalog.create_table((NAMESPACE, f"t{number}_{served.name}"), data.schema)
        for _ in range(COMMITS):
            table.append(data.slice(0, 10))


Begin = Callable[..., Callable[[], object]]
"""Opens what a client needs, and gives what it calls repeatedly."""


def _together(number: int, begin: Begin, *arguments: Any) -> Calls:
    """What so many clients do at the same time, each in a process of its own."""
    clients = [(begin, (*arguments, n)) for n in range(number)]
    repeated: list[Repeated]
    repeated, spent = measure_together(_repeat, clients)
    cpu = dict.fromkeys(PROGRAMS, 0.0)
    for program, name in SERVERS.items():
        cpu[name] += spent[program]
    seconds = [one for some in repeated for one in some.seconds]
    cpu["clients"] = sum(some.cpu for some in repeated)
    by_call = {name: seconds_of / len(seconds) for name, seconds_of in cpu.items()}
    return Calls(len(seconds) / SECONDS, statistics.median(seconds), by_call)


SERVERS = {"python": "server", "java": "server", "postgres": "PostgreSQL", "weed": "S3"}
"""The programs that this process has started, and what they are."""
PROGRAMS = ("clients", *dict.fromkeys(SERVERS.values()))


def _loads(served: Served) -> Measured:
    say(f"serve: loadTable through {served.name} ...")
    names = [f"t{number}_{served.name}" for number in range(TABLES)]
    return {number: _together(number, _load, served, names) for number in CONNECTIONS}


def _load(served: Served, names: Sequence[str], client: int) -> Callable[[], object]:
    connection, numbers = _connection(served.uri), itertools.count(client * 7 + 1)
    return lambda: _get(connection, served.path(names[next(numbers) % len(names)]))


def _get(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    return _body(connection, path)


def _post(connection: HTTPConnection, path: str, body: object) -> bytes:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return _body(connection, path)


def _body(connection: HTTPConnection, path: str) -> bytes:
    response = connection.getresponse()
    body = response.read()
    if response.status != 200:
        raise RuntimeError(f"{path}: {response.status}: {body[:500]!r}")
    return body


class Repeated(NamedTuple):
    """What one client has done."""

    seconds: list[float]
    """Of each call."""
    cpu: float
    """Seconds of its process."""


def _repeat(begin: Begin, arguments: tuple[Any, ...], barrier: Any, queue: Any) -> None:
    """Call it until the time is up, after a call that is not counted."""
    work = begin(*arguments)
    work()
    barrier.wait(SECONDS_TO_START)
    cpu, seconds, end = time.process_time(), [], time.monotonic() + SECONDS
    while time.monotonic() < end:
        seconds.append(_seconds(work))
    queue.put(Repeated(seconds, time.process_time() - cpu))


def _appends(served: Served) -> Measured:
    say(f"serve: appends through {served.name} ...")
    return {number: _together(number, _append, served) for number in CLIENTS}


def _append(served: Served, client: int) -> Callable[[], object]:
    catalog, data = open_pyiceberg(served.uri, served.s3_endpoint), rows(0)
    name = (NAMESPACE, f"own_{client}_{time.time_ns()}")
    catalog.create_table(name, data.schema)
    return lambda: catalog.load_table(name).append(data)


def _costs(catalog: str, measured: Measured) -> list[Row]:
    return [
        {"catalog": catalog, "at a time": number, "a second": calls.a_second}
        | {name: ms(calls.cpu[name]) for name in PROGRAMS}
        | {"together": ms(sum(calls.cpu.values()))}
        for number, calls in measured.items()
    ]


def _appends_without_catalog(shop: Workshop) -> Measured:
    say("serve: appends without a catalog ...")
    path = shop.lake(FEW, FEW).data_path
    return {n: _together(n, _append_alone, shop.s3_endpoint, path) for n in CLIENTS}


def _appends_far(shop: Workshop) -> list[Row]:
    rows: list[Row] = []
    with relay(shop.s3_endpoint, delay=FAR) as endpoint:
        with iceberg_fixture(endpoint, shop.folder) as uri:
            theirs = _appends(Served("fixture", uri, endpoint, "/v1", endpoint))
        for delivery in DELIVERIES:
            with _serving(shop.lake(LARGE, FEW), endpoint, delivery) as ours:
                rows += _rows(delivery, _appends(ours), theirs)
    return rows


def _append_alone(s3_endpoint: str, path: str, client: int) -> Callable[[], object]:
    location = f"{path.rstrip('/')}/alone_{client}_{time.time_ns()}"
    catalog, data = InMemoryCatalog(location, s3_endpoint), rows(0)
    catalog.create_table("alone", data.schema)
    return lambda: catalog.load_table("alone").append(data)


def _appends_to_one_table(served: Served) -> Row:
    say(f"serve: appends to one table through {served.name} ...")
    name = (NAMESPACE, f"shared_{time.time_ns()}")
    open_pyiceberg(served.uri, served.s3_endpoint).create_table(name, rows(0).schema)
    answered, median, _ = _together(CLIENTS[-1], _append_to, served, name)
    table = open_pyiceberg(served.uri, served.s3_endpoint).load_table(name)
    # Each client's first append is not counted. Some end later than their time is up.
    times = [snapshot.timestamp_ms / 1000 for snapshot in table.snapshots()][CLIENTS[-1] :]
    return {
        "a second": sum(time <= times[0] + SECONDS for time in times) / SECONDS,
        "failed": round(answered * SECONDS) - len(times),
        "median": ms(median),
    }


def _append_to(served: Served, name: tuple[str, str], _: int) -> Callable[[], object]:
    catalog, data = open_pyiceberg(served.uri, served.s3_endpoint), rows(0)

    def append() -> None:
        with suppress(CommitFailedException, ValidationException):
            catalog.load_table(name).append(data)

    return append


def _loads_of_many(served: Served) -> list[Row]:
    say(f"serve: loadTable of {MANY_TABLES:,} tables ...")
    names = [f"table_{number:06}" for number in range(1, MANY_TABLES + 1)]

    def load_all(_: int) -> None:
        connection = _connection(served.uri)
        for name in names:
            _get(connection, served.path(name))

    with ThreadPoolExecutor(CONNECTIONS[-1]) as pool:
        list(pool.map(load_all, range(CONNECTIONS[-1])))
    # Each process of the server keeps its own answers, and one may have had all connections.
    before, still = 0.0, _together(CONNECTIONS[-1], _load, served, names)
    while still.a_second > 1.2 * before:
        before, still = still.a_second, _together(CONNECTIONS[-1], _load, served, names)
    writer = multiprocessing.get_context("spawn").Process(
        target=_change_each_second, args=(served, names), daemon=True
    )
    writer.start()
    changing = _together(CONNECTIONS[-1], _load, served, names)
    writer.terminate()
    writer.join()
    return [
        {"tables": state, "a second": calls.a_second, "median": ms(calls.median)}
        for state, calls in (("still", still), ("changing", changing))
    ]


def _change_each_second(served: Served, names: Sequence[str]) -> None:
    catalog, data = open_pyiceberg(served.uri, served.s3_endpoint), rows(0)
    for name in names:
        started = time.monotonic()
        catalog.load_table((NAMESPACE, name)).append(data)
        time.sleep(max(0.0, started + 1 - time.monotonic()))


def _measure_other_requests(served: Served) -> list[Row]:
    """What other requests take while the server works for one."""
    small = served.path(f"t0_{served.name}")
    catalog, s3 = (_connection(uri) for uri in (served.uri, served.s3_endpoint))
    cached = _list_of(catalog, small)
    requests: dict[str, Callable[[], object]] = {
        "config": lambda: _get(catalog, "/v1/config?warehouse=lake"),
        "loadTable": lambda: _get(catalog, small),
        "cached list": lambda: _get(s3, cached),
    }
    idle: dict[str, list[float]] = {name: [] for name in requests}
    for _ in range(ALONE):
        for name, request in requests.items():
            idle[name].append(_seconds(request))
    rows: list[Row] = []
    for name, work in WORKS.items():
        say(f"serve: requests beside {name} ...")
        started = time.perf_counter()
        meanwhile = _meanwhile(work, served, requests)
        row = {"meanwhile": name, "seconds": round(time.perf_counter() - started, 1)}
        rows += [row | _compared(one, idle[one], meanwhile[one]) for one in requests]
    return rows


def _meanwhile(
    work: Callable[[Served], None], served: Served, requests: dict[str, Callable[[], object]]
) -> dict[str, list[float]]:
    """The seconds of these requests until the work, in a process of its own, is done."""
    process = multiprocessing.get_context("spawn").Process(target=work, args=(served,))
    process.start()
    seconds: dict[str, list[float]] = {name: [] for name in requests}
    while process.is_alive():
        for name, request in requests.items():
            seconds[name].append(_seconds(request))
    if process.exitcode:
        raise RuntimeError(f"the work beside which requests are measured ended: {work.__name__}")
    return seconds


def _compared(request: str, idle: list[float], meanwhile: list[float]) -> Row:
    row: Row = {"request": request}
    for name, seconds in (("idle", idle), ("busy", meanwhile)):
        row |= {name: ms(statistics.median(seconds)), f"{name} 95%": ms(_percentile_95(seconds))}
        row[f"{name} longest"] = ms(max(seconds))
    row["ratio"] = ratio(statistics.median(meanwhile), statistics.median(idle))
    row["95% ratio"] = ratio(_percentile_95(meanwhile), _percentile_95(idle))
    row["longest ratio"] = ratio(max(meanwhile), max(idle))
    return row


def _percentile_95(seconds: list[float]) -> float:
    """What one of twenty takes longer than."""
    return statistics.quantiles(seconds, n=20)[-1]


def _connection(uri: str) -> HTTPConnection:
    host = urlsplit(uri)
    return HTTPConnection(host.hostname or "", host.port or 0)


def _list_of(catalog: HTTPConnection, table: str) -> str:
    """The path of the list of a table's newest snapshot, at the endpoint of S3."""
    metadata = json.loads(_get(catalog, table))["metadata"]
    location: str = metadata["snapshots"][-1]["manifest-list"]
    return f"/{location.removeprefix('s3://')}"


def _first_list(served: Served) -> None:
    path = _list_of(_connection(served.uri), served.path(TABLE))
    _get(_connection(served.s3_endpoint), path)


def _plan(served: Served) -> None:
    catalog, large = _connection(served.uri), served.path(TABLE)
    answer = json.loads(_post(catalog, f"{large}/plan", {}))
    for task in answer["plan-tasks"]:
        _post(catalog, f"{large}/tasks", {"plan-task": task})


def _commit(served: Served) -> None:
    catalog = open_pyiceberg(served.uri, served.s3_endpoint)
    many_added.commit(catalog, (NAMESPACE, f"many_{served.name}"), ADDED, served.behind)


def _compute(_: Served) -> None:
    """What the server has nothing to do with: two processes that use both cores."""
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(_spin, [SECONDS] * 2))


def _spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


WORKS = {
    "two processes that only compute": _compute,
    f"the first list of {LARGE:,} files": _first_list,
    f"/plan of {LARGE:,} files": _plan,
    f"a commit of {ADDED:,} files": _commit,
}


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _kill_a_worker(served: Served) -> Row:
    """Kill one of the processes that answer, while clients load tables."""
    say("serve: kill -9 of a worker ...")
    port = urlsplit(served.uri).port
    [supervisor] = [p for p in psutil.Process().children() if _listens(p, port)]
    workers = [p for p in supervisor.children() if _listens(p, port)]
    table = served.path(f"t0_{served.name}")
    end = time.monotonic() + SECONDS

    def client(_: int) -> tuple[int, int]:
        connection, answers, failures = _connection(served.uri), 0, 0
        while time.monotonic() < end:
            try:
                _get(connection, table)
                answers += 1
            except (HTTPException, OSError):
                failures += 1
                connection = _connection(served.uri)
        return answers, failures

    with ThreadPoolExecutor(KILLED_CLIENTS) as pool:
        clients = pool.map(client, range(KILLED_CLIENTS))
        time.sleep(SECONDS / 2)
        workers[0].kill()
        counts = list(clients)
    return {
        "connections": KILLED_CLIENTS,
        "answers": sum(answers for answers, _ in counts),
        "failed": sum(failures for _, failures in counts),
        "most of one connection": max(failures for _, failures in counts),
        "workers before": len(workers),
        "workers after": sum(_listens(p, port) for p in supervisor.children()),
    }


def _listens(process: psutil.Process, port: int | None) -> bool:
    try:
        connections = process.net_connections("tcp")
    except psutil.Error:
        return False
    return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in connections)
