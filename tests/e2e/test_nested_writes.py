"""Iceberg clients write in namespaces of several levels, and native DuckLake reads it flat.

DuckDB 1.5.5 knows no schemas within schemas: afterwards each gets a flat name, and the catalog is
taken back to version 1.0. The words of `changes_made` are those of DuckLake's own source.
"""

import json
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
import requests
from polynya_local.clients import duckdb
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg import exceptions
from pyiceberg.catalog import load_catalog

from tests.support.catalog_versions import catalog_of, to_1_0, to_1_1
from tests.support.nested_schemas import flatten
from tests.support.servers.in_process import bridge
from tests.support.writes.twins import query
from tests.support.writes.writable import EMPTY, set_up_writes


def rows(*values: int) -> pa.Table:
    return pa.table({"i": pa.array(values, pa.int32())})


def opened(served):
    s3 = s3_properties(served.s3_endpoint)
    return load_catalog("p", type="rest", uri=served.catalog_uri, warehouse="lake", **s3)


class Api:
    def __init__(self, served) -> None:
        self._uri = f"{served.catalog_uri}/v1/lake"

    def __call__(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        answer = requests.request(method, self._uri + path, json=body, timeout=60)
        found = answer.json() if answer.content else {}
        return answer.status_code, found["error"]["type"] if "error" in found else found


@pytest.fixture(scope="module")
def written_lake(lake):
    made = set_up_writes(lake.write("nested-writes", EMPTY))
    to_1_1(made)
    return made


@pytest.fixture(scope="module")
def served(written_lake, moto):
    with bridge(written_lake, moto, writes=True) as served:
        yield served


@pytest.fixture(scope="module")
def api(served):
    return Api(served)


def test_what_clients_write_is_what_ducklake_has(lake, moto):
    made = set_up_writes(lake.write("nested-twin", EMPTY))
    to_1_1(made)
    with bridge(made, moto, writes=True) as served, closing(opened(served)) as catalog:
        for namespace in (("sales",), ("sales", "europe"), ("a",), ("a", "b"), ("a.b",)):
            catalog.create_namespace(namespace, {"owner": "/".join(namespace)})
        names = [("sales", "europe", "t"), ("sales", "t"), ("a", "b", "t"), ("a.b", "t")]
        for number, name in enumerate(names):
            catalog.create_table(name, rows().schema).append(rows(number, 10 + number))
        catalog.load_table(("a", "b", "t")).append(rows(99))
        catalog.load_table(("sales", "europe", "t")).delete("i = 10")
        for namespace in (("sales", "europe"), ("a", "b")):
            assert catalog.load_namespace_properties(namespace)["owner"] == "/".join(namespace)
        catalog.update_namespace_properties(("a", "b"), removals={"owner"}, updates={"team": "x"})
        catalog.create_table(("sales", "moved"), rows().schema).append(rows(7))
        catalog.rename_table(("sales", "moved"), ("sales", "europe", "moved"))
        catalog.rename_table(("sales", "europe", "moved"), ("a", "b", "at rest"))
        catalog.create_namespace(("sales", "asia"))
        catalog.create_table(("sales", "asia", "t"), rows().schema)
        with pytest.raises(exceptions.NamespaceNotEmptyError):
            catalog.drop_namespace(("sales", "asia"))
        catalog.drop_table(("sales", "asia", "t"))
        catalog.drop_namespace(("sales", "asia"))
        assert catalog.list_namespaces(("sales",)) == [("sales", "europe")]
        catalog.create_namespace(("north", "sea", "coast"), {"owner": "of the coast"})
        catalog.create_table(("north", "sea", "coast", "t"), rows().schema).append(rows(5))
        assert "owner" not in catalog.load_namespace_properties(("north", "sea"))
        names.append(("north", "sea", "coast", "t"))
        shown = {name: catalog.load_table(name).scan().to_arrow() for name in names}
        with closing(duckdb.open(served.catalog_uri, "lake", served.s3_endpoint)) as reader:
            reader.query('CREATE TABLE ice."sales.europe".by_duckdb (i INTEGER)')
            reader.query('INSERT INTO ice."sales.europe".by_duckdb VALUES (1), (2)')
    con = catalog_of(made)
    changes = [text for (text,) in con.run(CHANGES)]
    paths = dict(con.run("SELECT schema_name, path FROM ducklake_schema WHERE path_is_relative"))
    con.close()
    assert [text for text in changes if text.startswith("created_")] == WORDS
    assert (paths["sales"], paths["a"]) == ("sales/", "a/")
    for name in ("europe", "b", "a.b"):
        assert len(paths[name]) == 37 and paths[name].endswith("/"), name
    flatten(made)
    to_1_0(made)
    for name, found in shown.items():
        table = f'SELECT i FROM "{"/".join(name[:-1])}".t ORDER BY i'
        assert query(made, moto, table) == [(i,) for i in sorted(found["i"].to_pylist())], name
    assert query(made, moto, 'SELECT i FROM "a/b"."at rest"') == [(7,)]
    assert query(made, moto, 'SELECT sum(i) FROM "sales/europe".by_duckdb') == [(3,)]


@pytest.mark.slow
@pytest.mark.spark
def test_spark(lake, moto):
    from polynya_local.clients import spark

    made = set_up_writes(lake.write("nested-spark", EMPTY))
    to_1_1(made)
    with bridge(made, moto, writes=True) as served:
        client = spark.open(served.catalog_uri, "lake", served.s3_endpoint)

        def run(sql: str) -> list[tuple[Any, ...]]:
            return [
                tuple(row) for row in spark.session().sql(sql.format(c=client.catalog)).collect()
            ]

        for name in ("a", "a.b", "a.b.c", "`a.b`", "other.b"):
            run(f"CREATE NAMESPACE {{c}}.{name}")
        for number, name in enumerate(("a", "a.b", "a.b.c", "`a.b`")):
            run(f"CREATE TABLE {{c}}.{name}.t (i INT)")
            run(f"INSERT INTO {{c}}.{name}.t VALUES ({number}), ({10 + number})")
        run("ALTER TABLE {c}.a.b.c.t RENAME TO {c}.other.b.moved")
        run("DELETE FROM {c}.a.b.t WHERE i = 1")
        assert run("SELECT i FROM {c}.a.b.t") == [(11,)]
        assert run("SELECT sum(i) FROM {c}.`a.b`.t") == [(16,)]
        assert run("SELECT sum(i) FROM {c}.other.b.moved") == [(14,)]
        assert run("SELECT sum(i) FROM {c}.other.b.moved.snapshots CROSS JOIN {c}.a.t")
        assert run("SHOW NAMESPACES IN {c}.a") == [("a.b",)]
        assert run("SHOW NAMESPACES IN {c}.a.b") == [("a.b.c",)]
        run("DROP NAMESPACE {c}.a.b.c")
        with pytest.raises(Exception, match="not empty"):
            run("DROP NAMESPACE {c}.a")
    flatten(made)
    to_1_0(made)
    expected = {"a": 10, "a/b": 11, "a.b": 16}
    for name, total in expected.items():
        assert query(made, moto, f'SELECT sum(i) FROM "{name}".t') == [(total,)], name
    assert query(made, moto, 'SELECT sum(i) FROM "other/b".moved') == [(14,)]


CHANGES = "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id OFFSET 2"
WORDS = [
    'created_schema:"sales"',
    'created_schema:"sales"."europe"',
    'created_schema:"a"',
    'created_schema:"a"."b"',
    'created_schema:"a.b"',
    'created_table:"sales"."europe"."t"',
    'created_table:"sales"."t"',
    'created_table:"a"."b"."t"',
    'created_table:"a.b"."t"',
    'created_table:"sales"."moved"',
    'created_table:"sales"."europe"."moved"',
    'created_table:"a"."b"."at rest"',
    'created_schema:"sales"."asia"',
    'created_table:"sales"."asia"."t"',
    'created_schema:"north",created_schema:"north"."sea",created_schema:"north"."sea"."coast"',
    'created_table:"north"."sea"."coast"."t"',
    'created_table:"sales"."europe"."by_duckdb"',
]


def snapshots(lake) -> int:
    con = catalog_of(lake)
    [[number]] = con.run("SELECT count(*) FROM ducklake_snapshot")
    con.close()
    return number


CREATED = ["p", "p%1Fq", "p%1Fq%1Fr", "p.q"]
# Method, path, body; the status and type of the answer.
REFUSED = [
    ("POST", "", {"namespace": ["P", "x"]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": ["p", "Q", "x"]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": ["none", ""]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": ["p", "q"]}, 409, "AlreadyExistsException"),
    ("POST", "", {"namespace": ["p.q"]}, 409, "AlreadyExistsException"),
    ("POST", "", {"namespace": ["p", "Q"]}, 400, "BadRequestException"),
    ("POST", "", {"namespace": ["p", ""]}, 400, "BadRequestException"),
    ("DELETE", "/p", None, 409, "NamespaceNotEmptyException"),
    ("DELETE", "/p%1Fq", None, 409, "NamespaceNotEmptyException"),
    ("DELETE", "/q", None, 404, "NoSuchNamespaceException"),
    ("DELETE", "/p%1Fr", None, 404, "NoSuchNamespaceException"),
    ("DELETE", "/p.q.r", None, 404, "NoSuchNamespaceException"),
    ("POST", "/p%1Fnone/properties", {"updates": {"a": "1"}}, 404, "NoSuchNamespaceException"),
]


@pytest.fixture(scope="module")
def some(api):
    for path in CREATED:
        assert api("POST", "/namespaces", {"namespace": path.split("%1F")})[0] == 200


@pytest.mark.parametrize(("method", "path", "body", "status", "type_"), REFUSED)
def test_refusals(some, api, method, path, body, status, type_):
    assert api(method, f"/namespaces{path}", body) == (status, type_)


def test_missing_parents_are_created_by_the_same_snapshot(some, api, written_lake):
    before = snapshots(written_lake)
    properties = {"namespace": ["p", "new", "newer"], "properties": {"owner": "me"}}
    assert api("POST", "/namespaces", properties)[0] == 200
    assert snapshots(written_lake) == before + 1
    assert api("GET", "/namespaces/p%1Fnew%1Fnewer")[1]["properties"]["owner"] == "me"
    assert "owner" not in api("GET", "/namespaces/p%1Fnew")[1]["properties"]
    assert api("POST", "/namespaces", {"namespace": ["none", ""]})[0] == 400
    assert api("GET", "/namespaces/none")[0] == 404
    for path in ("p%1Fnew%1Fnewer", "p%1Fnew"):
        assert api("DELETE", f"/namespaces/{path}")[0] == 204


@pytest.mark.parametrize("place", ["above", "above/deeper"])
def test_a_location_is_not_within_a_new_parent(some, api, written_lake, place):
    """DuckLake would give two namespaces, and their tables of one name, the same directory."""
    before, location = snapshots(written_lake), f"{written_lake.data_path}/{place}"
    body = {"namespace": ["above", "x"], "properties": {"location": location}}
    assert api("POST", "/namespaces", body) == (400, "BadRequestException")
    assert snapshots(written_lake) == before
    body["properties"]["location"] = f"{written_lake.data_path}/beside/{place}"
    assert api("POST", "/namespaces", body)[0] == 200
    properties = api("GET", "/namespaces/above%1Fx")[1]["properties"]
    assert properties["location"] == body["properties"]["location"]
    for path in ("above%1Fx", "above"):
        assert api("DELETE", f"/namespaces/{path}")[0] == 204


SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "i", "type": "int", "required": False}]}


