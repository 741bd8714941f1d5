"""Planning by the server, beside planning from manifests.

Those are of the same catalog, which has them cached, and of the same table as real Iceberg.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polynya.catalog.scans import ScanPlanner
from polynya.rest.planning import PlanTableScanRequest
from polynya_local.clients.native import Lake
from polynya_local.indexes import indexes
from polynya_local.processes.serving import serving
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import Table as IcebergTable

from .measure import SQL, Cost, Runs, measure_in_turn, once
from .report import Row, Table, kb, ms, ratio
from .support.bridge import Bridge, opened
from .support.iceberg import write_real
from .support.lakes import COMMIT, DAY_ONE, NAMESPACE, TABLE, change
from .support.planners import planned, pyiceberg
from .support.static_catalog import static_catalog
from .support.workshop import Workshop, say

HELP = (
    "planning by the server (POST plan), beside manifests of the same catalog and of real Iceberg"
)

TIMES = 5
LARGE = 100_000
"""Of larger tables PyIceberg reads all manifests in minutes: once, and not for all files."""


@dataclass(frozen=True, slots=True)
class Scan:
    """A filter, as PyIceberg has it and as it sends it."""

    name: str
    filter: BooleanExpression
    json: Any
    of_partition: bool = False
    """Whether the partition column is tested."""
    after_commit: bool = False
    """Whether a file is committed to the table before each plan."""


def _equal(column: str, value: object) -> tuple[BooleanExpression, Any]:
    return parse(f"{column} = {value!r}"), {"type": "eq", "term": column, "value": value}


SCANS = (
    Scan("one value of id", *_equal("id", 5)),
    Scan("one day", *_equal("day", DAY_ONE), of_partition=True),
    Scan("all files", AlwaysTrue(), True),
    Scan(
        "one day, after a commit",
        *_equal("day", DAY_ONE),
        of_partition=True,
        after_commit=True,
    ),
)
"""`id` is no partition column; `day` is one."""


def run(shop: Workshop) -> list[Table]:
    return [_table(shop, files) for files in shop.files]


def _table(shop: Workshop, files: int) -> Table:
    lake = shop.lake(files)
    indexes(lake.database.url, create_as=lake.database.url)
    say(f"planning by the server: {files:,} files ...")
    with serving(lake.database.url, shop.s3_endpoint, delivery="object-lambda") as bridge:
        endpoints = bridge.catalog_uri, bridge.s3_endpoint
        by_server = pyiceberg(*endpoints, **{"scan-planning-mode": "server"})
        first = once(lambda: planned(SCANS[0].filter)(by_server))
        say(f"the first plan took {first.wall:.2f} s; now the manifests ...")
        by_client = pyiceberg(*endpoints)
        built = once(lambda: planned(SCANS[0].filter)(by_client))
        say("writing the same table as real Iceberg ...")
        real = write_real(shop, lake, f"iceberg/server-plan-{files}")
        with opened(lake) as here, static_catalog(*real) as catalog_uri:
            tables = by_server, by_client, pyiceberg(catalog_uri, shop.s3_endpoint)
            scans = [scan for scan in SCANS if files <= LARGE or scan.json is not True]
            rows = [
                _row(scan, tables, lake, here, TIMES if files <= LARGE or scan.of_partition else 1)
                for scan in scans
            ]
    return Table(
        f"Planning of {files:,} files by the server (milliseconds)",
        rows,
        (
            f"medians of {TIMES} in alternating runs by PyIceberg, after one that is not counted;",
            f"  one run, with more than {LARGE:,} files, for a column that is no partition",
            "the table is loaded before; CPU: the client's",
            "manifests: cached by the catalog, not by the client",
            "the catalog has the indexes of `polynya indexes`",
            "iceberg: the same entries in as many manifests, in the same S3 (SeaweedFS)",
            f"nothing cached: the first plan {first.wall:.2f} s, the first scan by manifests"
            f" {built.wall:.1f} s",
            "server: the first answer, in process; CPU without PostgreSQL's; SQL: wall, and",
            "  statements with BEGIN and COMMIT",
        ),
    )


def _row(scan: Scan, tables: Sequence[IcebergTable], lake: Lake, here: Bridge, times: int) -> Row:
    say(f"planning by the server: {scan.name} ...")
    works = [_work(scan, table) for table in tables]
    counts = [work() for work in works]
    if len(set(counts)) > 1:
        raise SystemExit(
            f"bench: {counts} files by the server, manifests and real Iceberg: {scan.name}"
        )

    def before() -> None:
        if scan.after_commit:
            change(lake, COMMIT)

    plan, manifests, iceberg = measure_in_turn(*works, times=times, before=before)
    return {
        "scan": scan.name,
        "found": counts[0],
        **_client("plan", plan),
        **_client("manifests", manifests),
        **_client("iceberg", iceberg),
        "manifests ratio": ratio(manifests.wall, plan.wall),
        "iceberg ratio": ratio(iceberg.wall, plan.wall),
        "CPU ratio": ratio(manifests.cpu, plan.cpu),
        **_server(scan, here, before),
    }


def _client(name: str, cost: Cost) -> Row:
    return {f"{name} CPU": ms(cost.cpu), f"{name} wall": ms(cost.wall)}


def _work(scan: Scan, table: IcebergTable) -> Callable[[], int]:
    def work() -> int:
        clear_manifest_cache()
        return planned(scan.filter)(table)

    return work


def _server(scan: Scan, here: Bridge, before: Callable[[], object]) -> Row:
    planner = ScanPlanner(here.catalog, "")
    request = PlanTableScanRequest(filter=scan.json)

    def answer() -> bytes:
        return json.dumps(planner.plan_table_scan((NAMESPACE,), TABLE, request)).encode()

    size = len(answer())
    runs = Runs(sql=SQL)
    for _ in range(TIMES):
        before()
        runs.add(answer)
    return {
        "server CPU": ms(runs.cost.cpu),
        "server SQL": ms(runs.wall("sql")),
        "statements": runs.calls("sql"),
        "answer kB": kb(size),
    }
