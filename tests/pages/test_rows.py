"""Rows, and how to read them, on the page beside the endpoints that it reads through."""

import os
import re
from contextlib import closing, suppress
from dataclasses import replace
from http.client import HTTPConnection

import duckdb
import pytest
from polynya_local.clients import native
from polynya_local.clients.canonical import difference, from_arrow

from docs.generator.reference import REPORTS, faults
from tests.e2e.reading.test_snippets import run_python, run_sql
from tests.pages.chromium import executable
from tests.pages.conftest import Page, report
from tests.pages.markup import Markup

ORDERS = "/tables/shop/orders"
HOSTILE = "/tables/%3Cscript%3Ealert%281%29%3C~2Fscript%3E/a~2Fb%20%26%20%22c%22%20~7E%252F%27"
READY = 60_000
"""Milliseconds, for the first preview."""

needs_browser = pytest.mark.skipif(
    executable() is None, reason="no Chromium: apt-get install chromium, or make setup as root"
)


@pytest.fixture(scope="module")
def judge(page, moto):
    with closing(native.open(page.lake, moto)) as judge:
        yield judge


QUERIES = {
    "profile": "?read=1",
    "sql": "?query=SELECT%20DATE%20'2026-11-20'",
    "difference": "?from=3&to=6",
    "files": "?column=amount",
    "rows": "?column=id&operator=%E2%89%A5&value=2000",
}


@pytest.mark.parametrize("path", REPORTS)
def test_the_json_has_the_fields_that_the_reference_has(page, path):
    """Those of docs/reference/page-json.md."""
    place = path.replace("{namespace}", "shop").replace("{name}", "orders")
    if path.startswith("/views"):
        place = "/views/shop/large"
    if "{manifest}" in path:
        files = report(page, f"{ORDERS}/iceberg")["files"]
        place = place.replace("{manifest}", files["manifests"][0]["path"].rpartition("/")[2])
    answer = report(page, place + QUERIES.get(place.rpartition("/")[2], ""))
    assert list(faults(answer, REPORTS[path])) == []


PATHS = [
    f"{ORDERS}/rows",
    f"{ORDERS}/rows?snapshot=3&column=amount&operator=%3E%3D&value=10",
    f"{HOSTILE}/rows",
    f"{ORDERS}/read",
    f"{ORDERS}/read?snapshot=3",
    f"{HOSTILE}/read",
    "/tables/shop/intervals/rows",
    "/tables/shop/intervals/read",
]


@pytest.mark.parametrize("path", PATHS)
def test_each_page_is_there_and_safe(page, path):
    assert report(page, path)["head"]
    answer = page.get(path)
    assert (answer.status, Markup(answer.text).faults) == (200, [])


def test_the_page_says_that_both_have_the_same_rows(page, judge):
    [[rows]] = judge.query("SELECT count(*) FROM lake.shop.orders")
    found = report(page, f"{ORDERS}/rows")
    assert (found["agree"], found["answer"]["native"]["rows"]) == (True, rows)
    assert f"Both have the same {rows} rows" in Markup(page.get(f"{ORDERS}/rows").text).text


def test_a_snapshot_and_a_filter_are_those_of_ducklake(page, judge):
    query = (
        "snapshot=3&column=amount&operator=%3C&value=15&column2=id&operator2=%E2%89%A5&value2=1005"
    )
    [[rows]] = judge.query(
        "SELECT count(*) FILTER (WHERE amount < 15 AND id >= 1005) "
        "FROM lake.shop.orders AT (VERSION => 3)"
    )
    found = report(page, f"{ORDERS}/rows?{query}")
    assert (found["agree"], found["answer"]["iceberg"]["rows"]) == (True, rows)
    assert found["answer"]["planned"]["files"] <= found["files"]


REFUSED = [
    ("rows?column=nothing&operator=%3D&value=1", 400, "there is no column nothing"),
    ("rows?column=id&operator=LIKE&value=1", 400, "is not an operator of a filter"),
    ("rows?column=id&operator=%3D&value=x", 400, "is not a whole number"),
    ("rows?sort=nothing", 400, "there is no column nothing to sort by"),
    ("rows?first=-1", 400, "This address is not understood: first"),
    ("rows?download=xlsx", 400, "This address is not understood: download"),
    ("rows?column=id&operator=%3D", 400, "is not a whole number"),
    ("rows?column=id&operator=%3D&value=" + "9" * 40, 400, "is not one"),
    ("rows?snapshot=99999", 404, "99999"),
    ("read?snapshot=99999", 404, "99999"),
    ("rows?column=id&operator=%3D&value=" + "9" * 60_000, 400, "has 60,000 characters"),
]


