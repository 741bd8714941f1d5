"""Views that Iceberg clients write, beside a twin lake where DuckDB did the same."""

import pytest
import requests

from tests.support.catalog_versions import SERVED
from tests.support.writes.twins import catalog_rows, query

pytestmark = pytest.mark.versions("1.1", "1.0")

SCRIPT = """
CREATE TABLE t AS SELECT range::INTEGER AS a, 'x' AS b FROM range(3);
CREATE SCHEMA other; CREATE TABLE other.t AS SELECT 42 AS a;
CREATE VIEW native_view AS SELECT 1 AS one;
CREATE VIEW aliased (renamed) AS SELECT a FROM lake.main.t;
"""
SCHEMA = {
    "type": "struct",
    "fields": [{"id": 1, "name": "a", "type": "int", "required": False, "doc": "the a"}],
}


@pytest.fixture(scope="module")
def api(served):
    return Api(f"{served.catalog_uri}/v1/lake")


class Api:
    def __init__(self, uri: str) -> None:
        self._uri = uri

    def __call__(self, method: str, path: str, body=None, status: int = 200):
        answer = requests.request(method, self._uri + path, json=body, timeout=60)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def view(self, name: str, namespace: str = "main"):
        return self("GET", f"/namespaces/{namespace}/views/{name}")["metadata"]


def version(sql: str, **changed):
    return {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {"engine-name": "tests"},
        "representations": [{"type": "sql", "sql": sql, "dialect": "duckdb"}],
        "default-namespace": ["main"],
        **changed,
    }


def request(name: str, sql: str, **changed):
    made = {"name": name, "schema": SCHEMA, "view-version": version(sql), "properties": {}}
    return {**made, **changed}


def replacing(sql: str, uuid: str | None = None, schema=SCHEMA, **changed):
    requirements = [{"type": "assert-view-uuid", "uuid": uuid}] if uuid else []
    new = {**version(sql, **{"version-id": 2, "schema-id": -1}), **changed}
    return {
        "requirements": requirements,
        "updates": [
            {"action": "add-schema", "schema": {**schema, "schema-id": 1}},
            {"action": "add-view-version", "view-version": new},
            {"action": "set-current-view-version", "view-version-id": -1},
        ],
    }


def test_create_rename_and_drop_write_the_rows_of_native_ducklake(pair, api, moto):
    sql = "SELECT a FROM t WHERE (a > 0)"
    api("POST", "/namespaces/main/views", request("v", sql))
    pair.native(f"CREATE VIEW v AS {sql}")
    pair.check(ignoring_our_tags=True)
    commenting = {"updates": [{"action": "set-properties", "updates": {"comment": "of a"}}]}
    made = api("POST", "/namespaces/main/views/v", commenting)["metadata"]
    pair.native("COMMENT ON VIEW v IS 'of a'")
    pair.check(ignoring_our_tags=True)
    assert made == api.view("v")
    assert made["properties"] == {"comment": "of a"}
    assert made["schemas"] == [{**SCHEMA, "schema-id": 0, "identifier-field-ids": []}]
    assert made["versions"] == [version(sql)]
    assert query(pair.lake, moto, "SELECT * FROM main.v ORDER BY a") == [(1,), (2,)]
    renaming = {
        "source": {"namespace": ["main"], "name": "v"},
        "destination": {"namespace": ["main"], "name": "Two words"},
    }
    api("POST", "/views/rename", renaming, 204)
    pair.native('ALTER VIEW v RENAME TO "Two words"')
    pair.check(ignoring_our_tags=True)
    assert api.view("Two words") == made
    api("GET", "/namespaces/main/views/v", status=404)
    api("DELETE", "/namespaces/main/views/Two words", status=204)
    pair.native('DROP VIEW "Two words"')
    pair.check(ignoring_our_tags=True)
    api("DELETE", "/namespaces/main/views/Two words", status=404)


COLUMN_TAGS = """
CREATE TABLE ducklake_view_column_tag(view_id BIGINT, column_name VARCHAR, begin_snapshot BIGINT,
  end_snapshot BIGINT, key VARCHAR, value VARCHAR)"""
COLUMN_TAG = """
INSERT INTO ducklake_view_column_tag
SELECT view_id, :column, begin_snapshot, NULL, :key, :value FROM ducklake_view
WHERE view_name = 'commented' AND end_snapshot IS NULL"""


def test_comments_of_columns_are_in_the_schema(pair, api):
    """Catalogs of 1.1 have them. A column that the schema lacks has a property."""
    database = pair.lake.database
    api("POST", "/namespaces/main/views", request("commented", "SELECT 1 AS a"))
    assert api.view("commented")["schemas"][0]["fields"][0]["doc"] == "the a"
    database.run(COLUMN_TAGS)
    try:
        for column, key, value in [
            ("a", "comment", "newer"),
            ("b", "comment", "of no column"),
            ("c", "comment", None),
            ("a", "other", "no comment"),
        ]:
            database.run(COLUMN_TAG, column=column, key=key, value=value)
        found = api.view("commented")
        assert [field["doc"] for field in found["schemas"][0]["fields"]] == ["newer"]
        assert found["properties"] == {"polynya.column-comment.b": "of no column"}
    finally:
        database.run("DROP TABLE ducklake_view_column_tag")
    api("DELETE", "/namespaces/main/views/commented", status=204)


