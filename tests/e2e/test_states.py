"""What a request has read serves the next one only if the catalog is in the same state."""

import os
import signal
import time
from contextlib import closing, suppress

import pytest
import requests
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.ducklake.connection.database import BEGIN, BEGIN_WRITE, Database
from polynya.ducklake.connection.pool import ConnectionPool
from polynya.runtime.errors import ServiceUnavailable
from polynya_local.processes.postgres import GIVEN, postgres

from tests.support.lakes import Lakes
from tests.support.servers.in_process import standing_in
from tests.support.writes.writable import set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER);
-- @repeat 3
INSERT INTO t VALUES ({{i}});
"""


@pytest.fixture(scope="module")
def written(lake):
    return lake.write("states", SCRIPT)


def state(lake, begin: str = BEGIN) -> str | None:
    with (
        closing(Database(lake.database.url, "public")) as database,
        database.transaction(begin) as con,
    ):
        return queries.lake().run(con).state


@pytest.fixture
def reader(written):
    """Gives the state that one process reads now."""
    with closing(Database(written.database.url, "public")) as database:

        def read() -> str | None:
            with database.transaction() as con:
                return queries.lake().run(con).state

        yield read


CHANGES = [
    "INSERT INTO ducklake_tag(object_id, begin_snapshot, key, value) VALUES (1, 1, 'a', 'b')",
    "UPDATE ducklake_data_file SET record_count = record_count",
    "DELETE FROM ducklake_tag",
    "TRUNCATE ducklake_tag",
    "ALTER TABLE ducklake_tag ADD COLUMN more INTEGER",
    "DROP TABLE ducklake_sort_info",
    "GRANT SELECT ON ducklake_tag TO public",
]


def test_a_state_has_one_name_until_something_changes(written, reader):
    with closing(written.database.connect()) as writer:
        assert reader() is not None
        for statement in CHANGES:
            before = reader()
            assert before == reader()
            writer.run(statement)
            assert reader() not in {None, before}, statement


def test_a_state_names_the_transactions_that_still_write(written, reader):
    with closing(written.database.connect()) as first, closing(written.database.connect()) as later:
        before = reader()
        first.run("BEGIN")
        first.run("UPDATE ducklake_data_file SET record_count = record_count")
        assert reader() == before  # nobody sees what it writes
        later.run(CHANGES[0])
        meanwhile = reader()
        assert meanwhile == reader() != before
        assert len(meanwhile.running) == 1
        # Under an id that is not the newest.
        first.run("COMMIT")
        after = reader()
        assert after not in {None, before, meanwhile}
        assert after.ended_since(meanwhile) == meanwhile.running
        assert after.ended_since(before) == {before.xmax, before.xmax + 1}
        assert after.includes(meanwhile) and meanwhile.includes(before)
        assert not meanwhile.includes(after)


def test_a_transaction_that_may_write_sees_a_state_of_its_own(written):
    assert state(written, BEGIN_WRITE) is None
    assert state(written) is not None


def test_what_one_connection_has_read_serves_another_one(written):
    assert state(written) == state(written) is not None


def test_a_state_has_another_name_after_a_crash(moto, monkeypatch):
    """A server that lost what it had not written yet gives its ids a second time."""
    monkeypatch.delenv(GIVEN, raising=False)  # others use that server
    with postgres() as server:
        one = Lakes(server, moto).write("crashing", SCRIPT)
        before = state(one)
        victim = one.database.connect()
        victim.run("CHECKPOINT")  # the tests' server writes its log late
        [[pid]] = victim.run("SELECT pg_backend_pid()")
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while True:
            with suppress(ServiceUnavailable):  # it recovers
                after = state(one)
                break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert after is not None and after.server != before.server


def test_a_table_is_read_once_in_each_state(lake, moto, monkeypatch):
    one = lake.write("states_read", SCRIPT)
    sent: list[str] = []
    run = CatalogConnection.run

    def counted(self, sql, *arguments, **parameters):
        sent.append(sql)
        return run(self, sql, *arguments, **parameters)

    monkeypatch.setattr(CatalogConnection, "run", counted)
    with standing_in(one, moto) as stand_in, closing(one.database.connect()) as writer:
        url = f"{stand_in.api_uri}/v1/lake/namespaces/main/tables/t"

        def snapshots() -> int:
            sent.clear()
            return len(requests.get(url, timeout=60).json()["metadata"]["snapshots"])

        first = snapshots()
        snapshots()
        assert (snapshots(), len(sent)) == (first, 1)  # what has changed
        # As an expiry does it: without a new snapshot.
        writer.run("DELETE FROM ducklake_snapshot WHERE snapshot_id = 2")
        assert snapshots() == first - 1 and len(sent) > 3


def test_a_commit_sends_nothing_on_a_connection_that_it_has_given_back(lake, moto, monkeypatch):
    """Another request may use it: here of a table whose document asks for the ids of its rows."""
    one = set_up_writes(lake.write("states_given_back", SCRIPT))
    idle: set[int] = set()
    sent: list[str] = []
    take, give_back, run = ConnectionPool.take, ConnectionPool.give_back, CatalogConnection.run

    def taken(self):
        connection = take(self)
        idle.discard(id(connection))
        return connection

    def given_back(self, connection):
        idle.add(id(connection))
        give_back(self, connection)

    def counted(self, sql, *arguments, **parameters):
        if id(self) in idle:
            sent.append(sql)
        return run(self, sql, *arguments, **parameters)

    monkeypatch.setattr(ConnectionPool, "take", taken)
    monkeypatch.setattr(ConnectionPool, "give_back", given_back)
    monkeypatch.setattr(CatalogConnection, "run", counted)
    with standing_in(one, moto, writes=True) as stand_in:
        url = f"{stand_in.api_uri}/v1/lake/namespaces/main/tables/t"
        for update in (
            {"action": "upgrade-format-version", "format-version": 3},
            {"action": "set-properties", "updates": {"color": "red"}},
        ):
            answer = requests.post(url, json={"requirements": [], "updates": [update]}, timeout=60)
            assert answer.json()["metadata"]["format-version"] == 3
    assert sent == []