@pytest.mark.parametrize(("path", "status", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_answered_gets_a_sentence(page, path, status, words):
    for _ in range(100):
        answer = page.get(f"{ORDERS}/{path}")
        if "loads itself again" not in answer.text:
            break
    assert answer.status == status and words in Markup(answer.text).text
    assert Markup(answer.text).faults == []


def waited(page: Page, path: str):
    """The answer to a path, when it is no page that loads itself again."""
    for _ in range(100):
        answer = page.get(path)
        if "loads itself again" not in answer.text:
            return answer
    raise TimeoutError(path)


def test_a_bad_value_keeps_the_form(page):
    query = "column=id&operator=%3C&value=%22%3E1x&column2=customer&operator2=%3D&value2=c1"
    text = waited(page, f"{ORDERS}/rows?{query}").text
    assert Markup(text).faults == []
    assert 'value="&#34;&gt;1x"' in text and 'value="c1"' in text
    assert text.count(" selected>customer (varchar)") == 1
    assert "a whole number: 42" in text
    text = waited(page, f"{ORDERS}/rows?column=day&operator=%3D&value=2026-02-30").text
    assert 'value="2026-02-30"' in text and "2026-02-30 is not one" in text


def test_the_help_of_a_filter_names_values_and_dates(page, judge):
    choices = {one["name"]: one for one in report(page, f"{ORDERS}/rows")["choices"]}
    [ends] = judge.query("SELECT min(day)::VARCHAR, max(day)::VARCHAR FROM lake.shop.orders")
    assert (choices["day"]["least"], choices["day"]["greatest"]) == ends
    assert choices["day"]["written"] == "2026-11-20"
    text = waited(page, f"{ORDERS}/rows").text
    assert "2026-11-03" in text.partition("Such as")[2].partition("</table>")[0]


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_rows_are_sorted_and_paged(page, judge, order):
    direction = "DESC" if order == "descending" else "ASC"
    expected = judge.query(f"SELECT id::VARCHAR FROM lake.shop.orders ORDER BY id {direction}")
    ids, path = [], f"{ORDERS}/rows?sort=id&order={order}&first="
    while len(ids) < len(expected):
        found = report(page, f"{path}{len(ids)}")["answer"]["rows"]
        place = found["columns"].index("id")
        ids += [row[place]["text"] for row in found["rows"]]
        assert found["has_more"] == (len(ids) < len(expected))
    assert ids == [row[0] for row in expected]


def test_a_sort_is_no_sql(page):
    path = f"{ORDERS}/rows?sort=id%22%3B%20DROP%20TABLE%20t"
    assert "there is no column" in waited(page, path).text


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_rows_are_downloaded_as_a_file(page, judge, format, tmp_path):
    path = f"{ORDERS}/rows?column=id&operator=%3C&value=3000&sort=id&download={format}"
    for _ in range(100):
        host, _, port = page.uri.removeprefix("http://").partition(":")
        with closing(HTTPConnection(host, int(port), timeout=120)) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            body, headers = response.read(), response.headers
        if b"loads itself again" not in body:
            break
    name = f"shop.orders-{report(page, ORDERS)['head']['snapshot']['snapshot_id']}.{format}"
    assert headers["Content-Disposition"] == f'attachment; filename="{name}"'
    (tmp_path / name).write_bytes(body)
    with duckdb.connect() as con:
        columns = "id, day, customer, amount, priority"
        rows = con.execute(f"SELECT {columns} FROM '{tmp_path / name}'").fetchall()
    assert rows == judge.query(
        f"SELECT {columns} FROM lake.shop.orders WHERE id < 3000 ORDER BY id"
    )


def test_a_file_that_would_be_too_large_is_refused_whole(page, monkeypatch):
    limits = page.state.reader.limits
    monkeypatch.setattr(page.state.reader, "limits", replace(limits, download_rows=5))
    answer = waited(page, f"{ORDERS}/rows?download=csv&sort=day")
    assert answer.status == 400 and "more than 5 rows" in answer.text


def test_the_rows_that_changed_agree_with_iceberg_s_entries(page):
    path = f"{ORDERS}/difference?from=3&to=7"
    while (found := page.report(path))["rows"] is None:
        pass
    assert (found["agree"], found["rows"]["notes"]) == (True, {})
    text = Markup(page.get(path).text).text
    assert "Iceberg clients get the same" in text and "updated" in text


def test_longer_filters_are_refused_by_the_server_and_the_page_goes_on(page):
    filter = f"{ORDERS}/rows?column=id&operator=%3D&value="
    assert page.get(filter + "9" * 100_000).status == 400
    with suppress(ConnectionError):  # the server does not wait for the rest
        assert page.get(filter + "9" * 10_000_000).status == 400
    assert page.get("/").status == 200


@pytest.fixture(scope="module")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium, page):
    """A window of the browser, in which the page logs no error."""
    context = chromium.new_context(base_url=page.uri, viewport={"width": 390, "height": 800})
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=page.uri)
    tab, said = context.new_page(), []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    yield tab
    context.close()
    assert said == []


def check_axe(tab) -> None:
    axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe_module.Axe().run(tab).response["violations"]
    assert [one for one in found if one["impact"] in ("serious", "critical")] == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390


