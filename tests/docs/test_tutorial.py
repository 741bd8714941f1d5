"""docs/tutorial.md, run as it stands: in an empty folder, by one Python beside `polynya serve`.

What differs from a reader's machine: the ports, which are free ones; DuckDB's extension is that of
PyPI's package, in the folder in which INSTALL looks; and Spark's JARs are those of `make setup`.
"""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from polynya_local.clients.duckdb import extension_path
from polynya_local.clients.spark_jars import jars, why_not

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
RUN = """
import doctest, re, sys
from polynya_local.processes.serving import serving

text, jars = sys.argv[1:]
python = re.compile("^```python\\n(.*?)^```$", re.M | re.S)
before, after = ("".join(python.findall(part)) for part in text.split("\\n## 2. "))
runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
names = {}

def run(text):
    test = doctest.DocTestParser().get_doctest(text, names, "tutorial", None, None)
    runner.run(test, clear_globs=False)
    names.update(test.globs)

run(before)
with serving("birds.ducklake", None, delivery="object-lambda", writes=True) as bridge:
    uris = {"8181": bridge.catalog_uri, "8182": bridge.s3_endpoint}
    for port, uri in uris.items():
        assert f"http://127.0.0.1:{port}" in after
        after = after.replace(f"http://127.0.0.1:{port}", uri.rstrip("/"))
    run(re.sub('"spark.jars.packages": "[^"]*"', f'"spark.jars": {jars!r}', after))
results = runner.summarize(verbose=False)
sys.exit(f"{results.failed} of {results.attempted} failed" if results.failed else 0)
"""


@pytest.mark.spark
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_the_tutorial_does_what_it_says(tmp_path):
    folder = tmp_path / "lake"
    folder.mkdir()
    values = {
        "HOME": str(home(tmp_path)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell",
    }
    command = [sys.executable, "-c", RUN, TUTORIAL.read_text(), ",".join(map(str, jars() or []))]
    environment = {**os.environ, **values}
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert {path.name for path in folder.iterdir()} >= {"birds.ducklake", "birds"}


def home(folder: Path) -> Path:
    """A home directory in which DuckDB finds the extension, so that INSTALL downloads nothing."""
    [[platform]] = duckdb.execute("PRAGMA platform").fetchall()
    extensions = folder / ".duckdb" / "extensions" / f"v{duckdb.__version__}" / platform
    extensions.mkdir(parents=True)
    (extensions / "ducklake.duckdb_extension").symlink_to(extension_path("ducklake"))
    return folder
