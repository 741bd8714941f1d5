"""Many writers at a time, each of a table of its own: Iceberg clients, and native DuckLake.

Iceberg's own REST catalog shows what its clients and S3 take on this machine, whoever commits.
"""

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

from duckdb import Error as DuckDBError
from polynya.catalog import writer
from polynya.catalog.writer import WritableCatalog
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.ducklake.writes.new_snapshot import claim_snapshot_id
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from pyiceberg.exceptions import RESTError

from ...measure import SECONDS_TO_START, measure_together
from ...report import Row, Table, ms, ratio
from ..lakes import NAMESPACE, lake_of_tables
from ..workshop import FEW, Workshop, say
from .fixture import iceberg_fixture
from .writable import served
from .writers import ROWS, open_pyiceberg, rows

CLIENTS = (1, 4, 16)
TABLES = 1_000
"""More tables of the lake, for the last measurement."""

SECONDS = 8.0


@dataclass
class Written:
    """What one client has done."""

    commits: int = 0
    failures: int = 0
    cpu: float = 0.0
    """Seconds of the client's process."""
    functions: float = 0.0
    """Seconds of the process of the functions that it has for itself."""
    held: list[float] = field(default_factory=list)
    """Seconds from the claim of the snapshot to the end of COMMIT."""
    steps: dict[str, list[float]] = field(default_factory=dict)


@dataclass
class Together:
    """What some clients have done at the same time."""

    clients: list[Written]
    servers: dict[str, float]
    """Seconds of CPU of PostgreSQL and S3 meanwhile, by the name of the program."""

    def __iter__(self) -> Iterator[Written]:
        return iter(self.clients)


def table(shop: Workshop, endpoint: str, where: str) -> Table:
    """Measure writers of so many tables at a time.

    Args:
        where: how far S3 is.
    """
    lakes = [(number, shop.lake(FEW, FEW)) for number in CLIENTS]
    lakes.append((CLIENTS[-1], lake_of_tables(shop.server, shop.s3_endpoint, TABLES)))
    results = []
    for number, lake in lakes:
        say(f"writes: {number} clients, each of its own table, S3 {where} ...")
        measured = [_together(w, number, lake, endpoint) for w in (_native, _iceberg)]
        with iceberg_fixture(endpoint, shop.folder) as uri:
            measured.append(_together(partial(_fixture, uri), number, lake, endpoint))
        results.append((number, measured))
    return Table(
        f"Clients that append to tables of their own, with S3 {where}",
        [
            _row(number, TABLES if place == len(CLIENTS) else 1, *measured)
            for place, (number, measured) in enumerate(results)
        ],
        (
            f"appends of {ROWS} rows for {SECONDS:.0f} s, first by DuckLake, then by PyIceberg;",
            "  ratio: to native DuckLake; fixture: PyIceberg with Iceberg's REST catalog (SQLite)",
            "CPU: milliseconds of an append in all processes; of it: clients, functions (a process",
            "  for each client, with the stand-in for API Gateway), PostgreSQL and S3",
            "without clients: by CPU, with PyIceberg's left out and DuckDB's not",
            "held: milliseconds from the claim of the snapshot to the end of COMMIT, in which no",
            "  other writer can commit; of it: check that the table is as planned, write its rows,",
            "  read what clients will get (medians); the rest is the claim and COMMIT",
        ),
    )


def _row(clients: int, tables: int, native: Together, iceberg: Together, fixture: Together) -> Row:
    theirs, ours, of_fixture = (
        sum(w.commits for w in many) / SECONDS for many in (native, iceberg, fixture)
    )
    steps = {
        name: ms(statistics.median([s for w in iceberg for s in w.steps.get(name, [])] or [0]))
        for name in STEPS
    }
    return {
        "clients": clients,
        "other tables": tables,
        "native commits/s": theirs,
        "iceberg commits/s": ours,
        "ratio": ratio(ours, theirs),
        "fixture commits/s": of_fixture,
        "fixture ratio": ratio(of_fixture, theirs),
        "native failures": sum(w.failures for w in native),
        "failures": sum(w.failures for w in iceberg),
        "native CPU": cpu_of(native),
        "fixture CPU": cpu_of(fixture),
        "CPU": cpu_of(iceberg),
        "client": cpu_of(iceberg, "client"),
        "functions": cpu_of(iceberg, "functions"),
        "PostgreSQL": cpu_of(iceberg, "postgres"),
        "S3": cpu_of(iceberg, "weed"),
        "without clients": ratio(cpu_of(native), cpu_of(iceberg) - cpu_of(iceberg, "client")),
        "held": ms(statistics.median([s for w in iceberg for s in w.held] or [0])),
        **steps,
    }


def cpu_of(many: Together, part: str = "all") -> float:
    """Milliseconds of a part for each commit: client, functions, postgres, weed (S3) or all."""
    client, functions = (sum(getattr(w, of) for w in many.clients) for of in ("cpu", "functions"))
    seconds = {"client": client, "functions": functions, **many.servers}
    seconds["all"] = sum(seconds.values())
    # The last append of each client ends after the time, so that it is no commit of these seconds.
    return ms(seconds[part] / sum(w.commits + 1 for w in many.clients))


