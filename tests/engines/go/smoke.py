"""iceberg-go writes; what it writes is compared with native DuckLake.

`make iceberg-go` runs this file. Its name keeps it out of CI: `go build` takes some minutes.
"""

import subprocess
from collections import Counter

import pytest

from tests.engines.go.program import PROGRAM, build
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, LAKE, STARTS
from tests.support.writes.writable import set_up_writes

STEPS = [
    ("create", "CREATE TABLE {t} (id BIGINT, s VARCHAR, grams DOUBLE)"),
    ("append", "INSERT INTO {t} VALUES (1, 'eider', 2200), (2, 'teal', 330), (3, 'mallard', 1100)"),
    ("append more", "INSERT INTO {t} VALUES (4, 'smew', NULL), (5, 'teal', 300)"),
    (
        "overwrite where s = 'teal'",
        "DELETE FROM {t} WHERE s = 'teal'; INSERT INTO {t} VALUES (6, 'teal', 340)",
    ),
    ("delete where id = 1", "DELETE FROM {t} WHERE id = 1"),
    ("write.delete.mode = merge-on-read", "SELECT 1"),
    ("append", "INSERT INTO {t} VALUES (1, 'eider', 2200), (2, 'teal', 330), (3, 'mallard', 1100)"),
    ("delete where id = 3", "DELETE FROM {t} WHERE id = 3"),
    ("add column seen", "ALTER TABLE {t} ADD COLUMN seen INTEGER"),
    ("overwrite all", "DELETE FROM {t}; INSERT INTO {t} VALUES (9, 'smew', 600, NULL)"),
]


@pytest.fixture(scope="module", autouse=True)
def program():
    build()


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("iceberg_go", LAKE))
    # It opens one bucket for a table: that of the metadata, where the data must be too.
    with bridge(one, moto, writes=True, delivery="materialize") as found:
        yield one, found, moto


@pytest.fixture
def run(served, twin):
    where = [served[1].catalog_uri, served[1].s3_endpoint, "main", twin.name]

    def call(step):
        ended = subprocess.run([PROGRAM, *where, step], capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, f"{step}: {ended.stderr}"

    return call


def test_life_of_a_table(run, twin):
    for step, sql in STEPS:
        twin.changes(sql, lambda step=step: run(step))
        assert rows_of(twin, twin.source) == rows_of(twin, twin.memory), step
    twin.check()


@pytest.mark.parametrize("start", [one for one in STARTS if not one.startswith("partitions")])
def test_deletes_by_key(run, twin, start):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    deleted = "DELETE FROM {t} WHERE id IN (1, 2, 9)"
    twin.changes(deleted, lambda: run("delete the keys 1, 2, 9"))
    twin.check()


def test_upsert(run, twin):
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id BIGINT, s VARCHAR, grams DOUBLE)")
    twin.native("INSERT INTO {t} VALUES (3, 'teal', 300), (4, 'eider', 2200)")
    twin.changes(
        "DELETE FROM {t} WHERE id = 3; INSERT INTO {t} VALUES (3, NULL, 1), (7, 'smew', 600)",
        lambda: run("upsert 3 and 7"),
    )
    twin.check()


OUTSIDE = "it ignores write.data.path in partitioned tables (0.7.0)"


@pytest.mark.parametrize("start", [one for one in STARTS if not one.startswith("partitions")])
def test_deletes(run, twin, start):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    twin.changes("SELECT 1", lambda: run("write.delete.mode = merge-on-read"))
    twin.changes("DELETE FROM {t} WHERE id = 1", lambda: run("delete where id = 1"))
    twin.check()


@pytest.mark.xfail(raises=AssertionError, reason=OUTSIDE)
@pytest.mark.parametrize("step", ["append", "delete where id = 3"])
def test_partitions(run, twin, step):
    """The upload is refused, and nothing changes."""
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id BIGINT, s VARCHAR, grams DOUBLE)")
    twin.native("ALTER TABLE {t} SET PARTITIONED BY (s)")
    twin.native("INSERT INTO {t} VALUES (3, 'a', 1), (4, 'a', 2)")
    twin.changes("SELECT 1", lambda: run("write.delete.mode = merge-on-read"))
    run(step)


@pytest.mark.xfail(raises=AssertionError, reason="copy-on-write brings deleted rows back (0.7.0)")
def test_copy_on_write_after_deletes(run, twin):
    twin.native(DO_NOT_INLINE, *STARTS["delete files"])
    twin.changes("DELETE FROM {t} WHERE id = 1", lambda: run("delete where id = 1"))
    twin.check()


@pytest.mark.xfail(raises=AssertionError, reason="a filter drops rows with NULL (0.7.0)")
def test_overwrite_beside_null(run, twin):
    columns = "id BIGINT, s VARCHAR, grams DOUBLE"
    twin.native(DO_NOT_INLINE, f"CREATE TABLE {{t}} ({columns})")
    twin.native("INSERT INTO {t} VALUES (1, 'teal', 1), (2, NULL, 2)")
    step, sql = STEPS[3]
    twin.changes(sql, lambda: run(step))
    twin.check()


def rows_of(twin, source):
    return Counter(twin.con.execute(f"SELECT * FROM {source}").fetchall())
