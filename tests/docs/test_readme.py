"""The example in README.md, with a lake as it shows, and the port that is free."""

import doctest
import os
import re
from pathlib import Path

import pytest
from polynya_local.clients.duckdb import connect
from polynya_local.processes.serving import serving

README = Path(__file__).parents[2] / "README.md"
PYTHON = re.compile("^```python\\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LAKE = [
    "ATTACH 'ducklake:metadata.ducklake' AS lake (DATA_PATH 'data')",
    "CREATE TABLE lake.species (id INTEGER, name VARCHAR, kilograms DECIMAL(3, 1))",
    "INSERT INTO lake.species VALUES (1, 'king eider', 1.9), (2, 'long-tailed duck', 0.8), "
    "(3, 'common eider', 2.2)",
    "INSERT INTO lake.species VALUES (4, 'smew', 0.6)",
]


# Polars asks for its own planner, a package that is not needed.
@pytest.mark.filterwarnings("ignore:Iceberg scan planning")
def test_the_example_gives_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)  # Polars prefers them, and other tests of the process set them
    with connect(("ducklake",)) as con:
        for statement in LAKE:
            con.execute(statement)
    [example] = PYTHON.findall(README.read_text())
    assert "http://127.0.0.1:8181" in example
    with serving("metadata.ducklake", None, delivery="object-lambda") as bridge:
        text = example.replace("http://127.0.0.1:8181", bridge.catalog_uri)
        parsed = doctest.DocTestParser().get_doctest(text, {}, "README", None, None)
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(parsed)
    assert (runner.failures, runner.tries) == (0, 5)
