"""Many writers at a time, each of a table of its own: Iceberg clients, and native DuckLake."""

import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from duckdb import Error as DuckDBError
from polynya.catalog import writer
from polynya.catalog.writer import WritableCatalog
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.ducklake.writes.commits import claim_snapshot_id
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from pyiceberg.exceptions import RESTError

from ...report import Row, Table, ms, ratio
from ..lakes import NAMESPACE
from ..many_tables import lake_of_tables
from ..workshop import FEW, Workshop, say
from .writable import served
from .writers import ROWS, open_pyiceberg, rows

CLIENTS = (1, 4, 16)
TABLES = 1_000
"""More tables of the lake, for the last measurement."""

SECONDS = 8.0
SECONDS_TO_START = 300.0


@dataclass
class Written:
    """What one client has done."""

    commits: int = 0
    failures: int = 0
    cpu: float = 0.0
    """Seconds of its process: of the client, and for Iceberg's of the functions too."""
    held: list[float] = field(default_factory=list)
    """Seconds from the claim of the snapshot to the end of COMMIT."""
    steps: dict[str, list[float]] = field(default_factory=dict)


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
        results.append(
            (number, [_together(w, number, lake, endpoint) for w in (_native, _iceberg)])
        )
    return Table(
        f"Clients that append to tables of their own, with S3 {where}",
        [
            _row(number, TABLES if place == len(CLIENTS) else 1, *both)
            for place, (number, both) in enumerate(results)
        ],
        (
            f"appends of {ROWS} rows for {SECONDS:.0f} s, first by DuckLake, then by PyIceberg",
            "CPU: milliseconds of an append in the process of the client, which for PyIceberg is",
            "  that of the functions too, and has a connection of its own to PostgreSQL",
            "held: milliseconds from the claim of the snapshot to the end of COMMIT, in which no",
            "  other writer can commit; of it: check that the table is as planned, write its rows,",
            "  read what clients will get (medians); the rest is the claim and COMMIT",
        ),
    )


def _row(clients: int, tables: int, native: list[Written], iceberg: list[Written]) -> Row:
    ours, theirs = (sum(w.commits for w in many) / SECONDS for many in (iceberg, native))
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
        "native failures": sum(w.failures for w in native),
        "failures": sum(w.failures for w in iceberg),
        "native CPU": _cpu(native),
        "CPU": _cpu(iceberg),
        "held": ms(statistics.median([s for w in iceberg for s in w.held] or [0])),
        **steps,
    }


def _cpu(many: list[Written]) -> float:
    return ms(sum(w.cpu for w in many) / max(1, sum(w.commits for w in many)))


Work = Callable[[Lake, str, str, Any, Any], None]


def _together(work: Work, number: int, lake: Lake, endpoint: str) -> list[Written]:
    """What each of so many processes has done, all of which begin at the same time."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(number), context.Queue()
    name = f"{work.__name__}_{number}_{time.time_ns()}"
    processes = [
        context.Process(target=work, args=(lake, endpoint, f"{name}_{n}", barrier, queue))
        for n in range(number)
    ]
    for process in processes:
        process.start()
    results = [queue.get(timeout=SECONDS_TO_START) for _ in processes]
    for process in processes:
        process.join()
    return results


def _repeat(append: Callable[[], object], barrier: Any, written: Written) -> None:
    """Append until the time is up."""
    append()  # not counted
    written.held.clear()
    written.steps.clear()
    barrier.wait(SECONDS_TO_START)
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


def _native(lake: Lake, endpoint: str, name: str, barrier: Any, queue: Any) -> None:
    written = Written()
    with connect(LAKE, endpoint) as con:
        con.execute("SET threads = 1")
        attach(con, lake, read_only=False)
        con.register("source", rows(0))
        con.execute(f"CREATE TABLE lake.{NAMESPACE}.{name} AS FROM source LIMIT 0")
        con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
        _repeat(
            lambda: con.execute(f"INSERT INTO lake.{NAMESPACE}.{name} FROM source"),
            barrier,
            written,
        )
    queue.put(written)


def _iceberg(lake: Lake, endpoint: str, name: str, barrier: Any, queue: Any) -> None:
    written = Written()
    with served(lake, endpoint) as ours, _watched(written):
        catalog = open_pyiceberg(ours.uri, endpoint)
        data = rows(0)
        catalog.create_table((NAMESPACE, name), data.schema)
        _repeat(lambda: catalog.load_table((NAMESPACE, name)).append(data), barrier, written)
    queue.put(written)


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
