"""One loadTable: Polynya makes the answer, real Iceberg reads the document that a writer left."""

import json

from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from .bridge import Bridge, opened
from .iceberg import Original, write_metadata
from .lakes import NAMESPACE, TABLE
from .measure import SQL, WAITS, cost, watching
from .report import Row, Table, kb, ms, ratio
from .workshop import FEW, MANY, Workshop, say

HELP = "one loadTable in process, beside PyIceberg reading the same table's metadata.json"


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
            "loadTable (milliseconds; medians of 5)",
            rows,
            (
                "polynya: Catalog.load_table and the body as JSON, in process, connection open",
                "iceberg: StaticTable.from_metadata of the real metadata.json in a local folder",
                "statements: BEGIN and COMMIT included; waits: times it waits for PostgreSQL",
            ),
        )
    ]


def _rows(shop: Workshop, bridge: Bridge, case: Row) -> list[Row]:
    io = PyArrowFileIO()
    folder = shop.folder / f"load-{case['files']}-{case['snapshots']}"
    folder.mkdir()
    document = write_metadata(_without_entries(bridge), io, str(folder))
    theirs = cost(lambda: StaticTable.from_metadata(document))
    rows = []
    for answer in ("all", "refs"):
        body = _body(bridge, answer)
        ours = cost(lambda answer=answer: _body(bridge, answer))
        with watching(sql=SQL, waits=WAITS) as seen:
            _body(bridge, answer)
        rows.append(
            {
                **case,
                "answer": answer,
                "statements": seen.calls["sql"],
                "waits": seen.calls["waits"],
                "body kB": kb(len(body)),
                "polynya CPU": ms(ours.cpu),
                "of it SQL": ms(seen.cpu["sql"]),
                "wall": ms(ours.wall),
                "SQL wall": ms(seen.wall["sql"]),
                "iceberg kB": kb(len(io.new_input(document))),
                "iceberg CPU": ms(theirs.cpu),
                "iceberg wall": ms(theirs.wall),
                "CPU ratio": ratio(ours.cpu, theirs.cpu),
                "wall ratio": ratio(ours.wall, theirs.wall),
            }
        )
    return rows


def _body(bridge: Bridge, snapshots: str) -> bytes:
    body = bridge.catalog.load_table(NAMESPACE, TABLE, snapshots).body
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _without_entries(bridge: Bridge) -> Original:
    from pyiceberg.table.metadata import TableMetadataUtil

    return Original(TableMetadataUtil.parse_obj(bridge.document()), [])
