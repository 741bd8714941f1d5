"""Planning by the server, beside planning from the same catalog's manifests, which are cached."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polynya.iceberg.planning.requests import PlanTableScanRequest
from polynya.planning.scans import ScanPlanner
from polynya_local.processes.serving import serving
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import Table as IcebergTable

from .measure import SQL, Cost, Runs, in_turn, once
from .report import Row, Table, kb, ms, ratio
from .support.bridge import Bridge, opened
from .support.lakes import DAY_ONE, NAMESPACE, TABLE
from .support.planners import planned, pyiceberg
from .workshop import Workshop, say

HELP = "planning by the server (POST plan), beside manifests of the same catalog"

TIMES = 5


@dataclass(frozen=True, slots=True)
class Scan:
    """A filter, as PyIceberg has it and as it sends it."""

    name: str
    filter: BooleanExpression
    json: Any


def _equal(column: str, value: object) -> tuple[BooleanExpression, Any]:
    return EqualTo(column, value), {"type": "eq", "term": column, "value": value}


SCANS = (
    Scan("one value of id", *_equal("id", 5)),
    Scan("one day", *_equal("day", DAY_ONE)),
    Scan("all files", AlwaysTrue(), True),
)
"""`id` is no partition column; `day` is one."""


def run(shop: Workshop) -> list[Table]:
    files = shop.files[-1]
    lake = shop.lake(files)
    say(f"planning by the server: {files:,} files ...")
    with serving(lake.database.url, shop.s3_endpoint, delivery="object-lambda") as bridge:
        endpoints = bridge.catalog_uri, bridge.s3_endpoint
        by_server = pyiceberg(*endpoints, **{"scan-planning-mode": "server"})
        first = once(lambda: planned(SCANS[0].filter)(by_server))
        say(
            f"planning by the server: the first plan took {first.wall:.2f} s; now the manifests ..."
        )
        by_client = pyiceberg(*endpoints)
        built = once(lambda: planned(AlwaysTrue())(by_client))
        with opened(lake) as here:
            rows = [_row(scan, by_server, by_client, here) for scan in SCANS]
    return [
        Table(
            f"Planning of {files:,} files by the server (milliseconds)",
            rows,
            (
                f"medians of {TIMES} in alternating runs by PyIceberg, after one that is not",
                "  counted; the table is loaded before; CPU: the client's",
                "manifests: cached by the catalog, not by the client",
                f"nothing cached: the first plan {first.wall:.2f} s, the first scan by manifests"
                f" {built.wall:.1f} s",
                "server: the first answer, in process; CPU without PostgreSQL's; SQL: wall, and",
                "  statements with BEGIN and COMMIT",
            ),
        )
    ]


def _row(scan: Scan, by_server: IcebergTable, by_client: IcebergTable, here: Bridge) -> Row:
    say(f"planning by the server: {scan.name} ...")
    works = [_work(scan, table) for table in (by_server, by_client)]
    found, expected = (work() for work in works)
    if found != expected:
        raise SystemExit(
            f"bench: {found} files by the server, {expected} by manifests: {scan.name}"
        )
    plan, manifests = in_turn(*works, times=TIMES)
    return {
        "scan": scan.name,
        "found": found,
        **_client("plan", plan),
        **_client("manifests", manifests),
        "wall ratio": ratio(manifests.wall, plan.wall),
        "CPU ratio": ratio(manifests.cpu, plan.cpu),
        **_server(scan, here),
    }


def _client(name: str, cost: Cost) -> Row:
    return {f"{name} CPU": ms(cost.cpu), f"{name} wall": ms(cost.wall)}


def _work(scan: Scan, table: IcebergTable) -> Callable[[], int]:
    def work() -> int:
        clear_manifest_cache()
        return planned(scan.filter)(table)

    return work


def _server(scan: Scan, here: Bridge) -> Row:
    planner = ScanPlanner(here.catalog, "")
    request = PlanTableScanRequest(filter=scan.json)

    def answer() -> bytes:
        return json.dumps(planner.plan_table_scan(NAMESPACE, TABLE, request)).encode()

    size = len(answer())
    runs = Runs(sql=SQL)
    for _ in range(TIMES):
        runs.add(answer)
    return {
        "server CPU": ms(runs.cost.cpu),
        "server SQL": ms(runs.wall("sql")),
        "statements": runs.calls("sql"),
        "answer kB": kb(size),
    }
