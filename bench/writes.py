"""Commits of clients, beside Iceberg's own REST catalog, and by the size of the table."""

import statistics
from collections.abc import Sequence

from polynya_local.clients.spark_jars import why_not

from . import many_added
from .measure import Cost, median, once
from .report import Row, Table, ms, ratio
from .support.fixture import iceberg_fixture
from .support.lakes import TABLE, put_day_one
from .support.writable import Served, served
from .support.writers import Writer, in_spark, pyiceberg
from .workshop import FEW, Workshop, say

HELP = "an append and a deleted row, beside Iceberg's REST fixture; at any size; many files at once"

TIMES = 7
SNAPSHOTS = 10_000
"""Of the largest table."""


def run(shop: Workshop) -> list[Table]:
    return [_beside_the_fixture(shop), _by_size(shop), many_added.table(shop)]


def _beside_the_fixture(shop: Workshop) -> Table:
    say("writes: beside Iceberg's REST fixture ...")
    lake = shop.lake(FEW, FEW)
    endpoint = shop.s3_endpoint
    openers = [pyiceberg] if why_not() else [pyiceberg, in_spark]
    rows: list[Row] = []
    with served(lake, endpoint) as ours, iceberg_fixture(endpoint, shop.folder) as fixture:
        for number, opener in enumerate(openers):
            table = f"written_{number}"
            rows += _compared(
                ours, opener(ours.uri, endpoint, table), opener(fixture, endpoint, table)
            )
    return Table(
        "A client's commit (milliseconds)",
        rows,
        (
            f"wall: the client's whole operation, median of {TIMES} runs that alternate",
            "iceberg: RESTCatalogServer of its test fixtures, SQLite, metadata in the same S3",
            "server CPU: of the commit, without PostgreSQL and S3; waits: for PostgreSQL",
        ),
    )


def _compared(ours: Served, writer: Writer, other: Writer) -> list[Row]:
    costs: dict[tuple[str, str], list[Cost]] = {}
    ours.commits.clear()
    for number in range(-1, TIMES):
        for name, one in (("ours", writer), ("theirs", other)):
            for step, work in one.steps.items():
                cost = once(work)
                if number >= 0:  # the first run is not counted
                    costs.setdefault((step, name), []).append(cost)
    rows: list[Row] = []
    for place, step in enumerate(writer.steps):
        mine, theirs = (median(costs[step, name]).wall for name in ("ours", "theirs"))
        commits = ours.commits[place :: len(writer.steps)]
        rows.append(
            {
                "client": writer.client,
                "step": step,
                "polynya wall": ms(mine),
                "iceberg wall": ms(theirs),
                "wall ratio": ratio(mine, theirs),
                **_measured(commits[1:]),
            }
        )
    return rows


def _measured(commits: Sequence) -> Row:
    """The medians of what the function did."""
    return {
        "server CPU": ms(statistics.median(one.cost.cpu for one in commits)),
        "server wall": ms(statistics.median(one.cost.wall for one in commits)),
        "statements": max(one.statements for one in commits),
        "waits": max(one.waits for one in commits),
    }


def _by_size(shop: Workshop) -> Table:
    sizes = [(FEW, FEW), *((files, SNAPSHOTS) for files in shop.files)]
    measured = [_of_size(shop, *size) for size in sizes]
    first = measured[0]
    rows: list[Row] = []
    for (files, snapshots), steps in zip(sizes, measured, strict=True):
        for step, (cost, on_server) in steps.items():
            rows.append(
                {
                    "files": files,
                    "snapshots": snapshots,
                    "step": step,
                    "wall": ms(cost.wall),
                    "wall of the first": ratio(cost.wall, first[step][0].wall),
                    **on_server,
                    "server wall of the first": ratio(
                        on_server["server wall"], first[step][1]["server wall"]
                    ),
                }
            )
    return Table(
        "A commit of PyIceberg by the size of the table (milliseconds)",
        rows,
        (f"medians of {TIMES}; of the first: of the table with {FEW} files in {FEW} snapshots",),
    )


def _of_size(shop: Workshop, files: int, snapshots: int) -> dict[str, tuple[Cost, Row]]:
    """By step: the client's cost, and what the function did."""
    lake = shop.lake(files, snapshots)
    put_day_one(lake, shop.s3_endpoint)
    say(f"writes: {files:,} files, {snapshots:,} snapshots ...")
    with served(lake, shop.s3_endpoint) as ours:
        writer = pyiceberg(ours.uri, shop.s3_endpoint, TABLE, creates=False)
        runs = []
        for _ in range(TIMES + 1):
            runs.append([once(work) for work in writer.steps.values()])
        commits, number = ours.commits, len(writer.steps)
        return {
            step: (
                median([run[place] for run in runs[1:]]),
                _measured(commits[place::number][1:]),
            )
            for place, step in enumerate(writer.steps)
        }
