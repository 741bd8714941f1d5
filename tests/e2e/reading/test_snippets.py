"""The snippets of the page read the rows that native DuckLake has, with names full of quotes.

Trino's and Flink's are run by `make trino` and `make flink`.
"""

import ast
import json
import subprocess
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from polynya_local.clients import native
from polynya_local.clients.duckdb import ICEBERG, connect
from polynya_local.reports.snippets import DUCKDB_EXTENSIONS, Place, blocks, client

from tests.support.servers.in_process import standing_in
from tests.support.snippets import HOSTILE, check, places_of

MATRIX = Path(__file__).parents[3] / ".venv-matrix" / "bin" / "python"


@pytest.fixture(scope="module")
def hostile(lake):
    return lake.write("snippets", HOSTILE)


@pytest.fixture(scope="module")
def served(hostile, moto):
    with standing_in(hostile, moto) as stand_in:
        yield stand_in


@pytest.fixture(scope="module")
def judge(hostile, moto):
    with closing(native.open(hostile, moto)) as judge:
        yield judge


@pytest.fixture(scope="module")
def places(served, judge) -> dict[str, Place]:
    return places_of(served, judge)


def run_sql(text: str) -> pa.Table:
    """What DuckDB gives for a snippet; the extensions are those of PyPI."""
    assert text.startswith(DUCKDB_EXTENSIONS)
    with closing(connect(ICEBERG)) as con:
        for statement in con.extract_statements(text.removeprefix(DUCKDB_EXTENSIONS)):
            result = con.execute(statement)
        return result.to_arrow_table()


def run_python(text: str):
    """What the last expression of a snippet is worth."""
    tree = ast.parse(text)
    last = tree.body.pop()
    assert isinstance(last, ast.Expr)
    names: dict = {}
    exec(compile(tree, "snippet", "exec"), names)
    return eval(compile(ast.Expression(last.value), "snippet", "eval"), names)


def read_by_snippet(name: str, place: Place) -> pa.Table:
    (block,) = blocks(client(name), place)
    if block.language == "sql":
        return run_sql(block.text)
    found = run_python(block.text)
    return found if isinstance(found, pa.Table) else found.to_arrow()


# Polars asks for its own planner, a package that is not needed.
@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
@pytest.mark.parametrize("name", ["DuckDB", "PyIceberg", "Polars"])
def test_a_snippet_reads_what_ducklake_has(name, places, judge):
    for place in places.values():
        check(judge, place, read_by_snippet(name, place))


SCRIPT = """
import ast, json, sys
import pyarrow as pa
text, out = json.load(sys.stdin), sys.argv[1]
tree = ast.parse(text)
last = tree.body.pop()
names = {}
exec(compile(tree, "snippet", "exec"), names)
rows = eval(compile(ast.Expression(last.value), "snippet", "eval"), names)
with pa.OSFile(out, "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as stream:
    stream.write_table(rows)
"""
CHDB = """
import json, sys
import pyarrow as pa
from chdb.session import Session
text, out = json.load(sys.stdin), sys.argv[1]
session = Session()
session.query("SET output_format_arrow_string_as_string = 1")
*before, last = [one for one in text.split(";\\n") if one.strip()]
for one in before:
    session.query(one)
open(out, "wb").write(session.query(last, "ArrowStream").bytes())
"""
OUTSIDE = {"Daft": SCRIPT, "DataFusion": SCRIPT, "ClickHouse": CHDB}


@pytest.mark.slow
@pytest.mark.skipif(not MATRIX.exists(), reason="`make matrix` makes .venv-matrix")
@pytest.mark.parametrize("name", OUTSIDE)
def test_a_snippet_reads_what_ducklake_has_in_another_python(name, places, judge, tmp_path):
    for title, place in places.items():
        if name == "ClickHouse" and not title.startswith("main."):
            continue  # such names are a known fault of it
        (block,) = blocks(client(name), place)
        file = tmp_path / "rows.arrow"
        command = [str(MATRIX), "-c", OUTSIDE[name], str(file)]
        subprocess.run(command, input=json.dumps(block.text), text=True, check=True, timeout=120)
        with pa.OSFile(str(file)) as source:
            check(judge, place, pa.ipc.open_stream(source).read_all())


@pytest.mark.slow
@pytest.mark.spark
def test_a_snippet_reads_what_ducklake_has_in_spark(places, judge):
    from polynya_local.clients import spark

    if reason := spark.why_not():
        pytest.skip(reason)
    spark.session()  # with the jars of this machine; the snippet takes it over
    for place in places.values():
        (block,) = blocks(client("Spark"), place)
        # A catalog of Spark's session keeps its first settings.
        text = block.text.replace("spark.sql.catalog.ice", f"spark.sql.catalog.ice{id(place)}")
        text = text.replace("FROM ice.", f"FROM ice{id(place)}.")
        check(judge, place, run_python(text).toArrow())