SERVERS = ("postgres", "weed", "java")
"""The programs that this process has started, and that its children use."""


def appends(clients: int, lake: Lake, endpoint: str) -> Together:
    """What so many clients do that append through functions, each to a table of its own."""
    return _together(_iceberg, clients, lake, endpoint)


Work = Callable[[Lake, str, str, Any, Any], None]


def _together(work: Work, number: int, lake: Lake, endpoint: str) -> Together:
    """What each of so many processes has done, all of which begin at the same time."""
    names = [f"t_{number}_{time.time_ns()}_{n}" for n in range(number)]
    if work is _native:
        _create_tables(lake, endpoint, names)
    done, spent = measure_together(work, [(lake, endpoint, name) for name in names])
    return Together(done, {name: float(spent[name]) for name in SERVERS})


def _repeat(append: Callable[[], object], begin: Callable[[], object], written: Written) -> None:
    """Append until the time is up. `begin` waits for the others."""
    with suppress(DuckDBError):
        append()  # not counted
    begin()
    cpu, end = _cpu_seconds(), time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            append()
            written.commits += time.monotonic() < end
        except (DuckDBError, RESTError):
            written.failures += 1
    written.cpu = _cpu_seconds() - cpu


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _create_tables(lake: Lake, endpoint: str, names: list[str]) -> None:
    """One after the other: DuckLake gives up after some conflicts."""
    with connect(LAKE, endpoint) as con:
        attach(con, lake, read_only=False)
        con.register("source", rows(0))
        con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        for name in names:
            con.execute(f"CREATE TABLE lake.{NAMESPACE}.{name} AS FROM source LIMIT 0")


def _native(lake: Lake, endpoint: str, name: str, barrier: Any, queue: Any) -> None:
    written = Written()
    with connect(LAKE, endpoint) as con:
        con.execute("SET threads = 1")
        attach(con, lake, read_only=False)
        con.register("source", rows(0))
        _repeat(
            lambda: con.execute(f"INSERT INTO lake.{NAMESPACE}.{name} FROM source"),
            lambda: barrier.wait(SECONDS_TO_START),
            written,
        )
    queue.put(written)


def _iceberg(lake: Lake, endpoint: str, name: str, barrier: Any, queue: Any) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    functions = context.Process(target=_functions, args=(lake, endpoint, there))
    functions.start()
    catalog = open_pyiceberg(here.recv(), endpoint)
    data = rows(0)
    catalog.create_table((NAMESPACE, name), data.schema)

    def begin() -> None:
        barrier.wait(SECONDS_TO_START)
        here.send("begin")
        here.recv()

    written = Written()
    _repeat(lambda: catalog.load_table((NAMESPACE, name)).append(data), begin, written)
    here.send("end")
    of_functions: Written = here.recv()
    functions.join()
    written.functions, written.held, written.steps = (
        of_functions.cpu,
        of_functions.held,
        of_functions.steps,
    )
    queue.put(written)


def _fixture(uri: str, lake: Lake, endpoint: str, name: str, barrier: Any, queue: Any) -> None:
    written = Written()
    catalog, data = open_pyiceberg(uri, endpoint), rows(0)
    catalog.create_table((NAMESPACE, name), data.schema)
    _repeat(
        lambda: catalog.load_table((NAMESPACE, name)).append(data),
        lambda: barrier.wait(SECONDS_TO_START),
        written,
    )
    queue.put(written)


def _functions(lake: Lake, endpoint: str, pipe: Any) -> None:
    """The functions for one client, in a process of their own."""
    written = Written()
    with served(lake, endpoint) as ours, _watched(written):
        pipe.send(ours.uri)
        pipe.recv()
        written.held.clear()
        written.steps.clear()
        cpu = _cpu_seconds()
        pipe.send("begun")
        pipe.recv()
        written.cpu = _cpu_seconds() - cpu
    pipe.send(written)


WATCHED: tuple[tuple[Any, str, str], ...] = (
    (WritableCatalog, "_check_unchanged", "check"),
    (writer, "write_plans", "write"),
    (WritableCatalog, "_check_answer", "read"),
)
STEPS = [step for _, _, step in WATCHED]
"""What a commit does while the snapshot is its own."""


@contextmanager
def _watched(written: Written) -> Iterator[None]:
    """Measure what a commit does from the claim of its snapshot to COMMIT."""
    claimed: list[float] = []
    run = CatalogConnection.run

    def claims(*arguments: Any, **options: Any) -> Any:
        claimed[:] = [time.perf_counter()]
        return claim_snapshot_id(*arguments, **options)

    def runs(self: CatalogConnection, sql: str, *arguments: Any, **parameters: Any) -> Any:
        result = run(self, sql, *arguments, **parameters)
        if sql == "COMMIT" and claimed:
            written.held.append(time.perf_counter() - claimed.pop())
        return result

    def timed(step: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*arguments: Any, **options: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                if claimed:
                    written.steps.setdefault(step, []).append(time.perf_counter() - start)

        return measured

    with (
        patch.object(writer, "claim_snapshot_id", claims),
        patch.object(CatalogConnection, "run", runs),
        ExitStack() as stack,
    ):
        for owner, name, step in WATCHED:
            stack.enter_context(patch.object(owner, name, timed(step, getattr(owner, name))))
        yield
