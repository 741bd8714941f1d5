"""A process of pytest-xdist that crashes costs its test a second run, and nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
OPTIONS = [
    *("--numprocesses", "2", "--max-worker-restart", "2"),
    *("--dist", "loadscope", "--no-loadscope-reorder"),
    *("-p", "xdist.plugin", "-p", "tests.support.scheduler", "-p", "no:cacheprovider"),
]
TESTS = """
import os
from pathlib import Path

import pytest


@pytest.mark.parametrize("number", range({tests}))
def test_a(number):
    crashes = Path(__file__).parent / "crashes"
    if number == {crashing} and (not crashes.exists() or {always}):
        crashes.touch()
        os.abort()
"""


def run(folder: Path, files: int, **values) -> subprocess.CompletedProcess[str]:
    """Run files of tests, of which the first has a test that ends its process."""
    for file in range(files):
        text = TESTS.format(**values | ({} if file == 0 else {"crashing": None}))
        (folder / f"test_{file}.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, folder],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def counts(output: str) -> dict[str, int]:
    summary = output.splitlines()[-1].partition(" in ")[0]
    return {name: int(count) for count, name in re.findall(r"(\d+) (\w+)", summary)}


@pytest.mark.parametrize("tests, crashing", [(1, 0), (2, 0), (2, 1), (5, 4)])
@pytest.mark.parametrize("files", [1, 2, 5])
def test_a_test_whose_process_crashes_runs_once_more(tmp_path, files, tests, crashing):
    ended = run(tmp_path, files, tests=tests, crashing=crashing, always=False)
    assert ended.returncode == 0, ended.stdout
    assert counts(ended.stdout) == {"passed": files * tests, "rerun": 1}
    assert f"crashed while running 'test_0.py::test_a[{crashing}]'" in ended.stdout


def test_a_test_that_always_crashes_fails(tmp_path):
    ended = run(tmp_path, 3, tests=3, crashing=1, always=True)
    assert ended.returncode == 1, ended.stdout
    assert counts(ended.stdout)["failed"] >= 1
