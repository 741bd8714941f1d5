"""Catalogs that PostgreSQL has copied: a standby, a dump that was restored, a subscription."""

import os
from contextlib import closing
from dataclasses import replace
from itertools import chain

import pyarrow as pa
import pytest
from pg8000.native import identifier
from polynya.ducklake.connection.database import Database, retried
from polynya.storage.aws import AwsSettings
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.lakes.opened import readable
from polynya_local.processes.postgres import GIVEN, postgres
from polynya_local.reports.diagnosis import check_up
from polynya_local.reports.generator import Generator
from pyiceberg.exceptions import RESTError

from tests.support.lakes import Lakes
from tests.support.rest import Refused, Rest
from tests.support.servers.in_process import bridge
from tests.support.servers.replicas import (
    dump,
    restore,
    standby,
    subscription,
    wait_for_replay,
    wait_for_subscriber,
)
from tests.support.writes.writable import client_of, judging, set_up_writes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(GIVEN in os.environ, reason="a server that is not ours has no standby"),
]

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE filed(id BIGINT, s VARCHAR);
CALL lake.set_option('data_inlining_row_limit', 0, table_name => 'filed');
INSERT INTO filed SELECT i, 's' || i FROM range(100) AS r(i);
DELETE FROM filed WHERE id < 10;
CREATE TABLE inlined(id BIGINT, s VARCHAR);
INSERT INTO inlined VALUES (1, 'a'), (2, NULL);
INSERT INTO inlined SELECT i, 'f' FROM range(100, 200) AS r(i);
DELETE FROM inlined WHERE id IN (2, 150);
CREATE TABLE whole(id BIGINT, s VARCHAR);
INSERT INTO whole SELECT i, 's' || i FROM range(100) AS r(i);
"""


@pytest.fixture(scope="module")
def server():
    """A server of its own: a standby copies all databases of one."""
    with postgres(wal_level="logical") as server:
        yield server


@pytest.fixture(scope="module")
def replica(server):
    with standby(server, max_standby_streaming_delay="0") as maintenance:
        yield maintenance


@pytest.fixture(scope="module")
def lakes(server, moto):
    return Lakes(server, moto)


def change(lake, moto, *statements: str) -> None:
    with connect(LAKE, moto) as con:
        attach(con, lake, read_only=False)
        con.execute("USE lake")
        for statement in statements:
            con.execute(statement)


def rows_of(served, moto) -> dict:
    """The rows of the tables that are served."""
    with closing(pyiceberg.open(served.catalog_uri, "lake", served.s3_endpoint)) as client:
        names = Rest(served.catalog_uri, "lake").tables()
        return {name: client.rows("main", name) for _, name in names}


def check(rows: dict, lake, moto, snapshot_id: int | None = None) -> None:
    """Compare rows with those that DuckLake reads from a catalog."""
    with closing(native.open(lake, moto)) as truth:
        assert sorted(rows) == sorted(table.name for table in truth.tables())
        for name, table in rows.items():
            expected = truth.canonical("main", name, snapshot_id)
            columns = truth.columns("main", name)
            assert not difference(expected, from_arrow(table, columns)), name


def test_a_standby_is_served_as_of_what_it_has_replayed(lakes, replica, moto):
    lake = lakes.write("behind", SCRIPT)
    copy = replace(lake.database, port=replica.port)
    wait_for_replay(lake.database, replica)
    with bridge(replace(lake, database=copy), moto) as served:
        before = rows_of(served, moto)
        check(before, lake, moto)
        [[newest]] = lake.database.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
        replica.run("SELECT pg_wal_replay_pause()")
        change(lake, moto, "DELETE FROM filed WHERE id = 50", "INSERT INTO inlined VALUES (3, 'b')")
        check(rows_of(served, moto), lake, moto, newest)
        replica.run("SELECT pg_wal_replay_resume()")
        wait_for_replay(lake.database, replica)
        after = rows_of(served, moto)
        check(after, lake, moto)
        assert after != before
        # Without a new snapshot, and with tables that go.
        change(lake, moto, "CALL ducklake_flush_inlined_data('lake')", "CHECKPOINT")
        wait_for_replay(lake.database, replica)
        check(rows_of(served, moto), lake, moto)


def test_a_query_that_replay_cancels_is_sent_again(lakes, replica, moto):
    lake = lakes.write("conflicts", SCRIPT)
    copy = replace(lake.database, port=replica.port)
    wait_for_replay(lake.database, replica)
    tries = []

    @retried
    def count(database: Database) -> list:
        with database.transaction() as con:
            before = con.run("SELECT count(*) FROM ducklake_snapshot")
            tries.append(before)
            if len(tries) == 1:
                lake.database.run("DELETE FROM ducklake_snapshot WHERE snapshot_id = 1")
                lake.database.run("VACUUM ducklake_snapshot")
                wait_for_replay(lake.database, replica)
            return con.run("SELECT count(*) FROM ducklake_snapshot")

    with closing(Database(copy.url, "public")) as database:
        [[number]] = count(database)
    assert [[[number + 1]], [[number]]] == tries


def test_who_writes_through_a_standby_is_told_so(lakes, replica, moto):
    lake = set_up_writes(lakes.write("read_only", SCRIPT))
    copy = replace(lake, database=replace(lake.database, port=replica.port))
    wait_for_replay(lake.database, replica)
    with (
        bridge(copy, moto, writes=True) as served,
        closing(client_of(served)) as client,
        pytest.raises(RESTError, match="standby"),
    ):
        client.load_table("main.filed").append(pa.table({"id": [1], "s": ["x"]}))
    check(rows_after(lake, moto), lake, moto)


def rows_after(lake, moto) -> dict:
    with bridge(lake, moto) as served:
        return rows_of(served, moto)


def test_a_restored_dump_is_served_as_its_original(server, lakes, moto):
    lake = set_up_writes(lakes.write("original", SCRIPT))
    copy = replace(lake, database=server.create_database("restored"))
    documents = []
    with bridge(lake, moto, writes=True) as served, closing(client_of(served)) as client:
        client.load_table("main.filed").append(pa.table({"id": [7], "s": ["client's"]}))
    restore(dump(lake.database), copy.database)
    for one in (lake, copy):
        with bridge(one, moto) as served:
            documents.append(Rest(served.catalog_uri, "lake").load_table("main", "filed"))
            check(rows_of(served, moto), lake, moto)
    assert documents[0] == documents[1]
    with bridge(copy, moto, writes=True) as served, closing(client_of(served)) as client:
        client.load_table("main.filed").append(pa.table({"id": [8], "s": ["the copy's"]}))
    with judging(copy, moto) as judge:
        assert judge.query("SELECT id FROM lake.main.filed WHERE id < 10 ORDER BY 1") == [
            (7,),
            (8,),
        ]


def test_a_server_follows_a_catalog_that_is_restored_in_its_place(lakes, moto):
    """Snapshots with ids that it has served have other rows then."""
    lake = lakes.write("rolled_back", SCRIPT)
    backup = dump(lake.database, "--clean", "--if-exists")
    with bridge(lake, moto) as served:
        change(lake, moto, "INSERT INTO filed VALUES (1000, 'lost')")
        check(rows_of(served, moto), lake, moto)
        restore(backup, lake.database)
        check(rows_of(served, moto), lake, moto)
        change(lake, moto, "INSERT INTO filed VALUES (2000, 'instead')")
        rows = rows_of(served, moto)
        check(rows, lake, moto)
        assert "instead" in rows["filed"]["s"].to_pylist()


def test_a_subscriber_is_served_without_what_it_was_not_sent(server, lakes, moto):
    """Logical replication sends rows, and no new tables: those of inlined rows are missing."""
    lake = lakes.write("published", SCRIPT)
    copy = replace(lake, database=server.create_database("subscribed"))
    with subscription(lake.database, copy.database):
        wait_for_subscriber(lake.database, copy.database)
        with bridge(copy, moto) as served:
            check(rows_of(served, moto), lake, moto)
            change(
                lake,
                moto,
                "INSERT INTO filed VALUES (1000, 'n')",
                "DELETE FROM filed WHERE id = 50",
                "INSERT INTO inlined VALUES (3, 'b')",
                "CALL ducklake_flush_inlined_data('lake')",
                "CALL ducklake_merge_adjacent_files('lake')",
            )
            wait_for_subscriber(lake.database, copy.database)
            check(rows_of(served, moto), lake, moto)
            change(
                lake,
                moto,
                "CREATE TABLE late(id BIGINT)",
                "INSERT INTO late VALUES (1)",
                "DELETE FROM whole WHERE id = 1",
            )
            wait_for_subscriber(lake.database, copy.database)
            catalog = Rest(served.catalog_uri, "lake")
            with pytest.raises(Refused, match="ducklake_inlined_data"):
                catalog.load_table("main", "late")
            with closing(pyiceberg.open(served.catalog_uri, "lake", served.s3_endpoint)) as client:
                assert client.rows("main", "filed").num_rows == 90
                # Nothing says that the first inlined delete of a table has made another one: so
                # docs/serving.md has a condition.
                assert client.rows("main", "whole").num_rows == 100


def replication_findings(lake, moto) -> list[str]:
    generator = Generator(
        lake.database.url, lake.metadata_schema, AwsSettings.from_s3_endpoint(moto)
    )
    with closing(generator.database), readable(lake.database.url, "public", None, moto) as opened:
        report = check_up(generator, opened)
    return [one.message for one in report.findings if one.about == "replication"]


def test_doctor_says_what_a_subscriber_is_not_sent_and_how_it_is(server, lakes, moto):
    lake = lakes.write("doctored", SCRIPT)
    copy = replace(lake, database=server.create_database("doctored_copy"))
    with subscription(lake.database, copy.database):
        wait_for_subscriber(lake.database, copy.database)
        [inlines] = replication_findings(copy, moto)
        assert inlines.startswith("DuckLake makes a table at the first inlined rows")
        assert not replication_findings(lake, moto)
        change(lake, moto, "DELETE FROM whole WHERE id = 1")
        sql = "SELECT tablename FROM pg_tables WHERE tablename LIKE 'ducklake_inlined_delete_%'"
        [table] = {*chain(*lake.database.run(sql))} - {*chain(*copy.database.run(sql))}
        restore(dump(lake.database, "--schema-only", f"--table={table}"), copy.database)
        [missing, _] = replication_findings(copy, moto)
        assert missing.endswith(f"are not replicated: {table}")
        lake.database.run(f"ALTER PUBLICATION copied ADD TABLE {identifier(table)}")
        copy.database.run("ALTER SUBSCRIPTION copied REFRESH PUBLICATION")
        change(lake, moto, "CALL lake.set_option('data_inlining_row_limit', 0)")
        change(lake, moto, "DELETE FROM whole WHERE id = 2", "DELETE FROM inlined WHERE id = 151")
        wait_for_subscriber(lake.database, copy.database)
        assert not replication_findings(copy, moto)
        with bridge(copy, moto) as served:
            check(rows_of(served, moto), lake, moto)
