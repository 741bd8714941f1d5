"""The page in a real browser: an owner's ways through it, keyboard, phone, dark mode, axe."""

import os
import re

import pytest

from tests.pages.chromium import executable
from tests.pages.conftest import Page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
# A click does not wait for the page that it leads to: what is expected of that one is waited for.
expect = sync_api.expect
axe_module = pytest.importorskip("axe_playwright_python.sync_playwright")
pytestmark = pytest.mark.skipif(
    executable() is None, reason="no Chromium: apt-get install chromium, or make setup as root"
)

ORDERS = "/tables/shop/orders"
PHONE = {"width": 390, "height": 800}
DESK = {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def chromium():
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def tab(chromium, owner: Page):
    """A window of the browser; the page may log no error, and load nothing from elsewhere."""
    context = chromium.new_context(base_url=owner.uri, viewport=DESK)
    tab = context.new_page()
    said, asked = [], []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("dialog", lambda dialog: said.append(f"a dialog: {dialog.message}"))
    tab.on("request", lambda request: asked.append(request.url))
    yield tab
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith((owner.uri, "data:"))] == []


def test_from_the_lake_to_a_table_and_back_in_time(tab):
    tab.goto("/")
    assert tab.inner_text("h1") == "shop.ducklake"
    tab.get_by_role("searchbox", name="Find").fill("orders")
    tab.get_by_role("button", name="Find").click()
    tab.get_by_role("link", name="shop.orders").first.click()
    newest = int(tab.locator("dt:text-is('Rows') + dd").inner_text().split()[0])
    tab.get_by_label("As of", exact=True).fill("3")
    tab.get_by_role("button", name="Go").click()
    expect(tab).to_have_url(re.compile(re.escape(f"{ORDERS}?snapshot=3") + "$"))
    expect(tab.get_by_role("note")).to_contain_text("as it was at snapshot 3")
    assert int(tab.locator("dt:text-is('Rows') + dd").inner_text().split()[0]) < newest
    tab.get_by_role("link", name="Files", exact=True).click()
    expect(tab).to_have_url(re.compile("/files.*snapshot=3"))
    expect(tab.get_by_role("row").nth(1)).to_be_visible()


def test_a_mark_of_the_picture_goes_to_its_snapshot(tab):
    tab.goto(ORDERS)
    tab.locator("svg.history a").nth(1).click()
    expect(tab).to_have_url(re.compile(r"snapshot=\d+"))
    expect(tab.locator("svg.history line.shown")).to_have_count(1)
    expect(tab.locator("tr.shown")).to_have_count(1)


@pytest.mark.slow
def test_two_snapshots_are_compared(tab):
    tab.goto(ORDERS)
    tab.get_by_label("Compare snapshot").fill("3")
    tab.get_by_label("with", exact=True).fill("7")
    tab.get_by_role("button", name="Show the difference").click()
    expect(tab.get_by_role("main")).to_contain_text("Files that were added")
    expect(tab.get_by_role("main")).to_contain_text("2 files with 140 rows")
    expect(tab.get_by_role("region", name="Columns")).to_contain_text("priority")


@pytest.mark.slow
def test_from_the_metadata_document_to_a_file(tab):
    tab.goto(ORDERS)
    tab.get_by_role("link", name="What Iceberg sees").click()
    tab.locator("tbody a", has_text="data-").first.click()
    tab.locator("details.entry summary").first.click()
    expect(tab.locator("details.entry[open]")).to_contain_text("ducklake_data_file")
    tab.get_by_role("link", name="metadata.json").click()
    tab.get_by_role("button", name="Copy").wait_for()
    assert '"table-uuid"' in tab.inner_text("pre")


def test_everything_works_without_javascript(chromium, owner):
    context = chromium.new_context(base_url=owner.uri, java_script_enabled=False)
    tab = context.new_page()
    tab.goto(f"{ORDERS}/files?column=customer")
    expect(tab.get_by_role("button", name="Copy")).to_have_count(0)
    tab.get_by_role("link", name="Table", exact=True).click()
    tab.get_by_label("As of", exact=True).fill("4")
    tab.get_by_label("As of", exact=True).press("Enter")
    expect(tab).to_have_url(re.compile("snapshot=4$"))
    context.close()


