"""Planning by PyIceberg: through `polynya serve`, and from real Iceberg metadata in the same S3."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import StaticTable
from pyiceberg.table import Table as IcebergTable

from local.duckdb_connection import KEY_ID, REGION, SECRET
from local.serving import Bridge, serving

from .bridge import opened
from .iceberg import original, write_manifests, write_metadata
from .lakes import BUCKET, NAMESPACE, TABLE
from .measure import Cost, cost, once
from .relay import relay
from .report import Row, Table, ms, ratio
from .workshop import Workshop, say

HELP = "planning by PyIceberg through `polynya serve`, beside real metadata in the same S3"

TIMES = 3


@dataclass(frozen=True, slots=True)
class Step:
    """What a client does, from nothing."""

    name: str
    work: Callable[[IcebergTable], object]


def run(shop: Workshop) -> list[Table]:
    files = shop.files[-1]
    lake = shop.lake(files)
    say(f"planning: {files:,} files ...")
    real = _write_real(shop, files)
    steps = [
        Step("load the table", lambda table: table),
        Step("plan one file (id = ...)", lambda table: _plan(table, EqualTo("id", 500_500), 1)),
        Step("plan all files", lambda table: _plan(table, AlwaysTrue(), files)),
    ]
    with serving(lake.database.url, shop.s3_endpoint, delivery="object-lambda") as bridge:
        first = once(lambda: steps[-1].work(_ours(bridge.catalog_uri, bridge.s3_endpoint)))
        rows = [_row(step, bridge, shop.s3_endpoint, real) for step in steps]
    return [
        Table(
            f"Planning of {files:,} files by PyIceberg (milliseconds; medians of {TIMES})",
            rows,
            (
                "each from a new client; CPU: the client's; requests: REST and S3 together",
                "polynya: through `polynya serve` (object-lambda), warm",
                f"polynya for the first time, all files, nothing kept: {first.wall:.1f} s wall",
                "iceberg: its files on the S3 behind (moto), by metadata.json, without a catalog",
            ),
        )
    ]


def _row(step: Step, bridge: Bridge, s3_endpoint: str, real: str) -> Row:
    ours, our_requests = _costs(step, _ours, bridge.catalog_uri, bridge.s3_endpoint)
    theirs, their_requests = _costs(step, lambda s3: _theirs(real, s3), s3_endpoint)
    return {
        "step": step.name,
        "polynya requests": our_requests,
        "polynya CPU": ms(ours.cpu),
        "polynya wall": ms(ours.wall),
        "iceberg requests": their_requests,
        "iceberg CPU": ms(theirs.cpu),
        "iceberg wall": ms(theirs.wall),
        "CPU ratio": ratio(ours.cpu, theirs.cpu),
        "wall ratio": ratio(ours.wall, theirs.wall),
    }


def _costs(
    step: Step, open_table: Callable[..., IcebergTable], *endpoints: str
) -> tuple[Cost, str]:
    """The cost without, and the requests with, somebody counting in between."""
    with _counting(*endpoints) as (relays, counts):
        step.work(open_table(*relays))
    return cost(lambda: step.work(open_table(*endpoints)), TIMES), _requests(counts)


@contextmanager
def _counting(*endpoints: str) -> Iterator[tuple[list[str], Counter[str]]]:
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        yield [stack.enter_context(relay(endpoint, counts)) for endpoint in endpoints], counts


def _requests(counts: Counter[str]) -> str:
    return " + ".join(f"{number} {method}" for method, number in sorted(counts.items()))


def _ours(catalog_uri: str, s3_endpoint: str) -> IcebergTable:
    clear_manifest_cache()
    properties = {"type": "rest", "uri": catalog_uri, "warehouse": "lake", **_s3(s3_endpoint)}
    return load_catalog("polynya", **properties).load_table((NAMESPACE, TABLE))


def _theirs(metadata_location: str, s3_endpoint: str) -> IcebergTable:
    clear_manifest_cache()
    return StaticTable.from_metadata(metadata_location, _s3(s3_endpoint))


def _plan(table: IcebergTable, row_filter: BooleanExpression, expected: int) -> None:
    planned = sum(1 for _ in table.scan(row_filter).plan_files())
    if planned != expected:
        sys.exit(f"bench: {planned} files planned instead of {expected}: the figures mean nothing")


def _write_real(shop: Workshop, files: int) -> str:
    """The table as real Iceberg in the S3; gives the location of its metadata document."""
    folder = shop.folder / "plan"
    folder.mkdir()
    with opened(shop.lake(files)) as ours:
        table = original(ours, PyArrowFileIO(), folder)
    io = PyArrowFileIO(_s3(shop.s3_endpoint))
    location = f"s3://{BUCKET}/iceberg"
    write_manifests(table, io, location)
    return write_metadata(table.metadata, io, location)


def _s3(endpoint: str) -> dict[str, str]:
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": KEY_ID,
        "s3.secret-access-key": SECRET,
        "s3.region": REGION,
    }
