"""The snippets in README.md and docs/clients/ are those of the page and of `polynya demo`."""

import re
from pathlib import Path

import pytest
from polynya_local.reports.snippets import CLIENTS, Place, client

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^#{2,3} (.+)$", re.MULTILINE)
LAKE = ("lake", "http://127.0.0.1:8182", "main", "my_table", 12, 12)
README = Place("http://127.0.0.1:8181", *LAKE)
CLIENTS_PAGE = Place(
    "http://CATALOG", "lake", "http://S3", "main", "t", 5, 5, "BUCKET", "KEY", "SECRET"
)
IN_README = {
    "DuckDB": "DuckDB",
    "PyIceberg": "PyIceberg",
    "Spark": "Spark",
    "Polars": "Polars and Daft",
    "Daft": "Polars and Daft",
    "ClickHouse": "ClickHouse",
}
CASES = [
    *(("README.md", README, name, section) for name, section in IN_README.items()),
    *((f"docs/clients/{one.name.lower()}.md", CLIENTS_PAGE, one.name, "") for one in CLIENTS),
]


def section_of(document: str, title: str) -> str:
    """The text below the first heading of this name, up to the next heading; "": all of it."""
    if not title:
        return (ROOT / document).read_text()
    pieces = SECTION.split((ROOT / document).read_text())
    return next(
        text for name, text in zip(pieces[1::2], pieces[2::2], strict=True) if name == title
    )


@pytest.mark.parametrize(("document", "place", "name", "section"), CASES)
def test_a_document_shows_the_clients_snippet(document, place, name, section):
    one = client(name)
    own = [part for part in (*one.connect, one.read) if part not in client("PyIceberg").connect]
    if name == "PyIceberg":
        own = [*one.connect, one.read]
    if name == "Trino":
        own = [*one.connect]  # the statement is a block of its own
    parts = [part.text(place) for part in own]
    shown = BLOCK.findall(section_of(document, section))
    assert any(
        block.replace("\n\n", "\n") == "".join(parts).replace("\n\n", "\n") for block in shown
    )
