"""The examples of docs/writes.md: each client changes the same table in the same way.

Trino's is run by `make trino` (tests/engines/trino/snippets.py).
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from polynya_local.clients import spark
from polynya_local.clients.duckdb import ICEBERG, LAKE, connect, s3_secret
from polynya_local.clients.native import attach
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.clients.spark_jars import why_not
from polynya_local.processes.serving import Bridge
from pyiceberg.catalog import load_catalog

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import set_up_writes

PAGE = (Path(__file__).parents[2] / "docs/writes.md").read_text()
[EXAMPLES] = re.findall(r"^## An example for each client\n(.*?)^## ", PAGE, re.M | re.S)
BLOCK = re.compile(r"^```(?:sql|python)?\n(.*?)^```", re.M | re.S)
RESULT = "The result in DuckLake"
SECTIONS = {
    title: BLOCK.findall(text)
    for title, text in re.findall(r"^### (.+?)\n(.*?)(?=^### |\Z)", EXAMPLES, re.M | re.S)
}


def statements(client: str) -> list[str]:
    """The SQL of a client's example."""
    [text] = SECTIONS[client]
    return [statement.strip() for statement in text.split(";\n")[:-1]]


@contextmanager
def example(lake, s3_endpoint: str, name: str) -> Iterator[Bridge]:
    """The table before the example; afterwards native DuckLake must have what the page shows."""
    [before] = BLOCK.findall(EXAMPLES.split("### ")[0])
    script = "ATTACH 'ducklake:{{CATALOG}}' AS birds (DATA_PATH '{{DATA_PATH}}');\n" + before
    written = set_up_writes(lake.write(f"example_{name}", script))
    with bridge(written, s3_endpoint, writes=True) as served:
        yield served
    query, shown = SECTIONS[RESULT]
    with closing(connect(LAKE, s3_endpoint)) as con:
        attach(con, written)
        assert str(con.sql(query.replace("birds.", "lake."))).strip() == shown.strip()
        places = con.sql("FROM lake.places ORDER BY place").fetchall()
    assert places == [("Nome", False), ("Utqiagvik", True)]


def with_pyiceberg(served: Bridge) -> None:
    where = {"uri": served.catalog_uri, "warehouse": served.warehouse}
    with closing(load_catalog("lake", **where, **s3_properties(served.s3_endpoint))) as catalog:
        [text] = SECTIONS["PyIceberg"]
        exec(compile(text, "docs/writes.md", "exec"), {"catalog": catalog})


def with_duckdb(served: Bridge) -> None:
    with closing(connect(ICEBERG)) as con:
        con.execute(s3_secret(served.s3_endpoint))
        con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT '{served.catalog_uri}', "
            "AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none', DEFAULT_SCHEMA 'main')"
        )
        for statement in statements("DuckDB"):
            con.execute(statement)


def with_spark(served: Bridge) -> None:
    client = spark.Spark(served.catalog_uri, served.warehouse, served.s3_endpoint)
    for statement in statements("Spark and Trino"):
        spark.session().sql(statement.replace("ice.", f"{client.catalog}."))


@pytest.mark.parametrize(
    "write",
    [
        with_pyiceberg,
        with_duckdb,
        pytest.param(
            with_spark,
            marks=[
                pytest.mark.slow,
                pytest.mark.spark,
                pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
            ],
        ),
    ],
)
def test_an_example_does_what_the_page_says(lake, moto, write: Callable[[Bridge], None]):
    with example(lake, moto, write.__name__) as served:
        write(served)
