"""Cost until one commit is visible: the files that are generated again, at any history length."""

from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach

from .measure import SQL, Cost, once, watching
from .report import Row, Table, kb, ms
from .support.bridge import Bridge, opened
from .support.lakes import COMMIT, MERGE, NAMESPACE, TABLE, change, put_day_one
from .support.workshop import FEW, MANY, Workshop, say

HELP = "a commit of one file, a delete and a merge until they are visible, beside the first build"

SNAPSHOTS = (FEW, MANY, 10_000)
COMMITS = 5


def run(shop: Workshop) -> list[Table]:
    rows = []
    for files in shop.files:
        for snapshots in SNAPSHOTS:
            lake = shop.lake(files, snapshots)
            put_day_one(lake, shop.s3_endpoint)
            say(f"commit: {files:,} files, {snapshots:,} snapshots ...")
            with opened(lake) as bridge:
                rows += _rows(bridge, lake, shop, {"files": files, "snapshots": snapshots})
    return [
        Table(
            "A commit until it is visible (milliseconds)",
            rows,
            (
                "loadTable with snapshots=refs, the manifest list, and all generated files",
                f"first: nothing cached; commit: one more data file, median of {COMMITS};",
                "  delete: of a row of the oldest file, by DuckDB; merge: of the newest ten files",
                "made kB: what was generated and cached",
            ),
        )
    ]


def _rows(bridge: Bridge, lake: Lake, shop: Workshop, case: Row) -> list[Row]:
    first, first_bytes, statements = _seen(bridge)
    rows = [_row(case, "first", first, first_bytes, first_bytes, first, statements)]
    costs, sizes = [], []
    for _ in range(COMMITS):
        change(lake, COMMIT)
        cost, size, statements = _seen(bridge)
        costs.append(cost)
        sizes.append(size)
    middle = sorted(costs, key=lambda cost: cost.wall)[COMMITS // 2]
    size = sorted(sizes)[COMMITS // 2]
    rows.append(_row(case, "commit", middle, size, first_bytes, first, statements))
    _delete(lake, shop.s3_endpoint)
    delete, size, statements = _seen(bridge)
    rows.append(_row(case, "delete", delete, size, first_bytes, first, statements))
    change(lake, MERGE)
    merge, size, statements = _seen(bridge)
    rows.append(_row(case, "merge", merge, size, first_bytes, first, statements))
    return rows


def _delete(lake: Lake, s3_endpoint: str) -> None:
    with connect(LAKE, s3_endpoint) as con:
        attach(con, lake, read_only=False)
        con.execute(f"DELETE FROM lake.{NAMESPACE}.{TABLE} WHERE id = 5")


def _row(
    case: Row, what: str, cost: Cost, size: int, first: int, first_cost: Cost, statements: int
) -> Row:
    return {
        **case,
        "what": what,
        "CPU": ms(cost.cpu),
        "wall": ms(cost.wall),
        "statements": statements,
        "made kB": kb(size),
        "of the first": f"{size / first:.1%}",
        "wall of the first": f"{cost.wall / first_cost.wall:.1%}",
    }


def _seen(bridge: Bridge) -> tuple[Cost, int, int]:
    """Read until the newest state is seen; return the cost, the bytes made, the statements."""
    before = bridge.kept.bytes_made
    with watching(sql=SQL) as seen:
        cost = once(lambda: bridge.read(bridge.newest_list()))
    return cost, bridge.kept.bytes_made - before, seen.calls["sql"]
