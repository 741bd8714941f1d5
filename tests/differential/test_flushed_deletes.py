"""Deletes that DuckLake flushes after their data file has ended.

DuckLake 1.5.5 gives such a file a delete file without an end, beside the one that it has: earlier
snapshots then show its rows once for each of the two, and deleted rows too. Polynya answers with
the rows that were there, by both delete files together.
"""

from contextlib import closing

import pytest
from polynya_local.clients import pyiceberg
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_local.clients.native import Lake

from tests.support import rest
from tests.support.servers.in_process import standing_in

LIVING = [
    "CREATE TABLE t(k BIGINT)",
    "INSERT INTO t SELECT range FROM range(10)",
    "DELETE FROM t WHERE k = 1",
    "CALL ducklake_flush_inlined_data('lake')",
    "DELETE FROM t WHERE k IN (2, 3, 4)",
    "DELETE FROM t WHERE k IN (5, 6)",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
]
FLUSH = [
    "INSERT INTO t SELECT range FROM range(20, 25)",
    "DELETE FROM t WHERE k = 20",
    "CALL ducklake_flush_inlined_data('lake')",
]


@pytest.fixture
def lake(postgres_server, moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    name = "flushed_deletes"
    return Lake(name, postgres_server.create_database(name), f"s3://lakes/{name}")


def test_an_ended_file_with_two_delete_files_has_the_rows_that_were_there(lake, moto):
    with closing(connect(LAKE, moto)) as con:
        source = literal(f"ducklake:postgres:{lake.database.libpq}")
        con.execute(f"ATTACH {source} AS lake (DATA_PATH {literal(lake.data_path)})")
        con.execute("USE lake")

        def keys(sql):
            return sorted(k for (k,) in con.execute(sql).fetchall())

        rows = {}
        for statement in [*LIVING, *FLUSH]:
            con.execute(statement)
            newest = "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')"
            [[snapshot_id]] = con.execute(newest).fetchall()
            rows.setdefault(snapshot_id, keys("FROM t"))
        natively = {at: keys(f"SELECT k FROM t AT (VERSION => {at})") for at in rows}
    wrong = {at for at in rows if natively[at] != rows[at]}
    doubled = {at for at in wrong if len(natively[at]) > len(set(natively[at]))}
    assert wrong == doubled == {5, 6}, "the fault that this test is about"
    with (
        standing_in(lake, moto) as bridge,
        closing(pyiceberg.open(bridge.api_uri, "lake", bridge.s3_uri)) as reader,
    ):
        listed = rest.Rest(bridge.api_uri, "lake").load_table("main", "t")["snapshots"]
        found = {
            (at := snapshot["snapshot-id"]): sorted(reader.rows("main", "t", at)["k"].to_pylist())
            for snapshot in listed
        }
    assert found == {at: rows[at] for at in found}
    assert wrong <= found.keys()
