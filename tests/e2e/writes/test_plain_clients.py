"""Clients as a newcomer configures them: DuckDB's ATTACH with its defaults, PyIceberg with an
address and a warehouse; no credentials are vended."""

import os
from collections.abc import Iterator
from contextlib import closing

import pyarrow as pa
import pytest
import requests
from duckdb import DuckDBPyConnection
from polynya_local.clients.duckdb import Process
from polynya_local.clients.duckdb_connection import ICEBERG, connect, literal, s3_secret
from pyiceberg.catalog.rest import RestCatalog

from tests.e2e.writes.rows.test_deletes import OPERATIONS
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, LAKE, STARTS
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

HEADER = {"X-Iceberg-Access-Delegation": "vended-credentials"}
ONE_ROW = (
    INLINE,
    "CREATE TABLE {t} (id BIGINT, s VARCHAR)",
    "INSERT INTO {t} VALUES (1, 'a')",
)
"""A row that is inlined: Java's clients have to plan the scans of such a table."""
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", None]})


@pytest.fixture(scope="module", params=["object-lambda", "materialize"])
def served(request, lake, moto):
    one = set_up_writes(lake.write("plain_clients", LAKE))
    with bridge(one, moto, delivery=request.param, writes=True) as found:
        yield one, found, moto


@pytest.fixture
def twin(served):
    with opened(*served) as found:
        yield found


@pytest.fixture(scope="module")
def duckdb(served) -> Iterator[Process]:
    where = served[1].catalog_uri, served[1].s3_endpoint
    with closing(Process(attached, *where)) as found:
        yield found


def attached(uri: str, s3_endpoint: str, options: str = "") -> DuckDBPyConnection:
    """DuckDB's ATTACH with its defaults, and a secret for S3, in a process without AWS's
    variables."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    con = connect(ICEBERG)
    con.execute(s3_secret(s3_endpoint))
    con.execute(
        f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(uri)}, "
        f"AUTHORIZATION_TYPE 'none', DEFAULT_SCHEMA 'main'{options})"
    )
    return con


def test_duckdb_needs_no_option_if_nothing_is_vended(served, twin, duckdb):
    twin.native(*ONE_ROW)
    table = f"ice.main.{twin.name}"
    assert duckdb.query(f"FROM {table}").to_pylist() == [{"id": 1, "s": "a"}]
    insert = "INSERT INTO {t} VALUES (2, 'b')"
    twin.changes(insert, lambda: duckdb.query(insert.format(t=table)))
    twin.check()
    duckdb.query(f"CREATE TABLE {table}_made AS FROM {table}")
    assert twin.con.execute(f"SELECT count(*) FROM {twin.source}_made").fetchall() == [(2,)]


def test_no_table_has_a_configuration_if_credentials_are_asked_for_and_not_vended(served, twin):
    twin.native(*ONE_ROW)
    of_main = f"{served[1].catalog_uri}/v1/lake/namespaces/main/tables"
    fields = [{"id": 1, "name": "id", "type": "long", "required": False}]
    schema = {"type": "struct", "fields": fields}
    asked = {"name": f"{twin.name}_asked", "schema": schema}
    answers = [
        requests.get(f"{of_main}/{twin.name}", headers=HEADER, timeout=60),
        requests.post(of_main, json=asked, headers=HEADER, timeout=60),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert answer.json()["config"] == {} and "storage-credentials" not in answer.json()


INLINED = ("inlined rows", "inlined rows of two versions")


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", INLINED)
def test_duckdb_changes_inlined_rows(twin, duckdb, start, operation):
    """Its delete file is beside the virtual file of the rows, whatever the delivery."""
    twin.native(DO_NOT_INLINE, *STARTS[start])
    table = f"ice.main.{twin.name}"
    for sql in OPERATIONS[operation]:
        twin.changes(sql, lambda sql=sql: duckdb.query(sql.format(t=table)))
    twin.check()
    statements = "DELETE FROM {t} WHERE id = 4", "DELETE FROM {t} WHERE id IN (5, 8)"
    twin.native(DO_NOT_INLINE, "INSERT INTO {t} (id, s, p) VALUES (4, 'x', 1), (5, 'x', 2)")
    duckdb.query("BEGIN")
    for sql in statements:
        duckdb.query(sql.format(t=table))
    twin.changes(";".join(statements), lambda: duckdb.query("COMMIT"))
    twin.check()


def test_what_clients_are_told_of_s3(served):
    config = requests.get(f"{served[1].catalog_uri}/v1/config", timeout=60).json()
    where = {
        "s3.endpoint": served[1].s3_endpoint,
        "s3.path-style-access": "true",
        "s3.region": "us-east-1",
        "client.region": "us-east-1",
    }
    credentials = {"s3.access-key-id": "any", "s3.secret-access-key": "any"}
    is_real = served[1].delivery == "materialize"
    assert config["defaults"] == where | ({} if is_real else credentials)
    assert config["overrides"]["s3.delete-enabled"] == "false"


def test_pyiceberg_needs_an_address_and_a_warehouse(served, twin, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with closing(RestCatalog("c", uri=served[1].catalog_uri, warehouse="lake")) as catalog:
        table = catalog.create_table(f"main.{twin.name}", ROWS.schema)
        table.append(ROWS)
        assert catalog.load_table(f"main.{twin.name}").scan().to_arrow().to_pylist() == (
            ROWS.to_pylist()
        )
    own = {"s3.endpoint": "http://127.0.0.1:9", "s3.region": "eu-central-1"}
    with closing(RestCatalog("c", uri=served[1].catalog_uri, warehouse="lake", **own)) as catalog:
        assert own.items() <= catalog.properties.items()


@pytest.mark.slow
@pytest.mark.spark
def test_spark_needs_an_address_and_a_warehouse_and_deletes_nothing(served, twin):
    from polynya_local.clients import spark

    session, catalog = spark.session(), f"plain_{served[1].delivery.replace('-', '_')}"
    settings = {"type": "rest", "uri": served[1].catalog_uri, "warehouse": "lake"}
    settings["io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
    session.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
    for name, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{catalog}.{name}", value)
    table = f"{catalog}.main.{twin.name}"
    session.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    [[location]] = session.sql(f"SELECT file_path FROM {table}.files").collect()
    spark3 = session._jvm.org.apache.iceberg.spark.Spark3Util
    files = spark3.loadIcebergTable(session._jsparkSession, table).io()
    files.deleteFile(location)
    assert files.newInputFile(location).exists()
    assert [row.id for row in session.sql(f"FROM {table}").collect()] == [1]
