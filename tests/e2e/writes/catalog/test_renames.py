"""A renamed table keeps its metadata file, as in other Iceberg catalogs: nothing in it has changed.

Names and schemas of tables are in no document. DuckLake makes a snapshot of each rename, though.
"""

from uuid import uuid4

import pyarrow as pa
import pytest
import requests
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg import exceptions
from pyiceberg.table import StaticTable

from tests.support.servers.in_process import bridge
from tests.support.writes.twins import SCRIPT, query
from tests.support.writes.writable import set_up_writes

pytestmark = pytest.mark.versions("1.1", "1.0")

# Files, deletes of both kinds, inlined rows, a comment, partitions and a sort order.
TABLE = """
CREATE TABLE {0} (a BIGINT, b VARCHAR); COMMENT ON TABLE {0} IS 'a table';
INSERT INTO {0} SELECT range, 'x' FROM range(50);
DELETE FROM {0} WHERE a < 20;
ALTER TABLE {0} SET PARTITIONED BY (b); ALTER TABLE {0} SET SORTED BY (a);
INSERT INTO {0} VALUES (100, 'y'), (101, 'z');
DELETE FROM {0} WHERE a = 30;
"""


@pytest.fixture(scope="module")
def one(lake, moto):
    others = "CREATE SCHEMA other; CREATE TABLE another (a INTEGER);"
    return set_up_writes(lake.write("renames", SCRIPT + others))


@pytest.fixture(scope="module")
def served(one, moto):
    with bridge(one, moto, writes=True, delivery="object-lambda") as served:
        yield served


@pytest.fixture
def table(one, moto):
    """The name of a new table."""
    name = f"t{uuid4().hex[:8]}"
    query(one, moto, TABLE.format(name))
    return name


def post(served, path, body, **headers):
    uri = f"{served.catalog_uri}/v1/lake{path}"
    answer = requests.post(uri, json=body, headers=headers, timeout=60)
    assert answer.ok, answer.text
    return answer.json() if answer.content else {}


def loaded(served, name, namespace="main"):
    """The ETag of a table, and what loadTable answers."""
    uri = f"{served.catalog_uri}/v1/lake/namespaces/{namespace}/tables/{name}"
    answer = requests.get(uri, timeout=60)
    assert answer.ok, answer.text
    return answer.headers["ETag"], answer.json()


def file(served, location):
    """The metadata document at a location."""
    answer = requests.get(f"{served.s3_endpoint}/{location.removeprefix('s3://')}", timeout=60)
    assert answer.ok, (location, answer.text)
    return answer.json()


def check_files(served, body):
    """Check that a table's document and those in its log can be read, and are what was said."""
    assert file(served, body["metadata-location"]) == body["metadata"]
    for entry in body["metadata"]["metadata-log"]:
        earlier = file(served, entry["metadata-file"])
        assert earlier["last-updated-ms"] == entry["timestamp-ms"]
    StaticTable.from_metadata(body["metadata-location"], s3_properties(served.s3_endpoint))


def by_client(namespace, **headers):
    def rename(served, one, moto, name):
        names = [("main", name), (namespace, f"{name}_new")]
        body = [{"namespace": [n[0]], "name": n[1]} for n in names]
        body = dict(zip(("source", "destination"), body, strict=True))
        post(served, "/tables/rename", body, **headers)

    return rename


def natively(*statements):
    def rename(served, one, moto, name):
        query(one, moto, *(statement.format(name) for statement in statements))

    return rename


RENAME = "ALTER TABLE {0} RENAME TO {0}_new"
RENAMES = {
    "natively": ("main", natively(RENAME)),
    "natively twice": (
        "main",
        natively("ALTER TABLE {0} RENAME TO {0}_x", "ALTER TABLE {0}_x RENAME TO {0}_new"),
    ),
    "by a client": ("main", by_client("main")),
    "with a key": ("main", by_client("main", **{"Idempotency-Key": str(uuid4())})),
    "to another schema": ("other", by_client("other")),
}


@pytest.mark.slow("[natively twice]", "[by a client]")
@pytest.mark.parametrize("way", RENAMES)
def test_a_rename_changes_nothing_that_clients_know(served, one, moto, catalog, table, way):
    namespace, rename = RENAMES[way]
    before = loaded(served, table)
    old = catalog.load_table(("main", table))
    rename(served, one, moto, table)
    assert loaded(served, f"{table}_new", namespace) == before
    with pytest.raises(exceptions.NoSuchTableError):
        catalog.load_table(("main", table))
    check_files(served, before[1])
    # A client that has loaded the table before commits under the new name.
    old._identifier = (namespace, f"{table}_new")
    old.append(pa.table({"a": [7], "b": ["seven"]}))
    after = loaded(served, f"{table}_new", namespace)[1]
    check_files(served, after)
    log = after["metadata"]["metadata-log"]
    times = [entry["timestamp-ms"] for entry in before[1]["metadata"]["metadata-log"]]
    assert [entry["timestamp-ms"] for entry in log] == [
        *times,
        before[1]["metadata"]["last-updated-ms"],
    ]
    assert file(served, before[1]["metadata-location"]) == before[1]["metadata"]
    rows = query(one, moto, f"SELECT a FROM {namespace}.{table}_new ORDER BY a")
    assert rows == [(n,) for n in (7, *range(20, 30), *range(31, 50), 100, 101)]
    scanned = catalog.load_table((namespace, f"{table}_new")).scan().to_arrow()
    assert sorted(scanned["a"].to_pylist()) == [a for (a,) in rows]


