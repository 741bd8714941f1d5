"""Tables that PyIceberg creates and appends to, as native DuckLake and all clients read them."""

from contextlib import closing
from importlib.metadata import version

import pytest
from polynya_local.clients import duckdb as duckdb_client
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, set_up_writes
from tests.support.writes.written_rows import ROWS, WITH_BC

pytestmark = pytest.mark.versions("1.1", "1.0")

DELIVERIES = ("materialize", "object-lambda")


@pytest.fixture(scope="module", params=DELIVERIES)
def served(request, lake, moto):
    one = set_up_writes(lake.write("appends", EMPTY))
    with bridge(one, moto, delivery=request.param, writes=True) as found:
        yield one, found


@pytest.fixture
def where(served):
    _, found = served
    return found.catalog_uri, found.warehouse, found.s3_endpoint


@pytest.fixture
def pyiceberg(where):
    uri, warehouse, endpoint = where
    with closing(
        RestCatalog("c", uri=uri, warehouse=warehouse, **s3_properties(endpoint))
    ) as found:
        yield found


@pytest.fixture
def duckdb(where):
    with closing(duckdb_client.open(*where)) as found:
        yield found


@pytest.mark.slow("[materialize]")
def test_pyiceberg(pyiceberg, judge):
    judge.expect("py", f"{ROWS}, (SELECT TIME '23:59:59.999999' AS ti)")
    data = judge.con.execute("FROM memory.main.py").to_arrow_table()
    table = pyiceberg.create_table("main.py", data.schema)
    assert judge.query("FROM lake.main.py") == []
    table.append(data)
    judge.check("main.py", "py")
    judge.expect("py", "FROM memory.main.py")
    table.append(data)
    judge.check("main.py", "py")
    table.append(data.slice(0, 0))
    judge.check("main.py", "py")
    assert pyiceberg.load_table("main.py").scan().to_arrow().num_rows == 10
    assert engine_of(pyiceberg, "main.py") == ("PyIceberg", version("pyiceberg"))


def engine_of(catalog, table):
    """What the summary of the newest snapshot says, as Iceberg's specification names it."""
    summary = catalog.load_table(table).current_snapshot().summary
    return summary["engine-name"], summary["engine-version"]


@pytest.mark.slow("[object-lambda]")
def test_duckdb(duckdb, judge, pyiceberg):
    judge.expect("dk", WITH_BC)
    duckdb.query(f"CREATE TABLE ice.main.dk AS {WITH_BC}")
    judge.check("main.dk", "dk")
    assert engine_of(pyiceberg, "main.dk") == ("duckdb", version("duckdb"))
    duckdb.query(f"INSERT INTO ice.main.dk {WITH_BC}")
    judge.expect("dk", WITH_BC)
    judge.check("main.dk", "dk")
    values = "TIME '01:02:03.000004', 'f47ac10b-58cc-4372-a567-0e02b2c3d479'::UUID, NULL::VARCHAR"
    duckdb.query("CREATE TABLE ice.main.empty (ti TIME, u UUID, s VARCHAR)")
    duckdb.query(f"INSERT INTO ice.main.empty VALUES ({values})")
    judge.expect("few", f"SELECT * FROM (VALUES ({values})) AS v(ti, u, s)")
    judge.check("main.empty", "few")


@pytest.mark.slow("[object-lambda]")
@pytest.mark.spark
def test_spark(where, judge):
    from polynya_local.clients import spark

    one = spark.open(*where)
    judge.expect("sp", ROWS)
    data = judge.con.execute("FROM memory.main.sp").to_arrow_table()
    settings = spark.session().conf
    # Otherwise it makes timestamps with a time zone of all timestamps. Other tests of this process
    # use the same session.
    settings.set("spark.sql.timestampType", "TIMESTAMP_NTZ")
    try:
        frame = spark.session().createDataFrame(data)
    finally:
        settings.unset("spark.sql.timestampType")
    frame.writeTo(f"{one.catalog}.main.sp").create()
    judge.check("main.sp", "sp")
    frame.writeTo(f"{one.catalog}.main.sp").append()
    judge.expect("sp", ROWS)
    judge.check("main.sp", "sp")
