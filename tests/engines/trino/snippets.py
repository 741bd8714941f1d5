"""Trino runs the snippets of the page for it, with their files among its catalogs at its start.
It runs the example of docs/writes.md too.

`make trino` runs this file. Its name keeps it out of CI, which has no Trino.
"""

from contextlib import closing

import pytest
from polynya_local.clients import native
from polynya_local.reports.snippets import CATALOG, blocks, client

from tests.docs.test_writes import example, statements
from tests.engines.trino.client import Trino, query
from tests.engines.trino.server import trino
from tests.engines.values import Failed
from tests.support.servers.in_process import standing_in
from tests.support.snippets import HOSTILE, check, places_of


def test_a_snippet_reads_what_ducklake_has(lake, moto):
    hostile = lake.write("trino_snippets", HOSTILE)
    with standing_in(hostile, moto) as served, closing(native.open(hostile, moto)) as judge:
        places = list(places_of(served, judge).values())
        texts = [blocks(client("Trino"), place) for place in places]
        for file, _ in texts:
            assert file.file == f"etc/catalog/{CATALOG}.properties"
        names = [f"{CATALOG}{number}" for number in range(len(places))]
        files = {name: file.text for name, (file, _) in zip(names, texts, strict=True)}
        with trino(files) as address:
            for name, place, (_, select) in zip(names, places, texts, strict=True):
                text = select.text.replace(f"FROM {CATALOG}.", f"FROM {name}.")
                text = text.removesuffix(";\n")
                if "$" in place.table:  # a known fault
                    with pytest.raises(Failed, match="does not exist"):
                        query(address, text)
                else:
                    check(judge, place, query(address, text))


def test_the_example_of_writes_does_what_the_page_says(lake, moto):
    """Spark's, with Trino's name of a type; native DuckLake has the rows that the page shows."""
    with (
        example(lake, moto, "trino") as served,
        trino() as address,
        closing(Trino(address, served, "ice")) as client,
    ):
        for statement in statements("Spark and Trino"):
            client.execute(statement.replace("STRING", "varchar"))