def test_the_keyboard_reaches_the_content_first(tab):
    tab.goto("/")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.closest('main') !== null")


@pytest.mark.slow
def test_a_phone_shows_what_changed_and_who_said_it(chromium, owner):
    context = chromium.new_context(base_url=owner.uri, viewport=PHONE)
    tab = context.new_page()
    tab.goto("/changes")
    row = tab.get_by_role("row").filter(has_text="day 3")
    for words in ("inserted rows into", "loader"):
        box = row.get_by_text(words).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], words
    context.close()


IN_CI = [
    "/",
    ORDERS,
    f"{ORDERS}/files?column=customer",
    f"{ORDERS}/difference?from=3&to=7",
    f"{ORDERS}/iceberg",
    f"{ORDERS}/doctor",
    f"{ORDERS}/profile",
]
OTHERS = [
    "/sql",
    f"{ORDERS}/read?client=Spark",
    f"{ORDERS}?scale=steps",
    "/changes",
    "/doctor",
    f"{ORDERS}?snapshot=3",
    f"{ORDERS}/iceberg/metadata",
    "/tables/shop/intervals",
    "/tables/%3Cscript%3Ealert%281%29%3C~2Fscript%3E/a~2Fb%20%26%20%22c%22%20~7E%252F%27",
    "/views/shop/large",
    "/nowhere",
]
VIEWS = [
    pytest.param("light", PHONE, IN_CI, id="light"),
    pytest.param("light", PHONE, OTHERS, id="light-others", marks=pytest.mark.slow),
    pytest.param("dark", PHONE, [*IN_CI, *OTHERS], id="dark", marks=pytest.mark.slow),
    pytest.param("light", DESK, [*IN_CI, *OTHERS], id="light-desk", marks=pytest.mark.slow),
    pytest.param("dark", DESK, [*IN_CI, *OTHERS], id="dark-desk", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("scheme", "screen", "paths"), VIEWS)
def test_axe_finds_nothing_serious_and_each_screen_is_wide_enough(
    chromium, owner, scheme, screen, paths
):
    context = chromium.new_context(base_url=owner.uri, viewport=screen, color_scheme=scheme)
    tab, found = context.new_page(), {}
    for path in paths:
        tab.goto(path)
        # A view loads itself again until its report is done.
        refreshing = tab.locator("meta[http-equiv=refresh]")
        expect(refreshing).to_have_count(0, timeout=60_000)
        for violation in axe_module.Axe().run(tab).response["violations"]:
            if violation["impact"] in ("serious", "critical"):
                nodes = [node["html"][:200] for node in violation["nodes"][:3]]
                found[path, violation["id"]] = nodes
        wide = tab.evaluate("document.documentElement.scrollWidth")
        assert wide <= screen["width"], path
    context.close()
    assert found == {}


LONG = "sales_of_all_stores_in_europe_and_asia_by_day_and_by_product_2026"
LONG_LAKE = f"""
ATTACH 'ducklake:{{{{CATALOG}}}}' AS lake (DATA_PATH '{{{{DATA_PATH}}}}');
CREATE SCHEMA lake.shop;
CREATE TABLE lake.shop.{LONG}(number_of_articles_that_were_sold_without_returns INTEGER);
INSERT INTO lake.shop.{LONG} SELECT i FROM range(50) AS r(i);
"""


@pytest.mark.slow
def test_long_names_leave_the_numbers_on_the_screen(chromium, lake, show):
    page = show(lake.write("long_names", LONG_LAKE))
    for screen in (PHONE, DESK):
        context = chromium.new_context(base_url=page.uri, viewport=screen)
        tab = context.new_page()
        for path in ("/", "/sql", f"/tables/shop/{LONG}", f"/tables/shop/{LONG}/files"):
            tab.goto(path)
            assert tab.evaluate("document.documentElement.scrollWidth") <= screen["width"], path
        tab.goto("/")
        row = tab.get_by_role("region", name="Tables and views").locator("tbody tr")
        for cell in row.locator("td").all():
            box = cell.bounding_box()
            assert box["x"] + box["width"] <= screen["width"], cell.inner_text()
        context.close()
