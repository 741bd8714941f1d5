"""The snippets in docs/clients/ are those of the page and of `polynya demo`."""

import re
from pathlib import Path

import pytest
from polynya_local.reports.snippets import CLIENTS, Place, client

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)
CLIENTS_PAGE = Place(
    "http://CATALOG", "lake", "http://S3", "main", "t", 5, 5, "BUCKET", "KEY", "SECRET"
)


@pytest.mark.parametrize("name", [one.name for one in CLIENTS])
def test_a_document_shows_the_clients_snippet(name):
    one = client(name)
    own = [part for part in (*one.connect, one.read) if part not in client("PyIceberg").connect]
    if name == "PyIceberg":
        own = [*one.connect, one.read]
    if name == "Trino":
        own = [*one.connect]  # the statement is a block of its own
    parts = [part.text(CLIENTS_PAGE) for part in own]
    shown = BLOCK.findall((ROOT / f"docs/clients/{name.lower()}.md").read_text())
    assert any(
        block.replace("\n\n", "\n") == "".join(parts).replace("\n\n", "\n") for block in shown
    )
