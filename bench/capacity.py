"""What limits a deployment on AWS first: many readers and writers, simulated with measured times.

The simulation of this machine, whose cores all share, is checked against a run.
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .load_table import TIMES
from .measure import once
from .report import Row, Table, ms, ratio
from .support.bridge import handling
from .support.workshop import FEW, Workshop, say
from .support.writing.own_tables import SECONDS, appends, cpu_of

if TYPE_CHECKING:
    import simpy

HELP = "what limits a deployment first, by a simulation of many readers and writers"

CHECKED = 16
"""Clients of the run with which the simulation is compared."""
READERS, WRITERS = 1_000, (1, 10, 50)
PAUSE = 1.0
"""Seconds between two queries of a reader, on average."""
ENVIRONMENTS = 1_000
"""Of Lambda, at the same time: the quota of a new account."""
POSTGRES_CORES = 2
"""As db.m7g.large, which allows some 900 connections."""
OVERHEAD = 0.012
"""Seconds that a request on Lambda takes beside our work (docs/cost.md: 12 to 20 ms, with it)."""
SIMULATED = 60.0
SLICE = 0.005
"""Seconds for which one process has a core, while others wait."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of CPU, but for `held`: measured with one client on an idle machine."""

    client: float
    """Of PyIceberg and S3, for an append."""
    functions: float
    """Of the functions for an append, without what is held."""
    postgres: float
    """The same of PostgreSQL."""
    held: float
    """From the claim of the snapshot to the end of COMMIT."""
    load: float
    """Of a function for one loadTable."""
    load_postgres: float
    """What it waits for PostgreSQL then."""


@dataclass
class Deployment:
    """Where clients and functions run, and what they have in common."""

    env: simpy.Environment
    times: Times
    functions: simpy.Resource
    """Cores on which functions and clients run."""
    postgres: simpy.Resource
    """Cores of PostgreSQL."""
    has_own_clients: bool
    """Clients and S3 take the same cores."""
    overhead: float
    claim: simpy.Resource = field(init=False)
    loads: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)
    """Seconds of each answer."""
    environments: int = 0
    most_environments: int = 0
    postgres_busy: float = 0.0
    claim_busy: float = 0.0

    def __post_init__(self) -> None:
        import simpy  # `make bench` installs it

        self.claim = simpy.Resource(self.env, 1)

    def work(self, cores: simpy.Resource, seconds: float) -> Generator[Any, Any, None]:
        """CPU, slice by slice."""
        while seconds > 0:
            with cores.request() as core:
                yield core
                yield self.env.timeout(min(SLICE, seconds))
            seconds -= SLICE

    def use_postgres(self, seconds: float) -> Generator[Any, Any, None]:
        self.postgres_busy += seconds
        yield from self.work(self.postgres, seconds)

    def run_in_function(self, run: Generator[Any, Any, None]) -> Generator[Any, Any, float]:
        """Run it in an environment of Lambda; returns the seconds until the answer."""
        started = self.env.now
        self.environments += 1
        self.most_environments = max(self.most_environments, self.environments)
        yield self.env.timeout(self.overhead)
        yield from run
        self.environments -= 1
        return float(self.env.now - started)

    def load(self) -> Generator[Any, Any, None]:
        yield from self.work(self.functions, self.times.load)
        yield from self.use_postgres(self.times.load_postgres)

    def commit(self) -> Generator[Any, Any, None]:
        """Half of the work is the plan, half the answer; all writers wait for what is between."""
        for is_plan in (True, False):
            yield from self.work(self.functions, self.times.functions / 2)
            yield from self.use_postgres(self.times.postgres / 2)
            if is_plan:
                with self.claim.request() as claim:
                    yield claim
                    began = self.env.now
                    yield from self.use_postgres(self.times.held)
                    self.claim_busy += self.env.now - began

    def writer(self) -> Generator[Any, Any, None]:
        while True:
            if self.has_own_clients:
                yield from self.work(self.functions, self.times.client)
            else:
                yield self.env.timeout(self.times.client)
            self.commits.append((yield from self.run_in_function(self.commit())))

    def reader(self, chance: random.Random) -> Generator[Any, Any, None]:
        while True:
            yield self.env.timeout(chance.expovariate(1 / PAUSE))
            self.loads.append((yield from self.run_in_function(self.load())))