@needs_browser
def test_a_filter_in_the_browser(tab, judge):
    from playwright.sync_api import expect

    tab.goto(ORDERS)
    tab.get_by_role("link", name="Rows", exact=True).click()
    tab.get_by_role("button", name="Filter").wait_for(timeout=READY)
    tab.get_by_label("Where").select_option("id")
    tab.get_by_label("Operator of condition 1").select_option("≤")
    tab.get_by_label("Value of condition 1").fill("1007")
    tab.get_by_role("button", name="Filter").click()
    tab.get_by_text("for this filter").wait_for(timeout=READY)
    [[rows]] = judge.query("SELECT count(*) FROM lake.shop.orders WHERE id <= 1007")
    expect(tab.get_by_role("status")).to_contain_text(f"{rows} row")
    expect(tab.get_by_role("region", name="Rows").get_by_role("row")).to_have_count(rows + 1)
    check_axe(tab)
    tab.get_by_role("link", name="No filter").click()
    expect(tab).not_to_have_url(re.compile("column"))


@pytest.mark.slow
@needs_browser
def test_sql_and_a_profile_in_the_browser(tab, judge):
    from playwright.sync_api import expect

    tab.goto("/")
    tab.get_by_role("link", name="SQL", exact=True).click()
    tab.get_by_role("link", name="shop.orders").click()
    rows = tab.get_by_role("region", name="Rows").get_by_role("row")
    expect(rows).to_have_count(101, timeout=READY)
    tab.get_by_label("One SELECT").fill("SELECT count(*) AS n FROM shop.orders")
    tab.get_by_role("button", name="Run").click()
    [[count]] = judge.query("SELECT count(*) FROM lake.shop.orders")
    expect(rows.nth(1)).to_have_text(str(count), timeout=READY)
    check_axe(tab)
    with tab.expect_download() as download:
        tab.get_by_role("link", name="CSV").click()
    assert download.value.path().read_text().split() == ["n", str(count)]
    tab.goto(f"{ORDERS}/profile")
    tab.get_by_role("link", name="Read all rows").click()
    tab.get_by_text(f"All {count} rows were read").wait_for(timeout=READY)
    expect(tab.locator("svg.histogram").first).to_be_visible()
    check_axe(tab)


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("path", [ORDERS, pytest.param(HOSTILE, marks=pytest.mark.slow)])
def test_a_snippet_is_copied_with_one_click_and_reads_the_table(tab, page, judge, path):
    tab.goto(path)
    tab.get_by_role("link", name="How to read it").click()
    wanted = report(page, f"{path}/read")["head"]
    at = (wanted["namespace"], wanted["name"])
    for client, run in (("DuckDB", run_sql), ("PyIceberg", run_python)):
        tab.get_by_role("link", name=client, exact=True).click()
        tab.get_by_role("button", name=f"Copy the text for {client}").click()
        text = tab.evaluate("navigator.clipboard.readText()")
        hidden = wanted["status"]["hidden"]
        expected = judge.canonical(*at, hidden=hidden)
        assert difference(expected, from_arrow(run(text), judge.columns(*at), hidden)) == []
    check_axe(tab)


@needs_browser
def test_a_snippet_of_the_past_reads_the_past(tab, judge):
    tab.goto(f"{ORDERS}/read?snapshot=3")
    text = tab.locator("code[id=text-1-1]").inner_text()
    assert re.search(r"AT \(VERSION => \d+\)", text)
    [[rows]] = judge.query("SELECT count(*) FROM lake.shop.orders AT (VERSION => 3)")
    assert run_sql(text).num_rows == rows


def test_a_profile_is_that_of_all_rows(page, judge):
    """The statistics of the table, and SUMMARIZE of native DuckLake."""
    path = f"{ORDERS}/profile"
    choices = {choice["name"]: choice for choice in report(page, path)["choices"]}
    answer = report(page, f"{path}?read=1")["answer"]
    summary = judge.query(
        "SELECT column_name, min, max, count FROM (SUMMARIZE FROM lake.shop.orders) "
        "WHERE column_name <> 'took'"
    )
    assert {(c["name"], c["least"], c["greatest"]) for c in answer["columns"]} == {
        row[:3] for row in summary
    }
    assert {answer["rows"]} == {row[3] for row in summary}
    columns = {column["name"]: column for column in answer["columns"]}
    assert (choices["id"]["may_be_null"], columns["id"]["nulls"]) == (False, 0)
    assert choices["priority"]["may_be_null"] is None  # older rows have its default
    assert [[columns["customer"]["distinct"], columns["customer"]["is_estimated"]]] == [
        [*judge.query("SELECT count(DISTINCT customer) FROM lake.shop.orders")[0], False]
    ]
    assert sum(columns["amount"]["bins"]) == answer["rows"]
    assert {of["value"]: of["rows"] for of in columns["customer"]["values"]} == dict(
        judge.query("SELECT customer, count(*) FROM lake.shop.orders GROUP BY ALL")
    )
    shown = page.get(f"{path}?read=1")
    assert Markup(shown.text).faults == [] and 'class="histogram"' in shown.text
