"""One loadTable: Polynya makes the answer, real Iceberg reads the document that a writer left."""

import json
from functools import partial

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from .bridge import Bridge, opened
from .iceberg import served_metadata, write_metadata
from .lakes import NAMESPACE, TABLE
from .measure import SQL, WAITS, Runs, cost
from .report import Row, Table, kb, ms, ratio
from .workshop import FEW, MANY, Workshop, say

HELP = "one loadTable in process, beside PyIceberg reading the same table's metadata.json"

TIMES = 5


def run(shop: Workshop) -> list[Table]:
    rows = []
    for files in shop.files:
        for snapshots in (FEW, MANY):
            lake = shop.lake(files, snapshots)
            say(f"loadTable: {files:,} files, {snapshots:,} snapshots ...")
            with opened(lake) as bridge:
                rows += _rows(shop, bridge, {"files": files, "snapshots": snapshots})
    return [
        Table(
            f"loadTable (milliseconds; medians of {TIMES})",
            rows,
            (
                "polynya: Catalog.load_table and the body as JSON, in process, connection open",
                "iceberg: StaticTable.from_metadata of the real metadata.json in a local folder;",
                "  not the same work: it reads what a writer has put together before",
                "statements: BEGIN and COMMIT included; waits: times it waits for PostgreSQL",
            ),
        )
    ]


def _rows(shop: Workshop, bridge: Bridge, case: Row) -> list[Row]:
    io = PyArrowFileIO()
    folder = shop.folder / f"load-{case['files']}-{case['snapshots']}"
    folder.mkdir()
    document = write_metadata(served_metadata(bridge), io, str(folder))
    theirs = cost(lambda: StaticTable.from_metadata(document), TIMES)
    rows = []
    for answer in ("all", "refs"):
        size = len(_body(bridge, answer))
        ours = Runs(sql=SQL, waits=WAITS)
        for _ in range(TIMES):
            ours.add(partial(_body, bridge, answer))
        rows.append(
            {
                **case,
                "answer": answer,
                "statements": ours.calls("sql"),
                "waits": ours.calls("waits"),
                "body kB": kb(size),
                "polynya CPU": ms(ours.cost.cpu),
                "SQL CPU": ms(ours.cpu("sql")),
                "polynya wall": ms(ours.cost.wall),
                "SQL wall": ms(ours.wall("sql")),
                "iceberg kB": kb(len(io.new_input(document))),
                "iceberg CPU": ms(theirs.cpu),
                "iceberg wall": ms(theirs.wall),
                "CPU ratio": ratio(ours.cost.cpu, theirs.cpu),
                "wall ratio": ratio(ours.cost.wall, theirs.wall),
            }
        )
    return rows


def _body(bridge: Bridge, snapshots: str) -> bytes:
    body = bridge.catalog.load_table(NAMESPACE, TABLE, snapshots).body
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