def run(shop: Workshop) -> list[Table]:
    lake = shop.lake(FEW, FEW)
    say("capacity: one client appends ...")
    one = appends(1, lake, shop.s3_endpoint)
    [written] = one.clients
    held = statistics.median(written.held)
    with handling(lake) as ask:
        ask()
        costs = [once(ask) for _ in range(TIMES)]
    load = statistics.median(cost.cpu for cost in costs)
    times = Times(
        client=(cpu_of(one, "client") + cpu_of(one, "weed")) / 1000,
        functions=max(0.0, cpu_of(one, "functions") / 1000 - held / 2),
        postgres=max(0.0, cpu_of(one, "postgres") / 1000 - held / 2),
        held=held,
        load=load,
        load_postgres=max(0.0, statistics.median(cost.wall for cost in costs) - load),
    )
    say(f"capacity: {CHECKED} clients append ...")
    many = appends(CHECKED, lake, shop.s3_endpoint)
    measured = sum(w.commits for w in many) / SECONDS
    simulated = len(_here(times).commits) / SIMULATED
    return [
        Table(
            f"{CHECKED} clients on this machine: the run, and the simulation",
            [{"measured": measured, "simulated": simulated, "ratio": ratio(simulated, measured)}],
            (
                "appends a second; measured times of one client, in milliseconds: "
                + ", ".join(f"{name} {ms(getattr(times, name))}" for name in Times.__slots__),
            ),
        ),
        Table(
            f"{READERS:,} readers, one query a second each, and writers: simulated on AWS",
            [_simulate_aws(times, writers) for writers in WRITERS],
            (
                f"functions have cores of their own, up to {ENVIRONMENTS:,}; PostgreSQL has "
                f"{POSTGRES_CORES}",
                "95%: one of twenty answers takes longer, in milliseconds",
                "environments: the most at the same time, each with a connection to PostgreSQL",
                "claim: the part of the time in which a commit keeps other writers waiting",
            ),
        ),
    ]


def _here(times: Times) -> Deployment:
    """As in the run: all share the cores of this machine."""
    import simpy

    env = simpy.Environment()
    cores = simpy.Resource(env, os.cpu_count() or 1)
    here = Deployment(env, times, cores, cores, has_own_clients=True, overhead=0)
    for _ in range(CHECKED):
        env.process(here.writer())
    env.run(SIMULATED)
    return here


def _simulate_aws(times: Times, writers: int) -> Row:
    import simpy

    env, chance = simpy.Environment(), random.Random(47)
    functions = simpy.Resource(env, ENVIRONMENTS)
    postgres = simpy.Resource(env, POSTGRES_CORES)
    aws = Deployment(env, times, functions, postgres, has_own_clients=False, overhead=OVERHEAD)
    for _ in range(READERS):
        env.process(aws.reader(chance))
    for _ in range(writers):
        env.process(aws.writer())
    env.run(SIMULATED)
    return {
        "writers": writers,
        "loads/s": len(aws.loads) / SIMULATED,
        "loads 95%": ms(statistics.quantiles(aws.loads, n=20)[-1]),
        "commits/s": len(aws.commits) / SIMULATED,
        "commits 95%": ms(statistics.quantiles(aws.commits, n=20)[-1]),
        "environments": aws.most_environments,
        "claim": f"{aws.claim_busy / SIMULATED:.0%}",
        "PostgreSQL": f"{aws.postgres_busy / POSTGRES_CORES / SIMULATED:.0%}",
    }
