"""Manifests that are built while a thread reads the next ones: the same bytes, one connection."""

import threading
from contextlib import closing

import pytest
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.ducklake.connection.database import Database
from polynya.runtime.errors import Refused, ServiceUnavailable
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.virtual_files import manifests

from tests.support.servers.avro_files import AvroServer

pytestmark = pytest.mark.usefixtures("s3")

TABLES = {"62": "pe", "27": "ad", "22": "se", "36": "mg"}
"""By the lake: partitions and deletes, added files, columns that change, merged files."""

LAKE = "62"
IN_CI = (LAKE, "36")
NEVER = 10**9


class Kept(FileCache):
    """Calls a function before each file is put."""

    def __init__(self, before=lambda: None) -> None:
        super().__init__(None, MemoryCache())
        self.before = before

    def put(self, key: str, body: bytes) -> bytes:
        self.before()
        return super().put(key, body)


def once(work):
    """A function that does the work at its first call; files are put by several threads."""
    lock, works = threading.Lock(), [work]

    def call() -> None:
        with lock:
            work = works.pop() if works else None
        if work is not None:
            work()

    return call


def server(lake, database: Database, cache: FileCache, **environ: str) -> AvroServer:
    """With a manifest for each data file."""
    return AvroServer(lake, database, cache, **{"CHUNK_FILES": "1"} | environ)


@pytest.fixture
def connected(lake):
    """The lake of a number, and a database connection to it."""
    databases = []

    def open_(number: str):
        one = lake(number)
        databases.append(Database(one.database.url, one.metadata_schema))
        return one, databases[-1]

    yield open_
    for database in databases:
        database.close()


@pytest.fixture
def users(monkeypatch):
    """The threads that sent statements; fails if two send at the same time."""
    threads = set()
    in_use = threading.Lock()
    run = CatalogConnection.run

    def alone(self, *args, **kwargs):
        assert in_use.acquire(blocking=False), "two threads use the connection"
        try:
            threads.add(threading.get_ident())
            return run(self, *args, **kwargs)
        finally:
            in_use.release()

    monkeypatch.setattr(CatalogConnection, "run", alone)
    return threads


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[pytest.mark.slow] * (n not in IN_CI)) for n in TABLES]
)
def test_a_thread_gives_the_same_bytes(number, connected, users, monkeypatch):
    one, database = connected(number)
    monkeypatch.setattr(manifests, "FEW", 0)
    with_thread = server(one, database, Kept()).avro_files(TABLES[number])
    assert len(users) > 1
    users.clear()
    monkeypatch.setattr(manifests, "FEW", NEVER)
    assert server(one, database, Kept()).avro_files(TABLES[number]) == with_thread
    assert users == {threading.get_ident()}


@pytest.mark.parametrize("first", [1, 3, 100])
def test_the_chunks_of_a_query_do_not_change_bytes(first, connected, monkeypatch):
    one, database = connected(LAKE)
    expected = server(one, database, Kept()).avro_files("pe")
    monkeypatch.setattr(manifests, "FIRST_CHUNKS", first)
    monkeypatch.setattr(manifests, "CHUNKS_PER_QUERY", first)
    monkeypatch.setattr(manifests, "COLUMNS_AHEAD", first)
    assert server(one, database, Kept()).avro_files("pe") == expected


def test_a_build_that_runs_out_of_time_leaves_the_connection_to_the_next_request(connected, users):
    one, database = connected(LAKE)
    kept = Kept()
    hurried = server(one, database, kept, BUILD_SECONDS="1")
    key = hurried.lists("pe")[-1]
    threads = threading.active_count()
    late = threading.Event()
    kept.before = lambda: late.wait(1.1)
    with pytest.raises(ServiceUnavailable, match="polynya publish"):
        hurried.read(key)
    assert threading.active_count() == threads
    late.set()
    assert server(one, database, kept).read(key) == server(one, database, Kept()).read(key)


def test_a_connection_that_is_lost_while_reading_ahead_is_opened_again(connected, monkeypatch):
    monkeypatch.setattr(manifests, "FIRST_CHUNKS", 1)
    monkeypatch.setattr(manifests, "CHUNKS_PER_QUERY", 1)
    monkeypatch.setattr(manifests, "COLUMNS_AHEAD", 1)
    one, database = connected(LAKE)
    key = server(one, database, Kept()).lists("pe")[-1]
    killed = []
    kill = once(lambda: killed.append(terminate(one)))
    body = server(one, database, Kept(kill)).read(key)
    assert killed == [1]
    assert body == server(one, database, Kept()).read(key)


def test_a_build_that_was_given_up_can_be_repeated_in_its_transaction(connected, monkeypatch):
    """As `publish` does with the next table, after one was refused."""
    monkeypatch.setattr(manifests, "FIRST_CHUNKS", 1000)
    monkeypatch.setattr(manifests, "COLUMNS_AHEAD", 1)
    one, database = connected(LAKE)

    def refuse() -> None:
        raise Refused("given up")

    with database.transaction() as con:
        files, listed = newest(server(one, database, Kept(once(refuse))), con)
        with pytest.raises(Refused):
            files.cache_manifests(listed)
        files.cache_manifests(listed)
        assert files.missing(manifest.name for manifest in listed) == []


def newest(of: AvroServer, con):
    """The files of the table, and the manifests of its newest snapshot."""
    lake = queries.lake().run(con)
    [schema] = queries.schemas_at(lake.snapshot_id).run(con)
    tables = queries.tables_at(lake.snapshot_id, schema.schema_id).run(con)
    [table] = [table for table in tables if table.table_name == TABLES[LAKE]]
    files = of.files.table_files(con, lake, schema, table, lake.snapshot_id)
    return files, files.manifests(files.history.snapshots[-1].snapshot_id)


def terminate(lake) -> int:
    sql = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid()
        AND application_name = 'polynya'"""
    other = Database(lake.database.url, lake.metadata_schema)
    with closing(other), other.transaction() as con:
        return len(con.run(sql))