OPEN_COLUMN_TAGS = """
SELECT v.view_name, t.value FROM ducklake_view_column_tag AS t JOIN ducklake_view AS v
  ON v.view_id = t.view_id AND v.end_snapshot IS NULL
WHERE t.end_snapshot IS NULL ORDER BY v.view_name, t.value"""
ENDS_OF_COLUMN_TAGS = """
SELECT value, end_snapshot - (SELECT max(snapshot_id) FROM ducklake_snapshot)
FROM ducklake_view_column_tag ORDER BY begin_snapshot, value"""


def test_comments_of_columns_end_with_the_text_of_the_view(pair, api, monkeypatch):
    """DuckLake 1.1 ends them at DROP VIEW. A client that replaces a view gives new ones."""
    monkeypatch.setattr(SERVED, "version", "1.0")  # migrations would make and drop the table
    database = pair.lake.database
    path = "/namespaces/main/views/commented"
    uuid = api("POST", "/namespaces/main/views", request("commented", "SELECT 1 AS a"))["metadata"][
        "view-uuid"
    ]
    database.run(COLUMN_TAGS)
    try:
        database.run(COLUMN_TAG, column="a", key="comment", value="older")
        database.run(COLUMN_TAG.replace("'commented'", "'aliased'"), column="b", key="k", value="x")
        for names in ("commented", "renamed"), ("renamed", "commented"):
            source, destination = ({"namespace": ["main"], "name": name} for name in names)
            api("POST", "/views/rename", {"source": source, "destination": destination}, 204)
        commenting = {"updates": [{"action": "set-properties", "updates": {"comment": "c"}}]}
        [schema] = api("POST", path, commenting)["metadata"]["schemas"]
        assert schema["fields"][0]["doc"] == "older"
        api("POST", path, replacing("SELECT 2 AS a", uuid))
        assert api.view("commented")["schemas"][-1]["fields"][0]["doc"] == "the a"
        assert database.run(OPEN_COLUMN_TAGS) == [["aliased", "x"]]
        database.run(COLUMN_TAG, column="a", key="comment", value="newer")
        assert api.view("commented")["schemas"][-1]["fields"][0]["doc"] == "newer"
        api("DELETE", path, status=204)
        assert database.run(ENDS_OF_COLUMN_TAGS) == [["x", None], ["older", -1], ["newer", 0]]
    finally:
        database.run("DROP TABLE ducklake_view_column_tag")


def test_a_view_that_is_replaced_stays_the_same_view(pair, api, moto):
    first = api("POST", "/namespaces/main/views", request("w", "SELECT 1 AS a"))["metadata"]
    uuid = first["view-uuid"]
    other = {"type": "struct", "fields": [{**SCHEMA["fields"][0], "name": "b"}]}
    body = replacing("SELECT 2 AS b", uuid, other)
    second = api("POST", "/namespaces/main/views/w", body)["metadata"]
    assert second["view-uuid"] == uuid
    assert [one["version-id"] for one in second["versions"]] == [1, 2]
    assert second["current-version-id"] == 2
    assert [one["schema-id"] for one in second["schemas"]] == [0, 1]
    assert query(pair.lake, moto, "SELECT b FROM main.w") == [(2,)]
    changes = "SELECT changes FROM ducklake_snapshots('lake') ORDER BY snapshot_id DESC LIMIT 1"
    [(found,)] = query(pair.lake, moto, changes)
    assert list(found) == ["views_altered"]
    # The same again has the id of the first.
    third = api("POST", "/namespaces/main/views/w", replacing("SELECT 1 AS a", uuid))["metadata"]
    assert (third["current-version-id"], len(third["versions"])) == (1, 2)
    assert [one["version-id"] for one in third["version-log"]] == [1, 2, 1]
    # Another client had seen the first version, too.
    fourth = api("POST", "/namespaces/main/views/w", replacing("SELECT 3 AS a"))["metadata"]
    assert fourth["current-version-id"] == 3
    back = {"updates": [{"action": "set-current-view-version", "view-version-id": 2}]}
    fifth = api("POST", "/namespaces/main/views/w", back)["metadata"]
    assert fifth["versions"] == fourth["versions"]
    assert query(pair.lake, moto, "SELECT b FROM main.w") == [(2,)]
    query(pair.lake, moto, "ALTER VIEW w RENAME TO w2", "COMMENT ON VIEW w2 IS 'native'")
    renamed = api.view("w2")
    assert renamed == {**fifth, "properties": {"comment": "native"}}
    query(pair.lake, moto, "CREATE OR REPLACE VIEW w2 AS SELECT 5 AS e")
    assert api.view("w2")["view-uuid"] != uuid
    assert api.view("w2")["properties"] == {}
    query(pair.lake, moto, "DROP VIEW w2")