def view(name: str, sql: str, *default_namespace: str) -> dict[str, Any]:
    version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": sql, "dialect": "duckdb"}],
        "default-namespace": list(default_namespace),
    }
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}}


# The SQL of a view in p.q, the default namespace, and the status of the answer.
VIEWS = [
    ("SELECT i FROM t", ("p", "q"), 200),
    ("SELECT i FROM t", ("q",), 400),
    ("SELECT i FROM t", ("p.q",), 400),
    ("SELECT i FROM p.q.t", ("q",), 200),
    ("SELECT i FROM p.t", ("main",), 200),
]


@pytest.mark.parametrize(("sql", "namespace", "status"), VIEWS)
def test_views(some, api, sql, namespace, status):
    place = "/namespaces/p%1Fq/views"
    assert api("POST", place, view("v", sql, *namespace))[0] == status
    if status != 200:
        return
    _, found = api("GET", f"{place}/v")
    [version] = found["metadata"]["versions"]
    assert version["default-namespace"] == list(namespace)
    assert version["representations"][0]["sql"] == sql
    there = {"source": {"namespace": ["p", "q"], "name": "v"}}
    there["destination"] = {"namespace": ["p", "q", "r"], "name": "w"}
    is_movable = sql != "SELECT i FROM t"
    assert api("POST", "/views/rename", there)[0] == (204 if is_movable else 400)
    place = "/namespaces/p%1Fq%1Fr/views/w" if is_movable else f"{place}/v"
    assert api("DELETE", place)[0] == 204


