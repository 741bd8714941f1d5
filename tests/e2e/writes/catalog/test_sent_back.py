"""A client that creates or replaces a table sends back all properties that it has read.

Java, PyIceberg and DuckDB do it in each transaction that creates or replaces one, as CREATE TABLE
… AS SELECT is. The catalog is that of `polynya serve`, which makes up for the faults of clients.
"""

from contextlib import closing
from uuid import UUID

import pyarrow as pa
import pytest
from polynya_local.clients import duckdb
from pyiceberg.exceptions import BadRequestError

from tests.support.writes.writable import judging

SCRIPT = ""
SETTINGS = {"CLIENTS": "all"}
DELIVERY = "object-lambda"
NOTE = "polynya.adapted-files"
# (a type, a value of it)
COLUMNS = {
    "list": (pa.list_(pa.string()), ["a", None]),
    "map": (pa.map_(pa.string(), pa.int32()), [("k", 1)]),
    "uuid": (pa.uuid(), UUID(int=7).bytes),
    "timestamptz": (pa.timestamp("us", "UTC"), None),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_creation_sends_back_what_its_staging_had(catalog, pair, moto, name):
    type_, value = COLUMNS[name]
    rows = pa.Table.from_pylist([{"id": 1, "v": value}], pa.schema({"id": pa.int32(), "v": type_}))
    with catalog.create_table_transaction(f"main.new_{name}", rows.schema) as staged:
        staged.append(rows)
    with judging(pair.lake, moto) as judge:
        found = judge.query(f"SELECT id, v IS NULL FROM lake.new_{name}")
    assert found == [(1, value is None)]


def test_duckdb_creates_a_table_with_its_rows(served, pair, moto):
    with closing(duckdb.open(served.catalog_uri, "lake", served.s3_endpoint)) as client:
        client.query("CREATE TABLE ice.main.selected AS SELECT 1 AS id, ['a'] AS l, uuid() AS u")
    with judging(pair.lake, moto) as judge:
        assert judge.query("SELECT id, l FROM lake.selected") == [(1, ["a"])]


def test_spark_creates_and_replaces_a_table(served, pair, moto):
    from polynya_local.clients import spark

    client = spark.Spark(served.catalog_uri, served.warehouse, served.s3_endpoint)
    with closing(client):
        for create in ("CREATE", "CREATE OR REPLACE"):
            selected = "SELECT 1 AS id, array('a') AS l, map('k', 2) AS m"
            name = f"{client.catalog}.main.by_spark"
            spark.session().sql(f"{create} TABLE {name} USING iceberg AS {selected}")
    with judging(pair.lake, moto) as judge:
        assert judge.query("SELECT id, l, m FROM lake.by_spark") == [(1, ["a"], {"k": 2})]


def test_a_replacement_may_send_back_an_older_note(catalog):
    schema = pa.schema({"id": pa.int32(), "v": pa.list_(pa.string())})
    table = catalog.create_table("main.replaced", schema)
    notes = table.properties[NOTE]
    sent = {**table.properties, NOTE: "of an older state", "polynya.hidden-columns": "[]"}
    table.transaction().set_properties(sent).commit_transaction()
    assert catalog.load_table("main.replaced").properties[NOTE] == notes
    with pytest.raises(BadRequestError, match=f"the property {NOTE} cannot be set"):
        table.transaction().set_properties({NOTE: "mine"}).commit_transaction()