def test_properties_of_a_view(pair, api, moto):
    api("POST", "/namespaces/main/views", request("p", "SELECT 1 AS a", properties={"k": "v"}))
    before = api("GET", "/namespaces/main/views/p")
    body = {
        "updates": [
            {"action": "set-properties", "updates": {"m": "n"}},
            {"action": "remove-properties", "removals": ["k"]},
        ]
    }
    after = api("POST", "/namespaces/main/views/p", body)
    assert after["metadata"]["properties"] == {"m": "n"}
    assert after["metadata"]["versions"] == before["metadata"]["versions"]
    assert after["metadata-location"] != before["metadata-location"]
    query(pair.lake, moto, "DROP VIEW p")


def test_a_native_view_is_replaced(pair, api, moto):
    before = api.view("native_view")
    body = replacing("SELECT 2 AS two", before["view-uuid"])
    after = api("POST", "/namespaces/main/views/native_view", body)["metadata"]
    assert after["view-uuid"] == before["view-uuid"]
    assert after["versions"][0] == before["versions"][0]
    assert after["current-version-id"] == before["current-version-id"] + 1
    assert query(pair.lake, moto, "SELECT two FROM main.native_view") == [(2,)]


# The text of a view in main, and the answer to moving it to `other`.
MOVES = [("SELECT a FROM main.t", 204), ("SELECT a FROM t", 400), ("SELECT 1 AS a", 204)]


@pytest.mark.parametrize(("sql", "status"), MOVES)
def test_a_view_moves_if_its_text_means_the_same_there(pair, api, moto, sql, status):
    api("POST", "/namespaces/main/views", request("moving", sql))
    before = query(pair.lake, moto, "FROM main.moving")
    body = {
        "source": {"namespace": ["main"], "name": "moving"},
        "destination": {"namespace": ["other"], "name": "moved"},
    }
    api("POST", "/views/rename", body, status)
    name = "other.moved" if status == 204 else "main.moving"
    assert query(pair.lake, moto, f"FROM {name}") == before
    query(pair.lake, moto, f"DROP VIEW {name}")


def test_a_moved_native_view_keeps_its_aliases(pair, api, moto):
    body = {
        "source": {"namespace": ["main"], "name": "aliased"},
        "destination": {"namespace": ["other"], "name": "aliased"},
    }
    api("POST", "/views/rename", body, 204)
    rows = query(pair.lake, moto, "SELECT renamed FROM other.aliased ORDER BY 1")
    assert rows == [(0,), (1,), (2,)]


OTHER_DIALECT = [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}]
TWO_DIALECTS = [*version("SELECT 1")["representations"], *OTHER_DIALECT]
REFUSED = {
    "no SQL": request("x", "this is not SQL"),
    "two statements": request("x", "SELECT 1; SELECT 2"),
    "DROP": request("x", "DROP TABLE t"),
    "parameter": request("x", "SELECT ?"),
    "NUL": request("x", "SELECT '\0'"),
    "long": request("x", "SELECT '" + "x" * 100_000 + "'"),
    "deep": request("x", "SELECT " + "(" * 20_000 + "1" + ")" * 20_000),
    "a file": request("x", "SELECT * FROM read_text('/etc/passwd')"),
    "a file as a table": request("x", "FROM 'file.csv'"),
    "a setting": request("x", "SELECT current_setting('s3_secret_access_key') AS a"),
    "code in a property": request("x", "SELECT 1", properties={"a.impl": "b"}),
    "dialect": request("x", "", **{"view-version": version("", representations=OTHER_DIALECT)}),
    "dialects": request("x", "", **{"view-version": version("", representations=TWO_DIALECTS)}),
    "letter case": request("NATIVE_VIEW", "SELECT 1"),
    "letter case of a table": request("T", "SELECT 1"),
    "configuration": request("x", "SELECT 1", properties={"s3.endpoint": "http://x"}),
    "unqualified": request(
        "x", "", **{"view-version": version("FROM t", **{"default-namespace": ["other"]})}
    ),
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusals_change_nothing(pair, api, body):
    before = catalog_rows(pair.lake)
    answer = api("POST", "/namespaces/main/views", body, 400)
    assert answer["error"]["type"] == "BadRequestException"
    assert catalog_rows(pair.lake) == before


CONFLICTS = [
    ("/namespaces/main/views", request("t", "SELECT 1"), 409, "Table with same name"),
    ("/namespaces/main/views", request("native_view", "SELECT 1"), 409, "View already exists"),
    ("/namespaces/absent/views", request("x", "SELECT 1"), 404, "Namespace does not exist"),
    ("/namespaces/main/views/absent", replacing("SELECT 1"), 404, "View does not exist"),
    ("/namespaces/main/views/t", replacing("SELECT 1"), 404, "View does not exist"),
    (
        "/namespaces/main/views/native_view",
        replacing("SELECT 1", "0a0b0c0d-0000-4000-8000-000000000000"),
        409,
        "it is another view now",
    ),
]


@pytest.mark.parametrize(("path", "body", "status", "message"), CONFLICTS)
def test_conflicts(pair, api, path, body, status, message):
    before = catalog_rows(pair.lake)
    assert message in api("POST", path, body, status)["error"]["message"]
    assert catalog_rows(pair.lake) == before