def test_a_transaction_names_tables_of_all_levels(some, api):
    for namespace in (["p.q"], ["p", "q"]):
        path = "\x1f".join(namespace)
        body = {"name": "x", "schema": SCHEMA}
        assert api("POST", f"/namespaces/{path}/tables", body)[0] == 200
    changes = [
        {
            "identifier": {"namespace": namespace, "name": "x"},
            "requirements": [],
            "updates": [{"action": "set-properties", "updates": {"of": "/".join(namespace)}}],
        }
        for namespace in (["p.q"], ["p", "q"])
    ]
    body = {"table-changes": changes}
    assert api("POST", "/transactions/commit", body)[0] == 204
    for path, of in (("p.q", "p.q"), ("p%1Fq", "p/q")):
        _, found = api("GET", f"/namespaces/{path}/tables/x")
        assert found["metadata"]["properties"]["polynya.tag.of"] == of
        assert api("DELETE", f"/namespaces/{path}/tables/x")[0] == 204


def test_spark_names_its_own_catalog_in_a_rename(some, api):
    assert api("POST", "/namespaces/p%1Fq/tables", {"name": "s", "schema": SCHEMA})[0] == 200
    renamed = {"source": {"namespace": ["p", "q"], "name": "s"}}
    for namespace, status in ((["ice", "p", "q"], 204), (["p", "ice"], 404), (["x", "y"], 404)):
        renamed["destination"] = {"namespace": namespace, "name": "s2"}
        assert api("POST", "/tables/rename", renamed)[0] == status
    assert api("DELETE", "/namespaces/p%1Fq/tables/s2")[0] == 204


