"""The snippets in docs/clients/ are those of the page and of `polynya demo`."""

import re
from pathlib import Path

import pytest
from polynya_local.reports.snippets import CLIENTS, client

from docs.generator.clients import PLACE

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", [one.name for one in CLIENTS])
def test_a_document_shows_the_clients_snippet(name):
    one = client(name)
    # PyIceberg, and what reads through it, needs less with the addresses that pages show.
    parts = [part for part in (*one.connect, one.read) if part not in client("PyIceberg").connect]
    text = BLOCK.findall((ROOT / f"docs/clients/{name.lower()}.md").read_text())
    for part in parts:
        assert any(part.text(PLACE) in block for block in text)
