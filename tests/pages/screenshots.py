"""`make screenshots`: pictures of the page over the demo's lake, for docs/."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import boto3
from playwright.sync_api import Browser, sync_playwright
from polynya_local.clients.native import write_lake
from polynya_local.processes.postgres import postgres
from polynya_local.processes.serving import environment

from tests.pages.chromium import executable
from tests.pages.conftest import Page, showing
from tests.support.lakes import BUCKET
from tests.support.servers.moto_server import moto_server

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "local/polynya_local/demo/demo.sql"
DOCS = ROOT / "docs"
MOST_BYTES = 200_000

# name: path, width, height, scheme
PICTURES = {
    "page-lake": ("/", 1200, 1240, "light"),
    "page-table": ("/tables/birds/flocks", 1200, 1000, "light"),
    "page-files": ("/tables/ice/cover/files?column=day", 1200, 1000, "light"),
    "page-health": ("/doctor", 1200, 900, "light"),
    "page-phone": ("/tables/birds/flocks", 390, 844, "dark"),
}


@contextmanager
def demo() -> Iterator[Page]:
    """The page over the lake of `polynya demo`."""
    os.environ.update(environment({"CLIENTS": "all"}))  # as `polynya serve`
    with postgres() as server, moto_server() as endpoint:
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
        database = server.create_database("demo")
        where = f"s3://{BUCKET}/winter"
        lake = write_lake("demo", DEMO.read_text(), database, where, endpoint)
        with showing(lake, endpoint, "winter") as page:
            yield page


def take(browser: Browser, page: Page, name: str) -> None:
    """Write one picture."""
    path, width, height, scheme = PICTURES[name]
    context = browser.new_context(
        base_url=page.uri, viewport={"width": width, "height": height}, color_scheme=scheme
    )
    tab = context.new_page()
    tab.goto(path)
    tab.locator("[role=status]").wait_for(state="detached", timeout=120_000)
    # The texts that connect a client are long: they stay folded.
    tab.evaluate("document.querySelectorAll('details.connect').forEach(e => e.open = false)")
    file = DOCS / f"{name}.png"
    tab.screenshot(path=file)
    context.close()
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size:,} bytes")
    assert file.stat().st_size < MOST_BYTES, name


def main() -> None:
    """Take all pictures."""
    if (chromium := executable()) is None:
        sys.exit("no Chromium: apt-get install chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with demo() as page, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        for name in PICTURES:
            take(browser, page, name)
        browser.close()


if __name__ == "__main__":
    main()
