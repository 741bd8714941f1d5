"""The example in README.md and those on pages of clients, with a lake and free ports."""

import ast
import doctest
import os
import re
from pathlib import Path

import pytest
from polynya_local.clients.duckdb import connect
from polynya_local.processes.serving import serving

README = Path(__file__).parents[2] / "README.md"
CLIENTS = README.parent / "docs/clients"
PYTHON = re.compile("^```python\\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LAKE = [
    "ATTACH 'ducklake:metadata.ducklake' AS lake (DATA_PATH 'data')",
    "CREATE TABLE lake.species (id INTEGER, name VARCHAR, kilograms DECIMAL(3, 1))",
    "INSERT INTO lake.species VALUES (1, 'king eider', 1.9), (2, 'long-tailed duck', 0.8), "
    "(3, 'common eider', 2.2)",
    "INSERT INTO lake.species VALUES (4, 'smew', 0.6)",
]


pytestmark = [
    # Polars asks for its own planner, a package that is not needed.
    pytest.mark.filterwarnings("ignore:Iceberg scan planning"),
]


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("species"))
        for name in [name for name in os.environ if name.startswith("AWS_")]:
            patch.delenv(name)  # Polars prefers them, and other tests of the process set them
        with connect(("ducklake",)) as con:
            for statement in LAKE:
                con.execute(statement)
        with serving("metadata.ducklake", None, delivery="object-lambda") as bridge:
            yield bridge


def with_ports(text, bridge):
    assert "http://127.0.0.1:8181" in text
    text = text.replace("http://127.0.0.1:8181", bridge.catalog_uri)
    return text.replace("127.0.0.1:8182", bridge.s3_endpoint.rpartition("/")[2])


def test_the_example_gives_what_it_shows(bridge):
    [example] = PYTHON.findall(README.read_text())
    text = with_ports(example, bridge)
    parsed = doctest.DocTestParser().get_doctest(text, {}, "README", None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(parsed)
    assert (runner.failures, runner.tries) == (0, 5)


def first_block(client):
    """What the page of a client has first, for the table of this lake."""
    page = (CLIENTS / f"{client}.md").read_text()
    return page.split("```")[1].partition("\n")[2].replace('"t"', '"species"')


@pytest.mark.parametrize("client", ["pyiceberg", "polars"])
def test_the_lines_on_a_clients_page_read_a_table(client, bridge):
    *lines, last = ast.parse(with_ports(first_block(client), bridge)).body
    names = {}
    exec(compile(ast.Module(lines, []), client, "exec"), names)
    rows = eval(compile(ast.Expression(last.value), client, "eval"), names)
    assert len(rows) == 4


def test_the_lines_on_duckdbs_page_read_a_table(bridge):
    install, _, statements = with_ports(first_block("duckdb"), bridge).partition("\n")
    assert install.startswith("INSTALL httpfs; INSTALL avro; INSTALL iceberg;")
    with connect(("httpfs", "avro", "iceberg")) as con:
        assert len(con.execute(statements).fetchall()) == 4
