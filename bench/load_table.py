"""One loadTable at the handler: warm, whole and `snapshots=refs`, and with nothing changed."""

import base64
import statistics
from collections.abc import Callable
from functools import partial

from polynya_local.clients.native import Lake
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table import StaticTable

from .measure import SQL, WAITS, Cost, cost, once, watching
from .report import Row, Table, kb, ms, ratio
from .support.bridge import Answer, Ask, handling, opened
from .support.iceberg import served_metadata, write_metadata
from .support.lakes import NAMESPACE, TABLE
from .support.workshop import FEW, MANY, Workshop, say

HELP = "one loadTable at the handler, beside PyIceberg reading the same table's metadata.json"

TIMES = 100
SNAPSHOTS = (FEW, MANY, 10_000)
OTHERS = 1000
"""One of this many snapshots of the lake touches the table."""

GZIP = {"accept-encoding": "gzip"}


def run(shop: Workshop) -> list[Table]:
    cases = [(files, snapshots, 1) for files in shop.files for snapshots in SNAPSHOTS]
    cases.append((shop.files[0], MANY, OTHERS))
    rows = []
    for files, snapshots, every in cases:
        lake = shop.lake(files, snapshots, every)
        in_lake = snapshots * every
        say(f"loadTable: {files:,} files, {snapshots:,} of {in_lake:,} snapshots ...")
        theirs = _real(shop, lake)
        with handling(lake) as ask:
            case = {"files": files, "snapshots": snapshots, "of the lake's": in_lake}
            rows += _rows(ask, case, theirs)
    return [
        Table(
            f"loadTable (milliseconds; {TIMES} times)",
            rows,
            (
                "polynya: the handler of the REST function in process, warm; body: gzip, as sent",
                "iceberg: StaticTable.from_metadata of the real metadata.json in a local folder;",
                "  not the same work: it reads a document that a writer has prepared",
                "statements: BEGIN and COMMIT included; waits: times it waits for PostgreSQL",
            ),
        )
    ]


def _real(shop: Workshop, lake: Lake) -> Cost:
    folder = shop.folder / f"load-{lake.data_path.rpartition('/')[2]}"
    folder.mkdir()
    with opened(lake) as bridge:
        document = write_metadata(served_metadata(bridge), PyArrowFileIO(), str(folder))
    return cost(lambda: StaticTable.from_metadata(document))


def _rows(ask: Ask, case: Row, theirs: Cost) -> list[Row]:
    whole = ask("", **GZIP)
    questions = {
        "all": partial(ask, "", **GZIP),
        "refs": partial(ask, "snapshots=refs", **GZIP),
        "304": partial(ask, "", **GZIP, **{"if-none-match": whole["headers"]["etag"]}),
    }
    return [_row(case, answer, question, theirs) for answer, question in questions.items()]


def _row(case: Row, answer: str, question: Callable[[], Answer], theirs: Cost) -> Row:
    with watching(sql=SQL, waits=WAITS) as seen:
        body = _body(question(), 304 if answer == "304" else 200)
    costs = [once(question) for _ in range(TIMES)]
    walls = sorted(cost.wall for cost in costs)
    return {
        **case,
        "answer": answer,
        "statements": seen.calls["sql"],
        "waits": seen.calls["waits"],
        "body kB": kb(len(body)),
        "CPU": ms(statistics.median(cost.cpu for cost in costs)),
        "p50": ms(statistics.median(walls)),
        "p99": ms(walls[TIMES * 99 // 100 - 1]),
        "iceberg CPU": ms(theirs.cpu),
        "CPU ratio": ratio(statistics.median(cost.cpu for cost in costs), theirs.cpu),
    }


def _body(answer: Answer, status: int) -> bytes:
    if answer["statusCode"] != status:
        raise RuntimeError(f"{NAMESPACE}.{TABLE}: {answer['statusCode']}, not {status}")
    body = answer.get("body") or ""
    return base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
