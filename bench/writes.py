"""Commits of clients, beside Iceberg's own REST catalog, and by the size of the table."""

import statistics
from collections.abc import Sequence

from polynya_local.clients.spark_jars import why_not
from polynya_local.indexes import indexes

from .measure import Cost, measure_in_turn, median, once
from .report import Row, Table, ms, ratio
from .support.iceberg import write_real
from .support.lakes import NAMESPACE, TABLE
from .support.relay import relay
from .support.workshop import FEW, Workshop, say
from .support.writing import by_key, many_added, own_tables
from .support.writing.fixture import iceberg_fixture
from .support.writing.writable import Commit, Served, served
from .support.writing.writers import Writer, open_pyiceberg, pyiceberg, spark_writer

HELP = (
    "an append and a deleted row, beside Iceberg's REST fixture; at any size; many files at once; "
    "keys that are deleted, beside Spark's MERGE; many clients, beside native DuckLake"
)

TIMES = 7
SNAPSHOTS = 10_000
"""Of the largest table."""

S3_SECONDS = 0.02
"""What S3 takes for a small object, within its region."""


def run(shop: Workshop) -> list[Table]:
    with relay(shop.s3_endpoint, delay=S3_SECONDS) as distant:
        return [
            _compare_with_fixture(shop, shop.s3_endpoint, "near", "in the same machine"),
            _compare_with_fixture(shop, distant, "far", f"{1000 * S3_SECONDS:.0f} ms away"),
            _measure_sizes(shop),
            many_added.table(shop),
            by_key.table(shop),
            own_tables.table(shop, shop.s3_endpoint, "in the same machine"),
            own_tables.table(shop, distant, f"{1000 * S3_SECONDS:.0f} ms away"),
        ]


def _compare_with_fixture(shop: Workshop, endpoint: str, name: str, where: str) -> Table:
    """Args: `where`: how far S3 is from the client and from both servers."""
    say(f"writes: beside Iceberg's REST fixture, with S3 {where} ...")
    lake = shop.lake(FEW, FEW)
    openers = [pyiceberg] if why_not() else [pyiceberg, spark_writer]
    rows: list[Row] = []
    with served(lake, endpoint) as ours, iceberg_fixture(endpoint, shop.folder) as fixture:
        for opener in openers:
            table = f"{opener.__name__}_{name}"
            rows += _compared(
                ours, opener(ours.uri, endpoint, table), opener(fixture, endpoint, table)
            )
    return Table(
        f"A client's commit, with S3 {where} (milliseconds)",
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


def _measured(commits: Sequence[Commit]) -> Row:
    """The medians of what the function did."""
    return {
        "server CPU": ms(statistics.median(one.cost.cpu for one in commits)),
        "server wall": ms(statistics.median(one.cost.wall for one in commits)),
        "statements": max(one.statements for one in commits),
        "waits": max(one.waits for one in commits),
    }


def _measure_sizes(shop: Workshop) -> Table:
    sizes = [(FEW, FEW), *((files, SNAPSHOTS) for files in shop.files)]
    with iceberg_fixture(shop.s3_endpoint, shop.folder) as fixture:
        measured = [_measure_size(shop, fixture, *size) for size in sizes]
    ours, theirs, server = measured[0]
    rows: list[Row] = []
    for (files, snapshots), (mine, other, on_server) in zip(sizes, measured, strict=True):
        rows.append(
            {
                "files": files,
                "snapshots": snapshots,
                "polynya wall": ms(mine.wall),
                "of the first": ratio(mine.wall, ours.wall),
                **on_server,
                "server of the first": ratio(on_server["server wall"], server["server wall"]),
                "iceberg wall": ms(other.wall),
                "iceberg of the first": ratio(other.wall, theirs.wall),
                "wall ratio": ratio(mine.wall, other.wall),
            }
        )
    return Table(
        "PyIceberg appends a file to tables of several sizes (milliseconds)",
        rows,
        (
            f"medians of {TIMES} runs that alternate",
            "the catalog has the indexes of `polynya indexes`",
            f"of the first: of the table with {FEW} files in {FEW} snapshots",
            "iceberg: RESTCatalogServer with the same table as real Iceberg, in as many manifests,",
            "  and with the snapshots that Polynya lists by default",
        ),
    )


def _measure_size(
    shop: Workshop, fixture: str, files: int, snapshots: int
) -> tuple[Cost, Cost, Row]:
    """The client's cost here and there, and what the function did."""
    lake, endpoint = shop.lake(files, snapshots), shop.s3_endpoint
    name = f"of_{files}"
    indexes(lake.database.url, create_as=lake.database.url)
    document, _ = write_real(shop, lake, f"iceberg/{name}")
    say(f"writes: {files:,} files, {snapshots:,} snapshots ...")
    open_pyiceberg(fixture, endpoint).register_table((NAMESPACE, name), document)
    with served(lake, endpoint) as ours:
        writers = [
            pyiceberg(uri, endpoint, table, creates=False)
            for uri, table in ((ours.uri, TABLE), (fixture, name))
        ]
        mine, theirs = measure_in_turn(
            *(next(iter(one.steps.values())) for one in writers), times=TIMES
        )
        return mine, theirs, _measured(ours.commits[1:])
