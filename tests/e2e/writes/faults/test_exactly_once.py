"""The same request again: it has no second effect, whatever has happened since."""

import json
from contextlib import closing
from uuid import uuid4

import pyarrow as pa
import pytest
import urllib3
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog

from tests.support.servers.in_process import bridge
from tests.support.servers.lost_answers import LostAnswers
from tests.support.writes.writable import EMPTY, set_up_writes

pytestmark = pytest.mark.versions("1.0")

DATA = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture
def served(lake, moto):
    one = set_up_writes(lake.write("once", EMPTY))
    with bridge(one, moto, writes=True) as bridge_, LostAnswers(bridge_.catalog_uri) as proxy:
        yield one, bridge_, proxy


@pytest.fixture
def client(served):
    _, bridge_, proxy = served
    s3 = s3_properties(bridge_.s3_endpoint)
    with closing(RestCatalog("c", uri=proxy.uri, warehouse="lake", **s3)) as found:
        yield found


def send(served, request, **changes) -> tuple[int, dict]:
    """Send a recorded request once more, not through the proxy; None leaves a header out."""
    headers = {**dict(request.headers), **changes.pop("headers", {})}
    path, body = changes.get("path", request.path), changes.get("body", request.body)
    sent = {k: v for k, v in headers.items() if k.lower() not in ("host", "content-length")}
    answer = urllib3.request("POST", served[1].catalog_uri + path, body=body, headers=sent)
    return answer.status, json.loads(answer.data)


# What happens between the commit and its replay, in native DuckLake.
SINCE = {
    "nothing": [],
    "other commits": ["INSERT INTO lake.main.t VALUES (9)"],
    "rename": ["ALTER TABLE lake.main.t RENAME TO renamed"],
    "expiry": [
        "INSERT INTO lake.main.t VALUES (9)",
        "CALL ducklake_merge_adjacent_files('lake')",
        "CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)",
    ],
    "a new column": ["ALTER TABLE lake.main.t ADD COLUMN more INTEGER"],
    "drop": ["DROP TABLE lake.main.t"],
}


@pytest.mark.parametrize("since", SINCE)
def test_a_commit_that_has_landed_is_answered_with_the_table_as_it_is_now(
    served, client, judge, since
):
    client.create_table("main.t", DATA.schema).append(DATA)
    request = served[2].requests[-1]
    for statement in SINCE[since]:
        judge.con.execute(statement)
    before = judge.query("FROM ducklake_snapshots('lake')")
    status, body = send(served, request)
    assert judge.query("FROM ducklake_snapshots('lake')") == before
    if since == "drop":
        assert (status, body["error"]["type"]) == (500, "CommitStateUnknownException")
    else:
        name = "renamed" if since == "rename" else "t"
        now = client.load_table(f"main.{name}")
        assert (status, body["metadata-location"]) == (200, now.metadata_location)
        assert judge.query(f"SELECT count(*) FROM lake.main.{name}") == [
            (3 if since in ("other commits", "expiry") else 2,)
        ]


def request_of(name: str) -> dict:
    field = {"id": 1, "name": "id", "type": "long", "required": False}
    return {"name": name, "schema": {"type": "struct", "fields": [field]}}


def post(served, path: str, body: dict, key: str | None) -> tuple[int, dict]:
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    uri = f"{served[1].catalog_uri}/v1/lake/namespaces/main/tables{path}"
    answer = urllib3.request("POST", uri, body=json.dumps(body), headers=headers)
    return answer.status, json.loads(answer.data)


KEY = "0199f3a2-79b0-7cc3-98c4-dc0c0c07398f"


def renaming(source: str, destination: str) -> dict:
    return {
        "source": {"namespace": ["main"], "name": source},
        "destination": {"namespace": ["main"], "name": destination},
    }


def properties(value: str) -> dict:
    return {
        "requirements": [],
        "updates": [{"action": "set-properties", "updates": {"k": value}}],
    }


def test_a_key_replays_a_creation(served):
    made = post(served, "", request_of("t"), KEY)
    assert made[0] == 200
    again = post(served, "", request_of("t"), KEY)
    assert again == made
    assert post(served, "", request_of("t"), None)[0] == 409
    assert post(served, "", request_of("t"), str(uuid4()))[0] == 409


def test_a_key_replays_a_commit_without_snapshots(served, judge):
    """Nothing but the key tells that it has landed: sent again, it would undo the second one."""
    assert post(served, "", request_of("t"), None)[0] == 200
    assert post(served, "/t", properties("first"), KEY)[0] == 200
    second = post(served, "/t", properties("second"), None)
    before = judge.query("FROM ducklake_snapshots('lake')")
    again = post(served, "/t", properties("first"), KEY)
    assert again[0] == 200 and again == second
    assert again[1]["metadata"]["properties"]["polynya.tag.k"] == "second"
    assert judge.query("FROM ducklake_snapshots('lake')") == before


# Method, path and body of operations that would fail if they were done a second time.
OPERATIONS = [
    ("DELETE", "namespaces/main/tables/t", None),
    ("POST", "tables/rename", renaming("t", "u")),
    ("POST", "namespaces", {"namespace": ["new"]}),
    ("DELETE", "namespaces/other", None),
    ("DELETE", "namespaces/main/views/v", None),
    ("POST", "views/rename", renaming("v", "w")),
]


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
def test_a_key_replays_other_operations(served, judge, method, path, body):
    assert post(served, "", request_of("t"), None)[0] == 200
    judge.query("CREATE VIEW lake.main.v AS SELECT 1 AS one")
    first = ask(served, method, path, body, KEY)
    assert first[0] in (200, 204)
    before = judge.query("FROM ducklake_snapshots('lake')")
    assert ask(served, method, path, body, KEY) == first
    assert ask(served, method, path, body, str(uuid4()))[0] in (404, 409)
    assert judge.query("FROM ducklake_snapshots('lake')") == before


