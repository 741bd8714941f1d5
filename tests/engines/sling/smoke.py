"""Sling loads files into tables; what it writes is compared with native DuckLake.

`make sling` runs this file. Its name keeps it out of CI, which has no Sling.
"""

import json
import os
import subprocess

import pytest

from tests.engines.sling.program import PROGRAM, environment
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import LAKE
from tests.support.writes.writable import set_up_writes

FIRST = [(1, "eider", 2200.5), (2, None, 330.0), (3, "mallard, wild", None)]
MORE = [(4, "smew", 680.0), (5, "teal", 300.0)]


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("sling", LAKE))
    # As iceberg-go, it opens one bucket for a table: that of the metadata.
    with bridge(one, moto, writes=True, delivery="materialize") as found:
        yield one, found, moto


@pytest.fixture
def load(served, twin, tmp_path):
    def run(rows, mode, *words):
        file = tmp_path / "rows.csv"
        lines = [",".join("" if v is None else json.dumps(v) for v in row) for row in rows]
        file.write_text("\n".join(["id,s,grams", *lines, ""]))
        command = [PROGRAM, "run", "--src-stream", f"file://{file}", "--tgt-conn", "ICE"]
        command += ["--tgt-object", f"main.{twin.name}", "--mode", mode, *words]
        own = {
            **environment(served[1], str(tmp_path)),
            "HOME": str(tmp_path),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        return subprocess.run(
            command,
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def test_loads(load, twin):
    expected = []
    for rows, mode, *words in (
        (FIRST, "full-refresh"),
        (MORE, "incremental", "--update-key", "id"),
        (MORE, "snapshot"),
        (FIRST, "full-refresh"),
    ):
        ended = load(rows, mode, *words)
        assert ended.returncode == 0, ended.stderr
        before = expected if mode != "full-refresh" else []
        # To Sling an empty text of CSV is no NULL; it adds the time of the load.
        expected = sorted(before + [(id_, s or "", grams) for id_, s, grams in rows])
        found = twin.con.execute(f"SELECT id, s, grams::DOUBLE FROM {twin.source}").fetchall()
        assert sorted(found) == expected, mode
        read = twin.table().scan().to_arrow().to_pylist()
        assert sorted((row["id"], row["s"]) for row in read) == [row[:2] for row in expected]
