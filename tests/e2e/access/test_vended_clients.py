"""Clients that have no credentials but vended ones create, fill and change tables.

S3 refuses what the session policies do not allow, as on AWS.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pytest
import requests
from duckdb import DuckDBPyConnection
from moto.core import DEFAULT_ACCOUNT_ID
from polynya_local.clients.duckdb import ICEBERG, Process, connect, literal
from polynya_local.processes.serving import Bridge
from pyiceberg.catalog.rest import RestCatalog

from tests.support.openapi import validator
from tests.support.servers.enforced import Requests, enforced
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, LAKE, STARTS
from tests.support.writes.writable import Judge, judging, set_up_writes

ROLES = {
    "VENDING_ROLE": f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/Vended",
    "WRITER_ROLE": f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/Writer",
}
HEADER = {"X-Iceberg-Access-Delegation": "vended-credentials"}
DELETE_FILE = re.compile(".*/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-deletes[.](parquet|puffin)")
OPERATIONS = (
    "INSERT INTO {t} (id, s, p) VALUES (100, 'new', 1), (101, NULL, 2)",
    "DELETE FROM {t} WHERE id IN (1, 9, 100)",
    "UPDATE {t} SET s = 'updated' WHERE id IN (3, 4, 101)",
    "DELETE FROM {t} WHERE id = 4",
    "DELETE FROM {t}",
)


STARTED = ("files", "both deletes", "inlined rows of two versions", "partitions")
"""States of a native table; tests/e2e/writes tries the others."""


@dataclass(frozen=True)
class Served:
    """A lake that is served with vended credentials only."""

    bridge: Bridge
    judge: Judge
    requests: Requests

    def native(self, *statements: str, name: str) -> None:
        """Make the same table natively and in memory."""
        for sql in statements:
            self.judge.con.execute(sql.format(t=f"lake.main.{name}", name=name))
            if not sql.startswith("CALL") and "PARTITIONED" not in sql:
                self.judge.con.execute(sql.format(t=f"memory.main.{name}"))

    def change(self, action: Callable[[str], object], sql: str, table: str, name: str) -> None:
        """Let a client change its table by SQL, and compare the rows that native DuckLake has."""
        action(sql.format(t=table))
        self.judge.con.execute(sql.format(t=f"memory.main.{name}"))
        self.check(name)

    def check(self, name: str) -> None:
        tables = f"lake.main.{name}", f"memory.main.{name}"
        for one, other in (tables, tables[::-1]):
            assert self.judge.query(f"(FROM {one}) EXCEPT ALL (FROM {other})") == [], (one, other)


DELIVERIES = ["materialize", pytest.param("object-lambda", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=DELIVERIES)
def serving(request, lake, moto) -> Iterator[tuple[Bridge, Judge, Requests]]:
    one = set_up_writes(lake.write("vended_clients", LAKE))
    settings = ROLES | {"AWS_ENDPOINT_URL_STS": moto}
    with (
        enforced() as seen,
        bridge(one, moto, delivery=request.param, settings=settings, writes=True) as found,
        judging(one, moto) as judge,
    ):
        yield found, judge, seen


@pytest.fixture
def served(serving) -> Served:
    found, judge, seen = serving
    seen.permitted.clear()
    seen.refused.clear()
    return Served(found, judge, seen)


@pytest.fixture(scope="module")
def duckdb(serving) -> Iterator[Process]:
    with closing(Process(attached, serving[0].catalog_uri, serving[0].warehouse)) as found:
        yield found


def attached(uri: str, warehouse: str) -> DuckDBPyConnection:
    """DuckDB without credentials of its own."""
    con = connect(ICEBERG)
    con.execute("SET arrow_lossless_conversion = true")
    con.execute(
        f"ATTACH {literal(warehouse)} AS ice (TYPE iceberg, ENDPOINT {literal(uri)}, "
        "AUTHORIZATION_TYPE 'none', DEFAULT_SCHEMA 'main')"
    )
    return con


@pytest.fixture
def pyiceberg(served) -> Iterator[RestCatalog]:
    given = {"uri": served.bridge.catalog_uri, "warehouse": "lake"}
    with closing(RestCatalog("c", **given, **{"s3.request-timeout": "60"})) as found:
        yield found


@pytest.mark.slow
def test_duckdb_creates_a_table(served, duckdb):
    rows = "SELECT i AS id, 's' || i AS s, i % 3 AS p FROM range(9) AS r(i)"
    served.judge.expect("made", rows)
    duckdb.query(f"CREATE TABLE ice.main.made AS {rows}")
    for sql in OPERATIONS:
        served.change(duckdb.query, sql, "ice.main.made", "made")
    assert served.requests.refused == []


IN_CI = ("both deletes",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "start", [pytest.param(s, marks=[pytest.mark.slow] * (s not in IN_CI)) for s in STARTED]
)
def test_duckdb_changes_a_native_table(served, duckdb, start):
    name = f"n{STARTED.index(start)}"
    served.native(DO_NOT_INLINE, *STARTS[start], name=name)
    for sql in OPERATIONS:
        served.change(duckdb.query, sql, f"ice.main.{name}", name)
    assert any(map(DELETE_FILE.fullmatch, served.requests.put()))
    assert served.requests.refused == []


def test_duckdb_changes_a_table_of_format_version_3(served, duckdb):
    add = "ALTER TABLE {t} ADD COLUMN q VARCHAR DEFAULT 'old'"
    served.native(DO_NOT_INLINE, *STARTS["files"], add, name="v3")
    for sql in OPERATIONS[1:]:
        served.change(duckdb.query, sql, "ice.main.v3", "v3")
    assert any(path.endswith("-deletes.puffin") for path in served.requests.put())
    assert served.requests.refused == []


def test_pyiceberg_creates_and_changes_a_table(served, pyiceberg):
    rows = pa.table({"id": [1, 2, 3], "s": ["a", None, "c"]})
    table = pyiceberg.create_table("main.py", rows.schema)
    table.append(rows)
    table.append(rows)
    table.delete("id = 2")
    table.overwrite(rows.slice(0, 1), overwrite_filter="id = 3")
    served.judge.expect("py", "SELECT 1::BIGINT AS id, 'a' AS s FROM range(3)")
    served.check("py")
    with pyiceberg.create_table_transaction("main.py2", rows.schema) as transaction:
        transaction.append(rows)
    served.judge.expect("py2", "FROM (VALUES (1, 'a'), (2, NULL), (3, 'c')) AS v(id, s)")
    served.check("py2")
    assert served.requests.refused == []


@pytest.mark.slow
@pytest.mark.spark
def test_spark_creates_and_changes_a_table(served):
    from polynya_local.clients import spark

    session = spark.session()
    settings = {
        "type": "rest",
        "uri": served.bridge.catalog_uri,
        "warehouse": "lake",
        "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        "header.X-Iceberg-Access-Delegation": "vended-credentials",
        "cache-enabled": "false",
    }
    name = f"vended_{served.bridge.delivery.replace('-', '_')}"
    prefix = f"spark.sql.catalog.{name}"
    session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
    for key, value in settings.items():
        session.conf.set(f"{prefix}.{key}", value)
    create = "SELECT id, concat('s', id) AS s, CAST(id % 3 AS INT) AS p FROM range(1, 10)"
    properties = "'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'"
    session.sql(f"CREATE TABLE {name}.main.sp TBLPROPERTIES ({properties}) AS {create}")
    served.judge.expect(
        "sp", "SELECT i AS id, 's' || i AS s, CAST(i % 3 AS INTEGER) AS p FROM range(1, 10) AS r(i)"
    )
    for sql in OPERATIONS[:-1]:
        served.change(session.sql, sql, f"{name}.main.sp", "sp")
    assert {action for action, _ in served.requests.refused} <= {"s3:DeleteObject"}


# What createTable answers

SCHEMA = {
    "type": "struct",
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}


@pytest.mark.parametrize("stage_create", [True, False])
def test_create_table_vends_what_load_table_vends(served, stage_create):
    at = f"{served.bridge.catalog_uri}/v1/lake/namespaces/main/tables"
    name = f"created_{stage_create}"
    body = {"name": name, "stage-create": stage_create, "schema": SCHEMA}
    other = requests.post(at, json=body | {"name": f"{name}_2"}, timeout=60).json()
    assert "storage-credentials" not in other and "s3.session-token" not in other["config"]
    answer = requests.post(at, json=body, headers=HEADER, timeout=60)
    created = answer.json()
    validator("#/components/schemas/LoadTableResult").validate(created)
    assert answer.headers["Cache-Control"] == "no-store"
    prefixes = {one["prefix"] for one in created["storage-credentials"]}
    properties = created["metadata"]["properties"]
    paths = {f"{properties[f'write.{one}.path']}/" for one in ("data", "metadata")}
    assert paths < prefixes and created["config"]["s3.session-token"]
    if not stage_create:
        loaded = requests.get(f"{at}/{name}", headers=HEADER, timeout=60).json()
        assert {one["prefix"] for one in loaded["storage-credentials"]} == prefixes
        assert loaded["config"].keys() == created["config"].keys()