def test_a_table_is_not_created_in_a_namespace_that_is_gone(some, api):
    """Planned in the schema, and dropped by another writer before the commit."""
    assert api("POST", "/namespaces", {"namespace": ["p", "gone"]})[0] == 200
    body = {"name": "t", "schema": SCHEMA, "stage-create": True}
    status, staged = api("POST", "/namespaces/p%1Fgone/tables", body)
    assert status == 200
    assert api("DELETE", "/namespaces/p%1Fgone")[0] == 204
    uuid = staged["metadata"]["table-uuid"]
    commit = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": uuid},
            {"action": "add-schema", "schema": staged["metadata"]["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    }
    commit["updates"].append({"action": "upgrade-format-version", "format-version": 2})
    path = "/namespaces/p%1Fgone/tables/t"
    assert api("POST", path, commit) == (404, "NoSuchNamespaceException")


def test_a_catalog_of_one_level_says_what_to_do(lake, moto):
    made = set_up_writes(lake.write("flat-writes", EMPTY))
    with bridge(made, moto, writes=True) as served:
        uri = f"{served.catalog_uri}/v1/lake/namespaces"
        before = snapshots(made)
        body = {"namespace": ["main", "inner"]}
        error = requests.post(uri, json=body, timeout=60).json()["error"]
        assert (error["code"], error["type"]) == (400, "BadRequestException")
        assert error["message"] == (
            "the namespace main.inner has 2 levels, and the catalog of version 1.0 has schemas of "
            "one level: migrate the lake to DuckLake 1.1 (ATTACH with AUTOMATIC_MIGRATION)"
        )
        assert snapshots(made) == before
        for path in ("/main%1Finner", "/main%1Finner/tables", "?parent=main%1Finner"):
            assert requests.get(uri + path, timeout=60).status_code == 404


def test_a_policy_permits_each_namespace_that_is_created(lake, moto):
    made = set_up_writes(lake.write("nested-policy", EMPTY))
    to_1_1(made)
    tables = {"free": ["*"], "kept": [{"mine": ["*"]}]}
    rule = {"principals": ["*"], "tables": tables, "write": tables}
    settings = {"AUTHORIZATION": json.dumps({"rules": [rule]})}
    with bridge(made, moto, writes=True, settings=settings) as served:
        api, before = Api(served), snapshots(made)
        for namespace in (["kept", "mine"], ["kept", "mine", "new"], ["kept"], ["other", "x"]):
            status = api("POST", "/namespaces", {"namespace": namespace})[0]
            assert status == 403, namespace
        assert snapshots(made) == before
        assert api("POST", "/namespaces", {"namespace": ["free", "x", "y"]})[0] == 200
