"""Commits of clients take place one after the other; other writers of the catalog do not wait."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import pyarrow as pa
import pytest
from pg8000.native import identifier
from polynya.ducklake.connection.database import BEGIN_COMMIT, BEGIN_WRITE, Database
from polynya.ducklake.queries.writers import writer_rights
from polynya.ducklake.writes import new_snapshot
from polynya.ducklake.writes.new_snapshot import CommitRow, claim_snapshot_id
from polynya.runtime.errors import ConcurrentCommit, Misconfigured
from polynya_local.processes.serving import serving
from polynya_pipeline.common.database import connect

from tests.support.servers.slow_servers import delaying
from tests.support.writes.writable import EMPTY, client_of, set_up_writes

pytestmark = pytest.mark.versions("1.0")

UUID = "5d2e4ac7-7f0c-4e0c-8c52-0d1f7d3e1a11"
OWNER, NOINHERIT = "queue owner", "queue_noinherit"

WAITING = """
SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
WHERE NOT l.granted AND a.datname = current_database()"""


@pytest.fixture
def catalog(lake, request):
    return set_up_writes(lake.write(request.node.originalname, EMPTY))


@pytest.fixture
def opened(catalog):
    """Opens connections to the catalog, which end with the test."""
    databases = []

    def open_database(url: str = "", **options) -> Database:
        databases.append(Database(url or catalog.database.url, "public", **options))
        return databases[-1]

    yield open_database
    for database in databases:
        database.close()


@pytest.fixture
def threads():
    with ThreadPoolExecutor(4) as pool:
        yield pool


def write_snapshot(database: Database, begin: str) -> int:
    """Commit an empty snapshot; returns its id."""
    with database.transaction(begin) as con:
        snapshot = claim_snapshot_id(con)
        snapshot.finish("a test")
    return snapshot.snapshot_id


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def wait_until_waiting(catalog, transactions: int) -> None:
    wait_for(lambda: catalog.database.run(WAITING) == [[transactions]])


def outcome(future: Future) -> str:
    return type(error).__name__ if (error := future.exception(30)) else "committed"


@pytest.mark.parametrize(
    ("begin", "outcomes"),
    # What a queue is for: without it, each that waits for the id of a snapshot fails.
    [(BEGIN_COMMIT, ["committed"] * 2), (BEGIN_WRITE, ["ConcurrentCommit"] * 2)],
)
def test_commits_that_wait_for_another_one_take_place(catalog, opened, threads, begin, outcomes):
    with opened().transaction(BEGIN_COMMIT) as con:
        first = claim_snapshot_id(con)
        waiting = [threads.submit(write_snapshot, opened(), begin) for _ in range(2)]
        wait_until_waiting(catalog, 2)
        first.finish("the first")
    assert [outcome(future) for future in waiting] == outcomes
    snapshots = catalog.database.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
    assert snapshots == [[first.snapshot_id + outcomes.count("committed")]]


def test_a_job_that_has_claimed_the_snapshot_writes_while_a_commit_waits_for_it(
    catalog, opened, threads
):
    """`ingest` claims without the queue; both write polynya_commits."""
    with opened().transaction(BEGIN_WRITE) as con:
        job = claim_snapshot_id(con)
        commit = threads.submit(write_snapshot, opened(), BEGIN_COMMIT)
        wait_until_waiting(catalog, 1)
        new_snapshot.add(con, job.snapshot_id, [CommitRow(UUID, 1, 0, "append", None)])
        job.finish("a job")
    assert outcome(commit) == "ConcurrentCommit"
    assert catalog.database.run("SELECT count(*) FROM polynya_commits") == [[1]]


@pytest.mark.parametrize("limit", ["statement_timeout", "lock_timeout"])
def test_a_commit_does_not_wait_for_ever(catalog, opened, limit):
    seconds = {"statement_timeout": 3, "lock_timeout": 20}[limit]
    if limit == "lock_timeout":
        name = identifier(catalog.database.dbname)
        catalog.database.run(f"ALTER DATABASE {name} SET lock_timeout = '300ms'")
    waits = opened(timeout_seconds=seconds)
    too_long = pytest.raises(ConcurrentCommit, match="take too long")
    with opened().transaction(BEGIN_COMMIT), too_long:
        write_snapshot(waits, BEGIN_COMMIT)
    assert write_snapshot(waits, BEGIN_COMMIT)


def test_a_commit_that_waited_hears_what_postgresql_says_although_it_says_it_late(catalog, opened):
    """As on a busy machine, where the answer needs longer than the statement might take."""
    with delaying(catalog.database.port, 0.7) as port:
        waits = opened(replace(catalog.database, port=port).url, timeout_seconds=0.5)
        too_long = pytest.raises(ConcurrentCommit, match="take too long")
        with opened().transaction(BEGIN_COMMIT), too_long:
            write_snapshot(waits, BEGIN_COMMIT)
        waits.close()


def test_a_role_without_the_owners_rights_waits_in_the_queue_as_the_owner(
    catalog, opened, threads, postgres_server
):
    """A member of the owner that does not inherit: it has the rights after SET ROLE only."""
    maintenance = postgres_server.maintenance
    owner = identifier(OWNER)
    maintenance.run(f"CREATE ROLE {owner}")
    maintenance.run(f"CREATE ROLE {NOINHERIT} LOGIN NOINHERIT IN ROLE {owner}")
    try:
        with closing(catalog.database.connect()) as con:
            for [table] in con.run("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
                con.run(f"ALTER TABLE {identifier(table)} OWNER TO {owner}")
                # What SELECT alone permits, before SET ROLE.
                con.run(f"GRANT SELECT ON {identifier(table)} TO {NOINHERIT}")
            con.run(f"GRANT USAGE, CREATE ON SCHEMA public TO {owner}, {NOINHERIT}")
        writer = opened(replace(catalog.database, user=NOINHERIT).url)
        with opened().transaction(BEGIN_COMMIT) as con:
            first = claim_snapshot_id(con)
            waiting = threads.submit(write_snapshot, writer, BEGIN_COMMIT)
            wait_until_waiting(catalog, 1)
            first.finish("the first")
        ids = [waiting.result(30), write_snapshot(writer, BEGIN_COMMIT)]
        assert ids == [first.snapshot_id + 1, first.snapshot_id + 2]
    finally:
        catalog.database.run(f"REASSIGN OWNED BY {owner} TO CURRENT_USER")
        catalog.database.run(f"DROP OWNED BY {owner}, {NOINHERIT}")
        maintenance.run(f"DROP ROLE {NOINHERIT}")
        maintenance.run(f"DROP ROLE {owner}")


def test_a_catalog_that_is_not_set_up_for_writes_says_so(lake, opened):
    made = lake.write("not_set_up", EMPTY)
    database = opened(made.database.url)
    for _ in range(2):
        with pytest.raises(Misconfigured, match="polynya writes --setup"):
            write_snapshot(database, BEGIN_COMMIT)
    set_up_writes(made)
    assert write_snapshot(database, BEGIN_COMMIT)


def test_two_set_up_writes_at_the_same_time(lake, threads):
    made = lake.write("set_up_twice", EMPTY)
    with closing(connect(made.database.url, "public")) as con:
        rights = writer_rights().run(con)
        con.run("BEGIN")
        for statement in new_snapshot.statements(rights):
            con.run(statement)
        second = threads.submit(set_up_writes, made)
        wait_until_waiting(made, 1)
        con.run("COMMIT")
    assert outcome(second) == "committed"
    assert made.database.run("SELECT count(*) FROM polynya_commits") == [[0]]


ROLLED_BACK = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()"
DATA = pa.table({"id": pa.array([1, 2, 3], pa.int64())})


def test_no_commit_of_many_clients_is_tried_again(catalog, moto, threads):
    """Each has a table of its own. What fails in PostgreSQL is rolled back there."""
    with ExitStack() as stack:
        functions = [
            stack.enter_context(serving(catalog.database.url, moto, writes=True)) for _ in range(2)
        ]
        tables = []
        for number, served in enumerate(functions * 2):
            client = stack.enter_context(closing(client_of(served)))
            tables.append(client.create_table(f"main.t{number}", DATA.schema))
        before = catalog.database.run(ROLLED_BACK)

        def append(table) -> None:
            for _ in range(6):
                table.append(DATA)

        list(threads.map(append, tables))
    # The statistics are complete when the functions have closed their connections.
    rows = catalog.database.run("SELECT count(*) FROM ducklake_data_file")
    assert rows == [[24]]
    assert catalog.database.run(ROLLED_BACK) == before
