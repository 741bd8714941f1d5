"""The metadata log: documents of earlier states, with which DuckDB isolates its transactions."""

from contextlib import closing

import pyarrow as pa
import pytest
import urllib3
from polynya_local.clients.duckdb import attached
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

pytestmark = pytest.mark.versions("1.1", "1.0")

DATA = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("metadata_log", EMPTY))
    with (
        bridge(one, moto, writes=True, delivery="object-lambda") as served,
        closing(client_of(served)) as catalog,
    ):
        yield one, served, catalog


def document(served, name):
    uri = f"{served.catalog_uri}/v1/lake/namespaces/main/tables/{name}"
    return urllib3.request("GET", uri).json()["metadata"]


def test_each_entry_is_the_document_of_its_time(served, moto):
    one, at, catalog = served
    table = catalog.create_table("main.t", DATA.schema)
    seen = [document(at, "t")]
    actions = [
        lambda: table.append(DATA),
        lambda: table.update_schema().add_column("n", LongType()).commit(),
        lambda: table.delete("id = 1"),
        lambda: table.update_schema().rename_column("n", "m").commit(),
        lambda: table.append(pa.table({"id": [3], "m": [4]})),
    ]
    for action in actions:
        action()
        seen.append(document(at, "t"))
        table.refresh()
    with judging(one, moto) as judge:
        judge.query("INSERT INTO lake.main.t VALUES (5, 6)")
        seen.append(document(at, "t"))
    log = seen[-1]["metadata-log"]
    times = [before["last-updated-ms"] for before in seen[:-1]]
    assert [entry["timestamp-ms"] for entry in log] == times
    s3 = s3_properties(at.s3_endpoint)
    for entry, before in zip(log, seen[:-1], strict=True):
        earlier = StaticTable.from_metadata(entry["metadata-file"], s3)
        # Ids of columns are not given again, whatever a client that is in the past adds.
        expected = before | {"metadata-log": [], "last-column-id": seen[-1]["last-column-id"]}
        assert earlier.metadata == type(earlier.metadata).model_validate(expected)


def test_duckdb_sees_one_state_in_a_transaction(served, moto):
    """As native DuckLake does. Without the log it takes the new columns for the old state."""
    _, at, catalog = served
    table = catalog.create_table("main.isolated", DATA.schema)
    table.append(DATA)
    with closing(attached(at.catalog_uri, "lake", at.s3_endpoint)) as con:
        con.execute("BEGIN")
        con.execute("SELECT 1")
        table.append(DATA)
        table.update_schema().add_column("n", LongType()).commit()
        rows = con.execute("FROM ice.main.isolated ORDER BY ALL").to_arrow_table()
        assert (rows.column_names, rows["id"].to_pylist()) == (["id"], [1, 2])
        con.execute("COMMIT")
        rows = con.execute("FROM ice.main.isolated ORDER BY ALL").to_arrow_table()
        assert (rows.column_names, rows["id"].to_pylist()) == (["id", "n"], [1, 1, 2, 2])


def test_no_document_of_the_log_is_deleted(served):
    """PyIceberg deletes those that fall out of the log, if the table's properties say so."""
    _, at, catalog = served
    settings = {"delete-after-commit.enabled": "true", "previous-versions-max": "2"}
    properties = {f"write.metadata.{name}": value for name, value in settings.items()}
    table = catalog.create_table("main.stays", DATA.schema, properties=properties)
    before = []
    for _ in range(3):
        before.append(document(at, "stays"))
        table.append(DATA)
    log = document(at, "stays")["metadata-log"]
    assert [e["timestamp-ms"] for e in log] == [b["last-updated-ms"] for b in before[1:]]
    assert "write.metadata.delete-after-commit.enabled" not in table.properties
    for entry in log:
        StaticTable.from_metadata(entry["metadata-file"], s3_properties(at.s3_endpoint))
