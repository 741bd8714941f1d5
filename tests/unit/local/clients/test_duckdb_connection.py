"""A connection that opens the files that it is given and no others, and that a signal stops."""

import os
import signal
import time
from contextlib import closing
from threading import Timer

import duckdb
import pytest
from polynya.storage.aws import AwsSettings
from polynya_local.clients.duckdb import confine, connect, interruptible, literal
from polynya_local.reports.native_duckdb import connect_to_s3


class Stopped(Exception):
    """What the handler of the signal raises."""


@pytest.fixture
def con():
    with closing(connect()) as made:
        yield made


def test_a_signal_stops_a_query(con):
    def stop(*_: object) -> None:
        raise Stopped

    endless = "SELECT sum(hash(i)) FROM range(1000000000000) AS r(i)"
    before = signal.signal(signal.SIGUSR1, stop)
    timer = Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        timer.start()
        started = time.monotonic()
        with pytest.raises(Stopped):
            interruptible(con, lambda: con.execute(endless))
        assert time.monotonic() - started < 2
    finally:
        timer.join()
        signal.signal(signal.SIGUSR1, before)
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_a_task_gives_its_result_or_its_error(con):
    assert interruptible(con, lambda: con.execute("SELECT 1").fetchall()) == [(1,)]
    with pytest.raises(duckdb.ParserException):
        interruptible(con, lambda: con.execute("SELEC"))


FORBIDDEN = (
    "SELECT * FROM read_text('{other}')",
    "ATTACH '{other}' AS other (READ_ONLY)",
    "COPY (SELECT 1) TO '{other}'",
    "LOAD '{other}'",
    "SET enable_external_access = true",
    "SET allowed_paths = ['{other}']",
)


@pytest.mark.parametrize("name", ["lake.db", "a 'quoted' näme.db", "../lake.db"])
def test_a_confined_connection_opens_its_files_only(name, con, tmp_path):
    (tmp_path / "folder").mkdir()
    allowed, other = tmp_path / "folder" / name, tmp_path / "other.db"
    for file in (allowed, other):
        duckdb.connect(file).close()
    confine(con, [allowed, allowed.with_name(allowed.name + ".wal")])
    for _ in range(2):
        con.execute(f"ATTACH {literal(str(allowed))} AS allowed (READ_ONLY)")
        con.execute("DETACH allowed")
    for statement in FORBIDDEN:
        with pytest.raises(duckdb.Error):
            con.execute(statement.format(other=other))


def test_what_reads_the_lake_in_s3_reads_no_local_file(tmp_path, con):
    file = tmp_path / "x.parquet"
    con.execute(f"COPY (SELECT 1 AS i) TO {literal(str(file))}")
    with closing(connect_to_s3(AwsSettings())) as reader, pytest.raises(duckdb.PermissionException):
        reader.execute(f"FROM read_parquet({literal(str(file))})")