def test_requirements_of_before_hold(served, table):
    before = loaded(served, table)[1]["metadata"]
    by_client("main")(served, None, None, table)
    required = {
        "table-uuid": ("uuid", before["table-uuid"]),
        "ref-snapshot-id": ("snapshot-id", before["current-snapshot-id"]),
        "current-schema-id": ("current-schema-id", before["current-schema-id"]),
        "last-assigned-field-id": ("last-assigned-field-id", before["last-column-id"]),
        "default-spec-id": ("default-spec-id", before["default-spec-id"]),
        "default-sort-order-id": ("default-sort-order-id", before["default-sort-order-id"]),
    }
    requirements = [
        {"type": f"assert-{type_}", "ref": "main", key: value}
        for type_, (key, value) in required.items()
    ]
    updates = [{"action": "set-properties", "updates": {"comment": "another"}}]
    body = {"requirements": requirements, "updates": updates}
    answer = post(served, f"/namespaces/main/tables/{table}_new", body)
    assert answer["metadata"]["properties"]["comment"] == "another"
    check_files(served, answer)


CHANGES = {
    "comment": ("COMMENT ON TABLE {0}_new IS 'another'", "properties"),
    "comment of a column": ("COMMENT ON COLUMN {0}_new.a IS 'the a'", "schemas"),
    "column": ("ALTER TABLE {0}_new ADD COLUMN c INTEGER", "schemas"),
    "partitions": ("ALTER TABLE {0}_new RESET PARTITIONED BY", "default-spec-id"),
    "order": ("ALTER TABLE {0}_new SET SORTED BY (b)", "sort-orders"),
    "insert": ("INSERT INTO {0}_new (a) VALUES (1)", "snapshots"),
    "delete": ("DELETE FROM {0}_new WHERE a = 101", "snapshots"),
}


@pytest.mark.slow("of a column]", "[partitions]", "[order]", "[delete]")
@pytest.mark.parametrize("change", CHANGES)
def test_what_the_same_transaction_changes_is_shown(served, one, moto, table, change):
    statement, shown = CHANGES[change]
    before = loaded(served, table)[1]
    natively("BEGIN", RENAME, statement, "COMMIT")(served, one, moto, table)
    after = loaded(served, f"{table}_new")[1]
    assert after["metadata-location"] != before["metadata-location"]
    assert after["metadata"][shown] != before["metadata"][shown]
    assert len(after["metadata"]["metadata-log"]) == len(before["metadata"]["metadata-log"]) + 1
    check_files(served, after)
    assert file(served, before["metadata-location"]) == before["metadata"]


@pytest.mark.parametrize("between", ["", "CREATE TABLE {0}_o (a INTEGER)"])
@pytest.mark.parametrize("then", ["", RENAME])
def test_what_an_expired_snapshot_changed_is_in_the_file(served, one, moto, table, between, then):
    query(one, moto, f"COMMENT ON TABLE {table} IS 'another'")
    expired = newest(one, moto)
    for statement in filter(None, (between, then)):
        query(one, moto, statement.format(table))
    query(one, moto, "INSERT INTO another VALUES (1)")  # else it is the newest of the lake
    query(one, moto, f"CALL ducklake_expire_snapshots('lake', versions => [{expired}])")
    body = loaded(served, f"{table}_new" if then else table)[1]
    assert body["metadata"]["properties"]["comment"] == "another"
    check_files(served, body)


@pytest.mark.parametrize("maker", ["ducklake", "client"])
def test_a_table_whose_creation_has_expired_can_be_read(served, one, moto, catalog, maker):
    name = f"t{uuid4().hex[:8]}"
    if maker == "ducklake":
        query(one, moto, f"CREATE TABLE {name} (a BIGINT)")
    else:
        catalog.create_table(("main", name), pa.schema([("a", pa.int64())]))
    expired = newest(one, moto)
    query(one, moto, RENAME.format(name))
    query(one, moto, f"CALL ducklake_expire_snapshots('lake', versions => [{expired}])")
    check_files(served, loaded(served, f"{name}_new")[1])


def newest(one, moto):
    [(snapshot_id,)] = query(one, moto, "SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    return snapshot_id
