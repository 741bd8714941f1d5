"""Each ALTER adds a table of inlined rows; reading all of them takes one statement."""

from contextlib import closing

import pytest
from pg8000.native import Connection
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_local.clients.native import Lake

from tests.support.servers.in_process import standing_in

TYPES = ("INTEGER", "VARCHAR", "DOUBLE", "DATE", "STRUCT(x INTEGER)", "INTEGER DEFAULT 7")
VALUES = ("1", "'it''s \"(a, b)\\'", "0.5", "'0044-03-15 (BC)'", "{'x': 1}", "8")


def lake_of(number: int, server, s3_endpoint: str) -> Lake:
    name = f"inlined_tables_{number}"
    lake = Lake(name, server.create_database(name), f"s3://lakes/{name}")
    with connect(LAKE, s3_endpoint) as con:
        source = literal(f"ducklake:postgres:{lake.database.libpq}")
        con.execute(f"ATTACH {source} AS lake (DATA_PATH '{lake.data_path}')")
        con.execute("CREATE TABLE lake.t(k INTEGER, q VARCHAR, r BLOB)")
        con.execute("INSERT INTO lake.t VALUES (0, 'a', 'b'), (-1, NULL, NULL)")
        for n in range(1, number):
            con.execute(f"ALTER TABLE lake.t ADD COLUMN c{n} {TYPES[n % len(TYPES)]}")
            con.execute(f"INSERT INTO lake.t (k, c{n}) VALUES ({n}, {VALUES[n % len(VALUES)]})")
            if n % 5 == 0:
                con.execute(f"ALTER TABLE lake.t DROP COLUMN c{n - 2}")
        con.execute("UPDATE lake.t SET k = 100 WHERE k = 1")
    return lake


@pytest.fixture
def run(monkeypatch) -> list[str]:
    """The statements that were sent to PostgreSQL."""
    sent: list[str] = []
    original = Connection.run

    def counted(self, sql, *args, **kwargs):
        sent.append(sql)
        return original(self, sql, *args, **kwargs)

    monkeypatch.setattr(Connection, "run", counted)
    return sent


@pytest.mark.parametrize("numbers", [(3, 24)])
def test_the_number_of_statements_does_not_grow_with_the_tables(
    numbers, postgres_server, moto, run
):
    sent = []
    for number in numbers:
        lake = lake_of(number, postgres_server, moto)
        with closing(lake.database.connect()) as con:
            assert con.run("SELECT count(*) >= :n FROM ducklake_inlined_data_tables", n=number)[0][
                0
            ]
        with closing(native.open(lake, moto)) as judge:
            truth, columns = judge.canonical("main", "t"), judge.columns("main", "t")
        with standing_in(lake, moto, POWERTOOLS_METRICS_DISABLED="true") as bridge:
            run.clear()
            with closing(pyiceberg.open(bridge.api_uri, "lake", bridge.s3_uri)) as reader:
                rows = from_arrow(reader.rows("main", "t"), columns)
            sent.append(len(run))
        assert difference(truth, rows) == []
    assert sent[0] == sent[1] < 60
