"""Every lake is visited once: no error, no unescaped name, the rows that native DuckLake counts."""

from collections import deque
from urllib.parse import urlsplit

import pytest
from polynya.runtime.namespaces import parsed
from polynya_local.clients.duckdb import LAKE, connect, identifier
from polynya_local.clients.native import attach

from tests.pages.conftest import Page, showing
from tests.pages.markup import Markup
from tests.support.lakes import number_of

pytestmark = pytest.mark.slow(but=["29_", "50_"])  # encrypted; strange names
MOST_PAGES = 40
MOST_OF_A_KIND = 3
"""Pages that differ only in their query."""
ENCRYPTED = {"29"}
LEFT_OUT = ("/doctor", "/static/", "/rows")
"""`doctor`'s own tests visit each table of a lake, test_rows.py the rows."""


@pytest.fixture
def page(lake, lake_name, moto):
    with showing(lake(lake_name), moto) as found:
        yield found


def test_each_page_can_be_visited(page, lake_name):
    if number_of(lake_name) in ENCRYPTED:
        answer = page.get("/")
        assert (answer.status, Markup(answer.text).faults) == (400, [])
        assert "this DuckLake is encrypted" in answer.text
        return
    visited = visit_all(page)
    assert {kind(path) for path in visited} >= {"/", "/changes"}


def visit_all(page: Page) -> list[str]:
    """Follow the links from the list of tables; every page must be there."""
    waiting, seen, kinds = deque(["/"]), {"/"}, {}
    visited = []
    while waiting and len(visited) < MOST_PAGES:
        path = waiting.popleft()
        answer = page.get(path)
        assert answer.status in (200, 303), (path, Markup(answer.text).text)
        found = Markup(answer.text)
        assert found.faults == [], path
        visited.append(path)
        if "format=json" in path:
            answer.json  # noqa: B018
            continue
        for link in found.links:
            assert link.startswith(("/", "#")), (path, link)
            target = link.partition("#")[0]
            of_kind = kinds.setdefault(kind(target), set())
            is_wanted = target and not any(part in target for part in LEFT_OUT)
            if is_wanted and target not in seen and len(of_kind) < MOST_OF_A_KIND:
                of_kind.add(target)
                seen.add(target)
                waiting.append(target)
    return visited


def kind(path: str) -> str:
    return urlsplit(path).path


def test_rows_are_those_of_ducklake(page, lake_name, moto):
    if number_of(lake_name) in ENCRYPTED:
        pytest.skip("the lake is not served")
    lines = page.report("/")["lines"]
    with connect(LAKE, moto) as con:
        attach(con, page.lake)
        for line in lines:
            if line["kind"] == "table":
                levels = ("lake", *parsed(line["namespace"]), line["name"])
                name = ".".join(map(identifier, levels))
                [[rows]] = con.execute(f"SELECT count(*) FROM {name}").fetchall()
                assert line["rows"] == rows, name
