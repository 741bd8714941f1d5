"""A job that is killed at any step and repeated with the same token writes its rows once."""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from polynya.ducklake.writes.rows import INSERT_SNAPSHOT
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_pipeline.common.database import connect as connect_postgres
from polynya_pipeline.common.errors import Conflict
from polynya_pipeline.common.text_values import TableName
from polynya_pipeline.ingest import commit, job
from polynya_pipeline.ingest.planning import IngestSpec, Plan

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(folder_lake):
    return folder_lake


ROOT = Path(__file__).parents[2]

# The job in its own process, which kills itself at the step in its argument.
KILLED_JOB = """
import os, signal, sys
from polynya_pipeline.common.spark import session
from polynya_pipeline.ingest import job
from polynya.ducklake.writes import stats

url, step = sys.argv[1:]

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def after(function):
    def called(*words, **options):
        function(*words, **options)
        die()
    return called

if step == "before the files":
    job.write = die
elif step == "after the files":
    job.commit = die
elif step == "within the transaction":
    stats.set_table_stats = after(stats.set_table_stats)
elif step == "after the commit":
    job.commit = after(job.commit)
frame = session("local[1]").range(0, 100, 1, 2)
job.ingest(frame, "t", database=url, token="the job")
print("survived")
"""
STEPS = ("before the files", "after the files", "within the transaction", "after the commit")


@pytest.mark.slow
def test_a_killed_and_repeated_job_commits_once(open_lake, spark, tmp_path):
    lakes, processes = [], []
    for number, step in enumerate(STEPS):
        lake = open_lake(f"{tmp_path}/{number}/")
        lake.sql("CREATE TABLE t(id BIGINT)")
        command = [sys.executable, "-c", KILLED_JOB, lake.database.url, step]
        processes.append(
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        )
        lakes.append(lake)
    for process in processes:
        output, _ = process.communicate(timeout=180)
        assert process.returncode == -signal.SIGKILL, output.decode()
    for step, lake in zip(STEPS, lakes, strict=True):
        frame = spark.range(0, 100, 1, 2)
        again = lake.ingest(frame, token="the job", remove_orphans=True)
        was_done = step == "after the commit"
        assert again.outcome == ("already-committed" if was_done else "committed")
        left = step in {"after the files", "within the transaction"}
        assert len(again.orphans) == again.orphans_removed == (2 if left else 0), step
        assert lake.ingest(frame, token="the job").outcome == "already-committed"
        assert lake.sql("SELECT count(*), count(DISTINCT id), sum(id) FROM t") == [(100, 100, 4950)]
        report = lake.verify()
        assert report.findings == [] and report.notes == [], step


def test_a_connection_lost_at_the_commit_causes_no_second_commit(lake, spark, monkeypatch):
    lake.sql("CREATE TABLE t(id BIGINT)")
    before = commit._transaction

    def lost_after_commit(con, plan, files):
        monkeypatch.setattr(commit, "_transaction", before)
        before(con, plan, files)
        con._usock.shutdown(socket.SHUT_RDWR)
        con.run("SELECT 1")  # raises the error of a lost connection

    monkeypatch.setattr(commit, "_transaction", lost_after_commit)
    done = lake.ingest(spark.range(0, 10, 1, 1), token="job")
    assert done.outcome == "already-committed"
    assert lake.sql("SELECT count(*) FROM t") == [(10,)]
    assert lake.verify().findings == []


def test_a_second_run_of_a_running_job_is_refused(lake, spark):
    lake.sql("CREATE TABLE t(id BIGINT)")
    with closing(connect_postgres(lake.database.url, "public")) as con:
        job._lock(con, "job")
        with pytest.raises(Conflict, match="running at the moment"):
            lake.ingest(spark.range(3), token="job")
        # PostgreSQL ends a session, and gives its locks back, after the client has gone.
        con.run("SELECT pg_advisory_unlock_all()")
    assert lake.ingest(spark.range(3), token="job").rows == 3