def ask(served, method: str, path: str, body: dict | None, key: str) -> tuple[int, bytes]:
    uri = f"{served[1].catalog_uri}/v1/lake/{path}"
    sent = json.dumps(body) if body else None
    answer = urllib3.request(method, uri, body=sent, headers={"Idempotency-Key": key}, timeout=60)
    return answer.status, answer.data


def of_namespace(value: str) -> dict:
    return {"updates": {"k": value}, "removals": ["gone", "absent"]}


# Path and body, by a value, of operations that undo a later one if they are done a second time.
UNDOING = {
    "a namespace": ("namespaces/other/properties", of_namespace),
    "a view": ("namespaces/main/views/v", properties),
}


@pytest.mark.parametrize("what", UNDOING)
def test_a_key_replays_changes_of_properties(served, judge, what):
    path, body = UNDOING[what]
    judge.query("CREATE VIEW lake.main.v AS SELECT 1 AS one")
    had = {"updates": {"gone": "there"}, "removals": []}
    assert ask(served, "POST", "namespaces/other/properties", had, str(uuid4()))[0] == 200
    first = ask(served, "POST", path, body("first"), KEY)
    second = ask(served, "POST", path, body("second"), str(uuid4()))
    assert (first[0], second[0]) == (200, 200)
    before = judge.query("FROM ducklake_snapshots('lake')")
    # The answer of a view is the view as it is now.
    expected = second if what == "a view" else first
    assert ask(served, "POST", path, body("first"), KEY) == expected
    assert judge.query("FROM ducklake_snapshots('lake')") == before


@pytest.mark.parametrize("summary", ["[" * 100_000, "{", "null", '["gone", 5]'])
def test_a_replay_survives_a_summary_that_somebody_has_changed(served, summary):
    path, body = "namespaces/main/properties", of_namespace("v")
    assert ask(served, "POST", path, body, KEY)[0] == 200
    served[0].database.run("UPDATE polynya_commits SET summary = :summary", summary=summary)
    status, answer = ask(served, "POST", path, body, KEY)
    missing = ["gone"] if "gone" in summary else []
    assert (status, json.loads(answer)["missing"]) == (200, missing)


def view_of(name: str) -> dict:
    field = {"id": 1, "name": "one", "type": "int", "required": False}
    version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1 AS one", "dialect": "duckdb"}],
        "default-namespace": ["main"],
    }
    schema = {"type": "struct", "fields": [field]}
    return {"name": name, "schema": schema, "view-version": version, "properties": {}}


# What happens to the view before the replay, and its name afterwards; None: there is none.
SINCE_OF_VIEWS = {
    "nothing": ([], "v"),
    "rename": (["ALTER VIEW lake.main.v RENAME TO w"], "w"),
    "another view": (
        ["ALTER VIEW lake.main.v RENAME TO w", "CREATE VIEW lake.main.v AS SELECT 2 AS two"],
        "w",
    ),
    "drop": (["DROP VIEW lake.main.v"], None),
    "drop, and another view": (
        ["DROP VIEW lake.main.v", "CREATE VIEW lake.main.v AS SELECT 2 AS two"],
        None,
    ),
}


@pytest.mark.parametrize("since", SINCE_OF_VIEWS)
@pytest.mark.parametrize("operation", ["create", "replace"])
def test_a_key_replays_what_was_done_to_a_view(served, judge, operation, since):
    path, body = "namespaces/main/views", view_of("v")
    if operation == "replace":
        assert ask(served, "POST", path, body, str(uuid4()))[0] == 200
        path, body = f"{path}/v", properties("first")
    assert ask(served, "POST", path, body, KEY)[0] == 200
    statements, name = SINCE_OF_VIEWS[since]
    for statement in statements:
        judge.query(statement)
    before = judge.query("FROM ducklake_snapshots('lake')")
    status, answer = ask(served, "POST", path, body, KEY)
    assert judge.query("FROM ducklake_snapshots('lake')") == before
    if name is None:
        assert (status, json.loads(answer)["error"]["type"]) == (500, "CommitStateUnknownException")
    else:
        uri = f"{served[1].catalog_uri}/v1/lake/namespaces/main/views/{name}"
        assert (status, answer) == (200, urllib3.request("GET", uri).data)


def test_a_key_of_another_request_is_refused(served, judge):
    assert post(served, "", request_of("t"), KEY)[0] == 200
    before = judge.query("FROM ducklake_snapshots('lake')")
    for path, body in (("", request_of("other")), ("/t", properties("v"))):
        status, answer = post(served, path, body, KEY)
        assert (status, answer["error"]["message"]) == (
            400,
            "this Idempotency-Key was used for another request",
        )
    assert post(served, "", request_of("t"), "7")[0] == 400
    served[0].database.run("UPDATE polynya_commits SET principal = 'somebody else'")
    assert post(served, "", request_of("t"), KEY)[0] == 400
    assert judge.query("FROM ducklake_snapshots('lake')") == before


def test_the_lifetime_of_keys_is_advertised_where_clients_may_write(served):
    for warehouse, expected in (("lake", "PT24H"), ("lake@1", None)):
        uri = f"{served[1].catalog_uri}/v1/config?warehouse={warehouse}"
        body = json.loads(urllib3.request("GET", uri).data)
        assert body.get("idempotency-key-lifetime") == expected
