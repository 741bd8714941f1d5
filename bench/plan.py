"""Planning by three clients: through `polynya serve`, and from real metadata in the same S3."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from polynya_local.clients import spark
from polynya_local.processes.postgres import HOST
from polynya_local.processes.serving import serving

from .measure import measure_in_turn, once
from .report import Row, Table, ms, ratio
from .support.iceberg import write_real
from .support.lakes import put_day_one
from .support.planners import PLANNERS, Planner
from .support.relay import relay
from .support.static_catalog import static_catalog
from .support.workshop import Workshop, say

HELP = "planning by PyIceberg, DuckDB and Spark, beside real metadata in the same S3"

ALL = "plan all files"

Endpoints = tuple[str, str]
"""The catalog's URI, and the endpoint of its S3."""


def run(shop: Workshop) -> list[Table]:
    files = shop.files[-1]
    lake = shop.lake(files)
    put_day_one(lake, shop.s3_endpoint)
    say(f"planning: {files:,} files; writing the same table as real Iceberg ...")
    real = write_real(shop, lake, f"iceberg/plan-{files}")
    with (
        # Relays have ports of their own, which are in the header Host.
        serving(
            lake.database.url,
            shop.s3_endpoint,
            delivery="object-lambda",
            options=("--allow-host", HOST),
        ) as bridge,
        static_catalog(*real) as catalog_uri,
    ):
        ours, theirs = (bridge.catalog_uri, bridge.s3_endpoint), (catalog_uri, shop.s3_endpoint)
        first = once(lambda: PLANNERS[0].steps[ALL](PLANNERS[0].open(*ours)))
        rows = [_row(planner, step, ours, theirs) for planner in PLANNERS for step in planner.steps]
    spark.stop()
    return [
        Table(
            f"Planning of {files:,} files (milliseconds)",
            rows,
            (
                "each from a new client; CPU: Python's, not Java's; requests: REST and S3 together",
                "medians of 5 (Spark: of 7) in alternating runs, after one that is not counted",
                "polynya: through `polynya serve` (object-lambda), warm",
                f"polynya, all files, nothing cached: {first.wall:.1f} s wall",
                "iceberg: the same entries in as many manifests, in the same S3 (SeaweedFS), and",
                "  a catalog that holds its only answer in memory",
                "a query reads data files too, which are the same for both",
            ),
        )
    ]


def _row(planner: Planner, step: str, our: Endpoints, their: Endpoints) -> Row:
    say(f"planning: {planner.name}, {step} ...")
    work = planner.steps[step]
    our_requests, found = _counted(planner, work, our)
    their_requests, expected = _counted(planner, work, their)
    if found != expected:
        sys.exit(f"bench: {planner.name} found {found} here, {expected} there, by: {step}")
    ours, theirs = measure_in_turn(
        lambda: work(planner.open(*our)), lambda: work(planner.open(*their)), times=planner.times
    )
    return {
        "client": planner.name,
        "step": step,
        "found": found,
        "polynya requests": our_requests,
        "polynya CPU": ms(ours.cpu),
        "polynya wall": ms(ours.wall),
        "iceberg requests": their_requests,
        "iceberg CPU": ms(theirs.cpu),
        "iceberg wall": ms(theirs.wall),
        "wall ratio": ratio(ours.wall, theirs.wall),
    }


def _counted(planner: Planner, work: Callable[[Any], int], endpoints: Endpoints) -> tuple[str, int]:
    """The requests, counted by relays in between, and what was found."""
    with _counting(*endpoints) as (relays, counts):
        found = work(planner.open(*relays))
    return _requests(counts), found


@contextmanager
def _counting(*endpoints: str) -> Iterator[tuple[list[str], Counter[str]]]:
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        yield [stack.enter_context(relay(endpoint, counts)) for endpoint in endpoints], counts


def _requests(counts: Counter[str]) -> str:
    return " + ".join(f"{number} {method}" for method, number in sorted(counts.items()))
