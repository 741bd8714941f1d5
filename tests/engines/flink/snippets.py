"""Flink runs the snippets of the page for it.

`make flink` runs this file. Its name keeps it out of CI, which has no Flink.
"""

from contextlib import closing

import pytest
from polynya_local.clients import native
from polynya_local.reports.snippets import blocks, client

from tests.engines.flink.client import Cluster
from tests.engines.values import Failed, arrow_table
from tests.support.servers.in_process import standing_in
from tests.support.snippets import HOSTILE, check, places_of


@pytest.fixture(scope="module")
def cluster():
    with closing(Cluster()) as cluster:
        yield cluster


def test_a_snippet_reads_what_ducklake_has(lake, moto, cluster):
    hostile = lake.write("flink_snippets", HOSTILE)
    with standing_in(hostile, moto) as served, closing(native.open(hostile, moto)) as judge:
        for place in places_of(served, judge).values():
            (block,) = blocks(client("Flink"), place)
            connect, query, rest = block.text.split(";\n")
            assert not rest
            cluster.execute(connect)
            if set("$%") & set(place.table):  # a known fault
                with pytest.raises(Failed, match=r"Illegal table name|Conversion = 'F'"):
                    cluster.execute(query)
            else:
                check(judge, place, arrow_table(*cluster.execute(query)))
            cluster.execute("DROP CATALOG ice")
