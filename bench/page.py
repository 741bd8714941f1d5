"""A page of a large lake: the CPU seconds of the process until its first byte."""

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from unittest.mock import patch

import requests
from polynya_local.clients.native import Lake
from polynya_local.lakes.opened import LocalLake
from polynya_local.page.app import page_app
from polynya_local.page.links import Addresses
from polynya_local.page.state import PageState
from polynya_local.server.uvicorn_server import answering, bound_socket

from .measure import Cost, once
from .report import Row, Table, kb, ms
from .support.bridge import settings
from .support.lakes import NAMESPACE, TABLE, lake_of_tables
from .support.workshop import Workshop, say

HELP = "the pages of a lake of 10,000 tables, and of a table with 10,000 snapshots"

TABLES = 10_000
FILES, SNAPSHOTS = 100_000, 10_000
TIMES = 10
LIMIT = 0.3
"""CPU seconds that a page may take."""

OF_LAKE = (
    "/",
    "/?sort=bytes&page=100",
    "/?search=table_0099",
    "/changes",
)
EVENTS = f"/tables/{NAMESPACE}/{TABLE}"
OF_TABLE = (
    "/",
    "/changes",
    EVENTS,
    f"{EVENTS}?snapshot=5000",
    f"{EVENTS}/files",
    f"{EVENTS}/files?page=2000&sort=size&column=user_id",
    f"{EVENTS}/difference?from=5000&to=9000",
    f"{EVENTS}?scale=steps",
    f"{EVENTS}/iceberg/metadata",
    f"{EVENTS}/read",
    f"{EVENTS}/read?snapshot=5000",
)


def run(shop: Workshop) -> list[Table]:
    say(f"page: a lake of {TABLES:,} tables ...")
    with showing(lake_of_tables(shop.server, shop.s3_endpoint, TABLES), shop.s3_endpoint) as get:
        rows = [_row(f"{TABLES:,} tables", path, get) for path in OF_LAKE]
    say(f"page: a table of {FILES:,} files and {SNAPSHOTS:,} snapshots ...")
    with showing(shop.lake(FILES, SNAPSHOTS), shop.s3_endpoint) as get:
        rows += [_row(f"{FILES:,} files", path, get) for path in OF_TABLE]
    return [
        Table(
            f"Pages of large lakes (milliseconds; {TIMES} times)",
            rows,
            (
                f"CPU: of this process, median; first: nothing is known yet; limit: {LIMIT:.1f} s",
                "wall: with PostgreSQL, which has no indexes besides DuckLake's own",
            ),
        )
    ]


@contextmanager
def showing(lake: Lake, s3_endpoint: str) -> Iterator[Callable[[str], str]]:
    """The body of a page by its path."""
    addresses = Addresses("http://127.0.0.1:8181", s3_endpoint, "lake", "object-lambda", False)
    readable = LocalLake(lake.database.url, lake.metadata_schema, s3_endpoint)
    with (
        patch.dict(os.environ, settings(lake)),
        closing(PageState.create(addresses, readable, os.environ)) as state,
        answering(page_app(state), bound_socket(0)) as uri,
    ):
        yield lambda path: _body(requests.get(uri + path, timeout=60), path)


def _body(answer: requests.Response, path: str) -> str:
    if answer.status_code != 200:
        raise RuntimeError(f"{path}: {answer.status_code}: {answer.text[-500:]}")
    return str(answer.text)


def _row(lake: str, path: str, get: Callable[[str], str]) -> Row:
    first = once(lambda: get(path))
    costs: list[Cost] = [once(lambda: get(path)) for _ in range(TIMES)]
    cpu = statistics.median(cost.cpu for cost in costs)
    return {
        "lake": lake,
        "page": path,
        "body kB": kb(len(get(path))),
        "first CPU": ms(first.cpu),
        "CPU": ms(cpu),
        "of the limit": f"{100 * cpu / LIMIT:.0f} %",
        "wall": ms(statistics.median(cost.wall for cost in costs)),
    }
