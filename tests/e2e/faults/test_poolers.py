"""Through PgBouncer, which gives each session, or each transaction, one of its own connections."""

from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from polynya.ducklake.connection.database import BEGIN_COMMIT, Database
from polynya.runtime.errors import ConcurrentCommit, Misconfigured
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_pipeline.common.database import connect
from polynya_pipeline.common.errors import BadInput

from tests.support import rest
from tests.support.servers import in_process
from tests.support.servers.pgbouncer import KEEPS_PREPARED, executable, pgbouncer, version
from tests.support.writes.transactions import read
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

pytestmark = pytest.mark.skipif(
    executable() is None, reason="no PgBouncer: apt-get install pgbouncer, or make setup as root"
)

WAYS = {
    "session": ("session", {}),
    # Each transaction is in another session than the one before.
    "transaction": ("transaction", {"server_round_robin": "1", "min_pool_size": "3"}),
    # Each begins in a session that another client has used.
    "one connection": ("transaction", {"default_pool_size": "1"}),
    # It prepares again, in the session of a transaction, what the client has prepared in another.
    "prepared": (
        "transaction",
        {"max_prepared_statements": "100", "server_round_robin": "1", "min_pool_size": "3"},
    ),
    "parameters left out": (
        "transaction",
        {
            "ignore_startup_parameters": "default_transaction_read_only, statement_timeout, jit, "
            "IntervalStyle, bytea_output, extra_float_digits, search_path, "
            "idle_in_transaction_session_timeout"
        },
    ),
}

ODD = {
    "search_path": "public",
    "IntervalStyle": "iso_8601",
    "bytea_output": "escape",
    "extra_float_digits": "-3",
    "jit": "on",
    "TimeZone": "Asia/Kathmandu",
    "DateStyle": "German",
    "statement_timeout": "0",
}


@pytest.fixture(scope="module", params=WAYS)
def pooled(request, postgres_server):
    """Gives a database its address behind the pooler."""
    mode, settings = WAYS[request.param]
    if "max_prepared_statements" in settings and version() < KEEPS_PREPARED:
        pytest.skip("this PgBouncer keeps no prepared statements: 1.21 and later do")
    with pgbouncer(postgres_server.maintenance, mode, **settings) as pooler:
        yield lambda database: replace(database, port=pooler.port)


IN_CI = "transaction"
WITH_DATA = pytest.mark.parametrize(
    "pooled",
    [pytest.param(way, marks=[] if way == IN_CI else pytest.mark.slow) for way in WAYS],
    indirect=True,
)


@WITH_DATA
@pytest.mark.parametrize("name", ["04", pytest.param("13", marks=pytest.mark.slow)])
def test_all_rows_are_read_through_a_pooler(name, pooled, lake, moto):
    made = lake(f"{name}-1.0")
    truth = native.open(made, moto)
    behind = replace(made, database=pooled(made.database))
    with in_process.bridge(behind, moto) as bridge:
        client = pyiceberg.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
        catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        for table in truth.tables():
            (*_, last) = catalog.load_table(table.namespace, table.name)["snapshots"]
            where = (table.namespace, table.name, last["snapshot-id"])
            rows = from_arrow(client.rows(*where), truth.columns(*where))
            assert not difference(truth.canonical(*where), rows), where
        client.close()
    truth.close()


DATA = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": pa.array(["a", "b", None])})


@WITH_DATA
def test_clients_and_ducklake_write_through_a_pooler(pooled, lake, moto):
    made = lake.write("behind_a_pooler", EMPTY)
    behind = replace(made, database=pooled(made.database))
    set_up_writes(behind)
    with (
        in_process.bridge(behind, moto, writes=True) as bridge,
        closing(client_of(bridge)) as client,
    ):
        table = client.create_table("main.t", DATA.schema)
        for _ in range(2):
            table.append(DATA)
        with judging(behind, moto) as judge:
            judge.con.execute("INSERT INTO lake.main.t VALUES (4, 'native')")
        table.delete("id = 2")
    with judging(made, moto) as judge:
        rows = "VALUES (1::BIGINT, 'a'), (3, NULL), (1, 'a'), (3, NULL), (4, 'native')"
        judge.expect("t", f"SELECT * FROM ({rows}) AS v(id, name)")
        judge.check("main.t", "t")


@pytest.fixture(scope="module")
def odd(postgres_server):
    """A database in which every setting of ours has another default."""
    database = postgres_server.create_database("odd_behind_poolers")
    for name, value in ODD.items():
        database.run(f"ALTER DATABASE {database.dbname} SET {name} = '{value}'")
    database.run("CREATE TABLE number AS SELECT 1 AS n")
    return database


SETTINGS = "SELECT current_setting('transaction_read_only'), " + ", ".join(
    f"current_setting('{name}')" for name in ODD
)
OURS = ["on", "pg_catalog, pg_temp", "postgres", "hex", "1", "off", "UTC", "ISO, MDY", "7s"]


@pytest.mark.parametrize("connections", [1, 3])
def test_every_transaction_has_our_settings_and_only_reads(pooled, odd, connections):
    opened = [Database(pooled(odd).url, "public", timeout_seconds=7) for _ in range(connections)]
    for database in opened * 3:
        database.keep_prepared(True)
        assert read(database, lambda con: con.run(SETTINGS)) == [OURS]
        assert read(database, lambda con: con.run("SELECT n + :a FROM public.number", a=1)) == [[2]]
        with pytest.raises(Misconfigured, match="25006"):
            read(database, lambda con: con.run("UPDATE public.number SET n = 2"))
    for database in opened:
        database.close()


def test_a_session_is_left_as_it_was(pooled, odd):
    """The next client of the pooler gets it."""
    database = Database(pooled(odd).url, "public")
    with closing(pooled(odd).connect()) as other:
        before = other.run(SETTINGS)
        assert read(database, lambda con: con.run("SELECT 1")) == [[1]]
        assert other.run(SETTINGS) == before
    database.close()


def test_a_job_that_needs_a_session_says_that_a_pooler_gives_none(pooled, odd):
    with pytest.raises(BadInput, match="the database's own address"):
        connect(pooled(odd).url, "public", needs_session=True)
    with closing(connect(pooled(odd).url, "public")) as con:
        assert con.run("SELECT 1") == [[1]]


@WITH_DATA
def test_a_commit_waits_for_others_no_longer_than_the_time_limit(pooled, lake):
    """The time limit, which PgBouncer does not pass on, is there when LOCK waits."""
    made = set_up_writes(lake.write("waits_behind_a_pooler", EMPTY))
    waits = Database(pooled(made.database).url, "public", timeout_seconds=1)
    direct = Database(made.database.url, "public")
    too_long = pytest.raises(ConcurrentCommit, match="too long")
    with direct.transaction(BEGIN_COMMIT), too_long, waits.transaction(BEGIN_COMMIT):
        pass
    for database in (waits, direct):
        database.close()
