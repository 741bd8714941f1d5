"""`polynya demo` as a user starts it: what it prints, how it ends, and that it leaves nothing."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest
from polynya_local.clients.duckdb import connect, extension_path, literal
from polynya_local.clients.pyiceberg import open as open_client
from polynya_local.processes.serving import COMMAND, serving

SECONDS = 300  # about 30 on an idle machine
ROW = re.compile(
    r"(?P<table>\w+\.\w+) +(?P<snapshot>\d+|now)  (?P<event>.+?)  +(?P<ducklake>[\d,]+)"
    r"  +(?P<pyiceberg>[\d,]+) (?P<one>\S+)  +(?P<duckdb>[\d,]+) (?P<two>\S+)"
)


@dataclass
class Demo:
    process: subprocess.Popen
    folder: Path

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def wait_for(self, words: str, name: str) -> None:
        deadline = time.monotonic() + SECONDS
        while words not in self.text(name):
            assert self.process.poll() is None, self.text("err")
            assert time.monotonic() < deadline, f"no {words!r} in {self.text(name)!r}"
            time.sleep(0.1)

    def end(self) -> int:
        return self.process.wait(SECONDS)


@pytest.fixture
def demo(monkeypatch):
    """Starts the command in its own folders; afterwards they are empty and no process uses them."""
    # Not tmp_path: PostgreSQL runs as another user, which has no access to it.
    folder = Path(tempfile.mkdtemp(prefix="polynya-demo-test-"))
    folder.chmod(0o755)
    for name in ("tmp", "here"):
        (folder / name).mkdir(mode=0o755)
    started = []

    def start(*options: str, **settings: str) -> Demo:
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            process = subprocess.Popen(
                [*COMMAND, "demo", *options],
                stdout=out,
                stderr=err,
                cwd=folder / "here",
                env={**os.environ, "TMPDIR": str(folder / "tmp"), **settings},
            )
        started.append(process)
        return Demo(process, folder)

    try:
        yield start
        assert all(process.returncode is not None for process in started)
        assert left_running(folder.name) == []
        assert list((folder / "tmp").iterdir()) == list((folder / "here").iterdir()) == []
    finally:
        for process in started:
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def left_running(word: str) -> list[str]:
    # Python's resource tracker ends a moment after the process that it served.
    deadline = time.monotonic() + 5
    while (found := processes_with(word)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def processes_with(word: str) -> list[str]:
    """Processes with `word` in their arguments or in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes()
            if word.encode() in arguments + (process / "environ").read_bytes():
                words = arguments.decode(errors="replace").split("\0")
                found.append(f"{process.name}: {' '.join(words)}")
        except OSError:  # the process has ended, or belongs to another user
            continue
    return found


@pytest.mark.slow
def test_every_client_reads_what_ducklake_has_and_the_demo_cleans_up(demo):
    run = demo("--without-spark")
    assert run.end() == 0, run.text("out") + run.text("err")
    out = run.text("out")
    assert "\x1b" not in out + run.text("err")
    matches = [ROW.fullmatch(line.rstrip()) for line in out.splitlines()]
    rows = [match.groupdict() for match in matches if match]
    assert {(row["one"], row["two"]) for row in rows} == {("same", "same")}
    assert all(row["ducklake"] == row["pyiceberg"] == row["duckdb"] for row in rows)
    now = [row["table"] for row in rows if row["snapshot"] == "now"]
    tables = {"birds.flocks", "birds.species", "birds.tags", "ice.cover", "ice.stations"}
    assert set(now) == tables and len(rows) == 20
    assert max(int(row["ducklake"].replace(",", "")) for row in rows) > 300_000
    inserted, deleted = rows[-2:]
    assert inserted["event"].startswith("INSERT") and inserted["ducklake"] == "60,004"
    assert deleted["event"].startswith("DELETE") and deleted["ducklake"] == "59,984"
    assert f"Each of {2 * len(rows)} reads gave exactly the rows that DuckLake has." in out
    assert "birds.species and ice.stations have no file of their own" in out
    assert "Spark was left out: --without-spark." in out


@pytest.mark.slow
def test_the_output_of_keep_can_be_pasted(demo):
    run = demo("--keep", "--without-spark", "--delivery", "materialize")
    run.wait_for("until you press Ctrl-C", "out")
    out = run.text("out")
    assert duckdb_answers(pasted(out, "DuckDB, as an Iceberg client"))[-1] == [(60_000,)]
    snapshots = duckdb_answers(pasted(out, "DuckDB again"))[-1]
    assert snapshots[-1][3] == {"inlined_insert": ["5"]}  # the INSERT that the demo suggests
    python = pasted(out, "PyIceberg, in Python")
    done = subprocess.run([sys.executable, "-c", python], capture_output=True, text=True)
    assert done.stdout.endswith("\n60000\n"), done.stderr
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 0, run.text("err")
    assert "Traceback" not in run.text("err")
    here = run.folder / "here"
    program, *words = shlex.split(pasted(out, "The lake without these changes is in"))
    assert program == "polynya"
    check = [*COMMAND, *words, "--json"]
    check[check.index("serve")] = "doctor"
    done = subprocess.run(check, cwd=here, capture_output=True, text=True)
    assert json.loads(done.stdout)["well"], done.stderr
    lake = str(here / words[-1])
    with closing(connect(("ducklake",))) as con:
        con.execute(f"ATTACH {literal(f'ducklake:{lake}')} AS lake (READ_ONLY)")
        [(rows,)] = con.execute("SELECT count(*) FROM lake.birds.flocks").fetchall()
    with (
        serving(lake, None, delivery="object-lambda") as bridge,
        closing(open_client(bridge.catalog_uri, "lake", bridge.s3_endpoint)) as client,
    ):
        assert client.rows("birds", "flocks").num_rows == rows > 60_000
    shutil.rmtree(here / "polynya-demo")


def pasted(out: str, title: str) -> str:
    """The text below a title, up to the next empty line."""
    return out[out.index(f"\n{title}") :].split("\n\n")[1]


def duckdb_answers(sql: str) -> list[list[tuple]]:
    # Here extensions come from PyPI, not from a DuckDB server.
    names = {"postgres": "postgres_scanner"}
    sql = re.sub(r"INSTALL \w+;", "", sql)
    sql = re.sub(
        r"LOAD (\w+)",
        lambda found: f"LOAD {literal(str(extension_path(names.get(found[1], found[1]))))}",
        sql,
    )
    with duckdb.connect() as con:
        return [con.execute(statement).fetchall() for statement in con.extract_statements(sql)]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["PostgreSQL ", "A lake, ", "PyIceberg: "])
def test_ctrl_c_ends_the_demo_cleanly(demo, stage):
    run = demo("--without-spark")
    run.wait_for(stage, "err")
    run.process.send_signal(signal.SIGINT)
    assert run.end() == 130
    assert run.text("out") == ""
    lines = run.text("err").splitlines()
    assert [line for line in lines if not re.search(r" \(\d+\.\d s\)$", line)] == []


def test_a_missing_database_is_reported_in_one_line(demo):
    url = "postgresql://nobody@127.0.0.1:1/nothing"
    run = demo("--without-spark", POLYNYA_TEST_POSTGRES=url)
    assert run.end() == 1
    (line,) = run.text("err").splitlines()
    assert line.startswith("polynya: Starting PostgreSQL: ")
