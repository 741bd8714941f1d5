"""What an operation costs: CPU seconds of this process, wall seconds, and the share of each part.

On a shared machine only CPU seconds are reliable. PostgreSQL and S3 are processes of their own:
their CPU time is part of the wall seconds only.
"""

import multiprocessing
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import psutil
from pg8000.core import CoreConnection
from polynya.ducklake.connection.catalog_connection import CatalogConnection


@dataclass(frozen=True, slots=True)
class Cost:
    cpu: float
    wall: float


def once(work: Callable[[], object]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def cpu_by_program(without: Collection[int | None] = ()) -> Counter[str]:
    """The seconds of CPU so far of all processes that this one has started, with those of their
    children that have ended, by the program's name without its version.

    Args:
        without: pids of processes that do not count.
    """
    seconds: Counter[str] = Counter()
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = process.cpu_times()
            if process.pid not in without:
                # User and system, of the process and of its children.
                seconds[process.name().rstrip("0123456789.")] += sum(times[:4])
    return seconds


SECONDS_TO_START = 300.0


def measure_together(
    work: Callable[..., None], clients: Sequence[tuple[Any, ...]]
) -> tuple[list[Any], Counter[str]]:
    """Run it in a process for each client, which gets its arguments, a barrier and a queue; returns
    what they put into the queue, and the CPU seconds of other programs since the barrier."""
    context = multiprocessing.get_context("spawn")
    barrier, queue = context.Barrier(len(clients) + 1), context.Queue()
    processes = [context.Process(target=work, args=(*own, barrier, queue)) for own in clients]
    for process in processes:
        process.start()
    pids = {process.pid for process in processes}
    barrier.wait(SECONDS_TO_START)
    before = cpu_by_program(pids)
    done = [queue.get(timeout=SECONDS_TO_START) for _ in processes]
    spent = cpu_by_program(pids) - before
    for process in processes:
        process.join()
    return done, spent


def median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.cpu for cost in costs),
        statistics.median(cost.wall for cost in costs),
    )


def cost(work: Callable[[], object], times: int = 5) -> Cost:
    """The median of several runs, after one that is not counted."""
    [found] = measure_in_turn(work, times=times)
    return found


def measure_in_turn(
    *works: Callable[[], object], times: int, before: Callable[[], object] = lambda: None
) -> list[Cost]:
    """The cost of each, in alternating runs: a JVM gets faster from run to run.

    Args:
        before: is done before each round, and not measured.
    """
    for work in works:
        work()
    runs = []
    for _ in range(times):
        before()
        runs.append([once(work) for work in works])
    return [median(list(of_one)) for of_one in zip(*runs, strict=True)]


@dataclass
class Watched:
    """What was measured while `watching`, by part."""

    cpu: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wall: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    calls: Counter[str] = field(default_factory=Counter)


Functions = tuple[tuple[Any, str], ...]
"""Functions, each as (module or class, its name there)."""


class Runs:
    """Several runs of the same work, with its parts watched; every figure is a median."""

    def __init__(self, **parts: Functions) -> None:
        self._parts = parts
        self._costs: list[Cost] = []
        self._watched: list[Watched] = []

    def add(self, work: Callable[[], object]) -> None:
        with watching(**self._parts) as seen:
            self._costs.append(once(work))
        self._watched.append(seen)

    @property
    def cost(self) -> Cost:
        return median(self._costs)

    def cpu(self, part: str) -> float:
        return statistics.median(seen.cpu[part] for seen in self._watched)

    def wall(self, part: str) -> float:
        return statistics.median(seen.wall[part] for seen in self._watched)

    def calls(self, part: str) -> int:
        return self._watched[-1].calls[part]


@contextmanager
def watching(**parts: Functions) -> Iterator[Watched]:
    """Measure the time of the named functions."""
    seen = Watched()
    with ExitStack() as stack:
        for part, functions in parts.items():
            for owner, name in functions:
                timed = _timed(getattr(owner, name), part, seen)
                stack.enter_context(patch.object(owner, name, timed))
        yield seen


def _timed(function: Callable[..., Any], part: str, seen: Watched) -> Callable[..., Any]:
    def timed(*args: Any, **kwargs: Any) -> Any:
        wall, cpu = time.perf_counter(), time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            seen.cpu[part] += time.process_time() - cpu
            seen.wall[part] += time.perf_counter() - wall
            seen.calls[part] += 1

    return timed


SQL = ((CatalogConnection, "run"),)
"""Every statement, from its text to its rows."""

WAITS = ((CoreConnection, "handle_messages"),)
"""Every wait for PostgreSQL: a pg8000 statement with parameters takes three round trips."""