# Numbers of jobs, commits per job, files per commit, DuckDBs; `make soak` uses larger ones.
JOBS, COMMITS, FILES, DUCKDBS = (8, 2, 150, 2) if os.environ.get("POLYNYA_SOAK") else (4, 2, 5, 2)


@pytest.mark.slow
def test_jobs_and_duckdb_commit_side_by_side(lake, spark, moto, native):
    """No row is lost or duplicated, no id is used twice, every snapshot is readable."""
    lake.sql("CREATE TABLE t(writer VARCHAR, id BIGINT)")
    failures = []

    def attempt(work):
        def run(number: int) -> None:
            try:
                work(number)
            except Exception as error:
                failures.append(error)

        return run

    def spark_job(number: int) -> None:
        for turn in range(COMMITS):
            frame = spark.range(0, 5 * FILES, 1, FILES).selectExpr(
                f"'job {number}' AS writer", "id"
            )
            lake.ingest(frame, token=f"{number} {turn}")

    def duckdb(number: int) -> None:
        with connect(LAKE, moto) as con:
            con.execute("SET ducklake_max_retry_count = 100")
            attach(con, lake.as_lake, read_only=False)
            for turn in range(COMMITS * 2):
                rows = 5 if turn % 2 else 40  # inlined rows and rows in a file
                con.execute(
                    f"INSERT INTO lake.t SELECT 'duckdb {number}', i FROM range({rows}) r(i)"
                )

    threads = [threading.Thread(target=attempt(spark_job), args=(i,)) for i in range(JOBS)]
    threads += [threading.Thread(target=attempt(duckdb), args=(i,)) for i in range(DUCKDBS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(1200)
    assert failures == []
    con = native(lake, moto)
    counted = con.sql(
        "SELECT writer, count(*) FROM lake.t GROUP BY writer ORDER BY writer"
    ).fetchall()
    assert counted == [
        *((f"duckdb {i}", 45 * COMMITS) for i in range(DUCKDBS)),
        *((f"job {i}", 5 * FILES * COMMITS) for i in range(JOBS)),
    ]
    snapshots = [
        i for (i,) in con.sql("SELECT snapshot_id FROM ducklake_snapshots('lake')").fetchall()
    ]
    assert snapshots == list(range(2 + JOBS * COMMITS + DUCKDBS * COMMITS * 2))
    counts = [
        con.sql(f"SELECT count(*) FROM lake.t AT (VERSION => {i})").fetchall()[0][0]
        for i in snapshots[1:]
    ]
    assert counts == sorted(counts) and len(set(counts)) == len(counts)
    row_ids = con.sql("SELECT count(DISTINCT rowid), count(*) FROM lake.t").fetchall()
    rows = JOBS * 5 * FILES * COMMITS + DUCKDBS * 45 * COMMITS
    assert row_ids == [(rows, rows)]
    assert lake.verify().findings == []


def test_a_commit_claims_its_snapshot_before_it_reads_anything():
    """Otherwise two runs of one job could both conclude that it is not committed."""
    calls = []

    class Recorder:
        def run(self, sql: str, **_: object) -> list:
            calls.append(" ".join(sql.split()))
            if "pg_get_userbyid" in calls[-1]:
                return [["owner", True, True, "1.0", 1, None]]
            if "next_file_id FROM ducklake_snapshot" in calls[-1]:  # and the lake
                lake = """[{"a": "option", "b": "version", "c": "1.0"},
                  {"a": "snapshot", "b": "7", "c": "1"}]"""
                return [[0, '[{"a": 7, "b": 3, "c": 10, "d": 20}]'], [1, lake]]
            return [[8]] if "commit_extra_info" in calls[-1] else []

    plan = Plan(
        spec=IngestSpec(TableName("main", "t"), "t"), lake=None, schema=None, table=None,
        changes=None, partition_keys=(),
    )  # fmt: skip
    assert commit._transaction(Recorder(), plan, []).already
    words = [call.split()[0] for call in calls]
    assert words == ["BEGIN", "SELECT", "SELECT", "INSERT", "SELECT", "ROLLBACK", "COMMIT"]
    assert calls[3].startswith(" ".join(INSERT_SNAPSHOT.split())[:40])
