"""Table-level authorization, on every route and behind the access point, with the real handlers."""

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import boto3
import fastavro
import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from polynya.catalog.scans import PlanTask
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.http import reading
from polynya.http.application import TABLE
from polynya_local.messages import Response

from tests.aws.http_server import HttpServer
from tests.aws.lambda_function import LambdaFunction
from tests.aws.object_lambda import written_response
from tests.support.answers import json_of
from tests.support.servers.in_process import ALIAS, functions
from tests.support.writes.writable import set_up_writes

EVENTS = Path(__file__).parents[3] / "events"
ACCOUNT = "111122223333"
POLICY = {
    "list_claims": ["cognito:groups"],
    "rules": [
        {
            "principals": [f"arn:aws:iam::{ACCOUNT}:role/Analyst", "cognito:groups=analysts"],
            "tables": {"main": ["orders", "shown"], "sales_*": ["*"], "*": ["public"]},
        },
        {
            "principals": [f"arn:aws:iam::{ACCOUNT}:role/Admin"],
            **{key: {"*": ["*"]} for key in ("tables", "write")},
        },
        {
            "principals": ["aud=lake"],
            "tables": {
                "main": ["orders", "mine*", "Salaries", "Wages"],
                "HR": ["*"],
                "Staff": ["*"],
            },
            "write": {"main": ["mine*", "Salaries"], "HR": ["*"]},
        },
    ],
}
LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE orders(i INTEGER);
INSERT INTO orders FROM range(10);
CREATE TABLE salaries(i INTEGER);
INSERT INTO salaries FROM range(10);
CREATE TABLE later_secret(i INTEGER);
CREATE TABLE shown_later(i INTEGER);
CREATE VIEW shown AS FROM orders;
CREATE VIEW hidden AS FROM salaries;
CREATE SCHEMA sales_eu;
CREATE TABLE sales_eu.t(i INTEGER);
CREATE SCHEMA sales_none;
CREATE SCHEMA hr;
CREATE TABLE hr.t(i INTEGER);
CREATE SCHEMA views;
CREATE VIEW views.public AS SELECT 1;
CREATE SCHEMA past;
CREATE TABLE past.public(i INTEGER);
CREATE VIEW past.public_view AS SELECT 'a secret';
CREATE SCHEMA empty;
CREATE VIEW shown_later_view AS SELECT 2;
ALTER TABLE past.public RENAME TO secret;
ALTER VIEW shown RENAME TO secret_view;
ALTER VIEW shown_later_view RENAME TO shown;
ALTER TABLE later_secret RENAME TO secret;
ALTER TABLE shown_later RENAME TO orders2;
BEGIN;
ALTER TABLE orders RENAME TO orders_old;
ALTER TABLE orders2 RENAME TO orders;
COMMIT;
"""


def role(name: str) -> dict:
    """The claims of an authorizer or an access point for a caller that has assumed a role."""
    return {"iam": {"userArn": f"arn:aws:sts::{ACCOUNT}:assumed-role/{name}/me"}}


def token(*groups: str) -> dict:
    return {"jwt": {"claims": {"sub": "me", "cognito:groups": f"[{' '.join(groups)}]"}}}


def user(sub: str, **more: str) -> dict:
    """One of the users of an application: its tokens begin with the same claim."""
    claims = {"aud": "lake", "exp": "1", "iss": "https://idp.example/", "sub": sub, **more}
    return {"jwt": {"claims": claims}}


@pytest.fixture(scope="module")
def aws(lake, moto):
    served = set_up_writes(lake.write("authorization", LAKE))
    boto3.client("ssm", endpoint_url=moto).put_parameter(
        Name="/lake/policy", Value=json.dumps(POLICY), Type="String"
    )
    written = []

    def record(request):
        written.append(written_response(request))
        return Response(200)

    recorder = HttpServer(0)
    recorder.start(record)
    values = {
        "DATABASE_URL": served.database.url,
        "VIRTUAL_BUCKET": ALIAS,
        "AUTHORIZATION": "ssm:/lake/policy",
        "WRITES": "yes",
        "VENDING_ROLE": f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/Vended",
        "AWS_ENDPOINT_URL": moto,
        "OBJECT_LAMBDA_ENDPOINT": recorder.uri,
    }
    with invocable(**values) as invoked:
        yield SimpleNamespace(**invoked, written=written, moto=moto, lake=served, values=values)
    recorder.stop()


@contextmanager
def invocable(**values: str) -> Iterator[dict[str, LambdaFunction]]:
    with functions(**values) as started, ExitStack() as stack:
        handlers = {
            "rest": (started.rest_catalog, 29),
            "virtual": (started.object_lambda, 60),
            "commits": (started.commits, 29),
        }
        invoked = {
            name: LambdaFunction(name, handler, region="us-east-1", timeout_s=seconds)
            for name, (handler, seconds) in handlers.items()
        }
        for function in invoked.values():
            stack.callback(function.stop)
        yield invoked


def ask(aws, caller: dict | None, path: str, method: str = "GET") -> tuple[int, dict]:
    answer = aws.rest.invoke(event(caller, path, method, BODIES.get(path.rpartition("/")[2])))
    return answer["statusCode"], json_of(answer)


def write(
    aws, caller: dict | None, path: str, body: dict | None, *, key: str = ""
) -> tuple[int, dict]:
    sent = event(caller, f"lake/{path}", "POST" if body else "DELETE", body)
    sent["headers"] |= {"idempotency-key": key} if key else {}
    answer = aws.commits.invoke(sent)
    return answer["statusCode"], json_of(answer)


def event(caller: dict | None, path: str, method: str, body: dict | None) -> dict:
    made = json.loads((EVENTS / "rest_load_table.json").read_text())
    made["rawPath"] = made["requestContext"]["http"]["path"] = f"/v1/{path}"
    made["requestContext"]["http"]["method"] = method
    made["requestContext"]["authorizer"] = caller
    made["rawQueryString"] = ""
    made["body"] = json.dumps(body)
    return made


def head(aws, caller: dict | None, key: str) -> tuple[int, str | None]:
    event = json.loads((EVENTS / "object_head.json").read_text())
    event["userRequest"]["url"] = f"https://x.example/{key}"
    event["userIdentity"] = {"arn": caller["iam"]["userArn"]} if caller else {}
    answer = aws.virtual.invoke(event)
    return answer["statusCode"], answer.get("errorCode")


def get(aws, caller: dict, key: str) -> Response:
    event = json.loads((EVENTS / "object_get_whole.json").read_text())
    event["userRequest"]["url"] = f"https://x.example/{key}"
    event["userIdentity"] = {"arn": caller["iam"]["userArn"]}
    aws.written.clear()
    aws.virtual.invoke(event)
    return aws.written.pop()


ANALYSTS = [pytest.param(role("Analyst"), id="iam"), pytest.param(token("x", "analysts"), id="jwt")]


@pytest.mark.parametrize("caller", ANALYSTS)
def test_lists_show_only_what_may_be_read(aws, caller):
    seen = [["main"], ["sales_eu"], ["sales_none"], ["views"]]
    assert ask(aws, caller, "lake/namespaces")[1] == {"namespaces": seen}
    tables = ask(aws, caller, "lake/namespaces/main/tables")[1]["identifiers"]
    assert [table["name"] for table in tables] == ["orders"]
    views = ask(aws, caller, "lake/namespaces/main/views")[1]["identifiers"]
    assert [view["name"] for view in views] == ["shown"]


# A plan task that nobody has: a caller who may read the table is told so.
MADE_UP = PlanTask(str(UUID(int=0)), 1, 1, "0" * 20, "", "null", True, False, 0, 9).encoded()
BODIES = {"plan": {}, "tasks": {"plan-task": MADE_UP}}
"""By the end of a path."""

# (method, a path that the analyst may read, one that it may not read, one that does not exist)
ROUTES = [
    ("GET", "namespaces/sales_eu", "namespaces/hr", "namespaces/no"),
    ("HEAD", "namespaces/sales_eu", "namespaces/hr", "namespaces/no"),
    ("GET", "namespaces/sales_eu/tables", "namespaces/hr/tables", "namespaces/no/tables"),
    ("GET", "namespaces/sales_eu/views", "namespaces/hr/views", "namespaces/no/views"),
    ("GET", "namespaces/sales_eu/tables/t", "namespaces/hr/tables/t", "namespaces/no/tables/t"),
    *(
        (method, *(f"namespaces/main/{kind}/{name}{more}" for name in names))
        for method, kind, more, names in [
            ("GET", "tables", "", ("orders", "salaries", "no")),
            ("HEAD", "tables", "", ("orders", "salaries", "no")),
            ("GET", "tables", "/credentials", ("orders", "salaries", "no")),
            ("POST", "tables", "/plan", ("orders", "salaries", "no")),
            ("POST", "tables", "/tasks", ("orders", "salaries", "no")),
            ("GET", "views", "", ("shown", "hidden", "no")),
            ("HEAD", "views", "", ("shown", "hidden", "no")),
        ]
    ),
]


def test_every_route_of_a_namespace_is_in_the_table():
    """Except the route for metrics, which gives every caller the same answer."""
    routes = {(method, path) for method, path, _ in reading.ROUTES if "{namespace}" in path}
    metrics = ("POST", TABLE + "/metrics")
    tried = {
        (method, path)
        for method, path in routes
        for tried_method, shown, *_ in ROUTES
        if tried_method == method
        and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", path), f"/v1/lake/{shown}")
    }
    assert len(routes) >= 9 and tried == routes - {metrics}


@pytest.mark.parametrize("caller", ANALYSTS)
@pytest.mark.parametrize(("method", "shown", "hidden", "missing"), ROUTES)
def test_a_hidden_path_gets_the_answer_of_a_missing_one(
    aws, caller, method, shown, hidden, missing
):
    def blank(path: str) -> tuple[int, str]:
        """The answer without the requested names."""
        status, body = ask(aws, caller, f"lake/{path}", method)
        return status, re.sub(r"\b(salaries|hidden|hr|no)\b", "…", json.dumps(body))

    def is_seen(caller: dict, path: str) -> bool:
        status, answer = ask(aws, caller, f"lake/{path}", method)
        kind = answer.get("error", {}).get("type")
        return status in {200, 204} or kind == "NoSuchPlanTaskException"

    assert is_seen(caller, shown)
    assert blank(hidden) == blank(missing)
    assert blank(hidden)[0] == 404 and not is_seen(caller, hidden)
    assert is_seen(role("Admin"), hidden)


@pytest.mark.parametrize("prefix", ["lake", "lake--at-20"])
@pytest.mark.parametrize(("method", "shown", "hidden", "missing"), ROUTES)
def test_a_hidden_path_takes_the_statements_of_a_missing_one(
    aws, monkeypatch, prefix, method, shown, hidden, missing
):
    """So that the time does not tell them apart."""
    run, statements = CatalogConnection.run, []

    def recorded(self, sql, *args, **parameters):
        statements.append(sql)
        return run(self, sql, *args, **parameters)

    def statements_of(path: str) -> list[str]:
        statements.clear()
        assert ask(aws, role("Analyst"), f"{prefix}/{path}", method)[0] == 404
        return list(statements)

    ask(aws, role("Analyst"), f"{prefix}/{missing}", method)  # connects
    monkeypatch.setattr(CatalogConnection, "run", recorded)
    assert statements_of(hidden) == statements_of(missing) != []


def test_a_hidden_file_takes_the_statements_of_a_missing_one(aws, monkeypatch):
    """Each time, also after somebody else has read it."""
    hidden, analyst = keys(aws, "salaries")[0], role("Analyst")
    missing = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "01933333-3333-7333-8333-333333333333", hidden)
    assert missing != hidden
    run, statements = CatalogConnection.run, []

    def recorded(self, sql, *args, **parameters):
        statements.append(sql)
        return run(self, sql, *args, **parameters)

    def statements_of(key: str) -> list[str]:
        statements.clear()
        assert head(aws, analyst, key) == (404, "NoSuchKey")
        return list(statements)

    head(aws, analyst, missing)  # connects
    monkeypatch.setattr(CatalogConnection, "run", recorded)
    assert head(aws, role("Admin"), hidden) == (200, None)
    taken = [statements_of(key) for key in (hidden, missing) * 2]
    assert all(one == taken[0] != [] for one in taken)


REPORT = {"report-type": "scan-report", "table-name": "t", "filter": True, "metrics": {}}


def test_reporting_metrics_reveals_nothing(aws):
    for name in ("orders", "salaries", "no"):
        path = f"lake/namespaces/main/tables/{name}/metrics"
        answer = aws.rest.invoke(event(role("Analyst"), path, "POST", REPORT))
        assert (answer["statusCode"], json_of(answer)) == (204, {})


@pytest.mark.parametrize(
    "nobody", [None, {}, role("Other"), token("others"), {"jwt": {"claims": {}}}]
)
def test_a_caller_outside_the_policy_sees_nothing(aws, nobody):
    assert ask(aws, nobody, "lake/namespaces")[1] == {"namespaces": []}
    assert ask(aws, nobody, "lake/namespaces/main/tables/orders")[0] == 404


def test_rights_depend_on_the_current_name_of_a_table(aws):
    """The name at a pinned snapshot does not count: time travel does not change access."""
    analyst, admin = role("Analyst"), role("Admin")
    at = "lake--at-20/namespaces/main/tables"
    names = [t["name"] for t in ask(aws, admin, at)[1]["identifiers"]]
    assert names == ["later_secret", "orders", "salaries", "shown_later"]
    assert [t["name"] for t in ask(aws, analyst, at)[1]["identifiers"]] == ["shown_later"]
    assert ask(aws, analyst, f"{at}/orders")[0] == 404  # now orders_old
    assert ask(aws, analyst, f"{at}/shown_later")[0] == 200  # now orders
    assert ask(aws, admin, f"{at}/orders")[0] == 200
    views = "lake--at-20/namespaces/main/views"
    listed = [view["name"] for view in ask(aws, analyst, views)[1]["identifiers"]]
    assert listed == ["shown_later_view"]
    status, body = ask(aws, analyst, f"{views}/shown")  # now secret_view
    assert status == 404 and "orders" not in json.dumps(body)
    assert ask(aws, analyst, f"{views}/shown_later_view")[0] == 200  # now shown
    assert ask(aws, admin, f"{views}/shown")[0] == 200


def test_a_namespace_is_listed_only_if_part_of_it_may_be_read(aws):
    """The current names count; a namespace that may be read as a whole is always listed."""
    at = "lake--at-20/namespaces"
    names = [name for [name] in ask(aws, role("Admin"), at)[1]["namespaces"]]
    assert names == ["empty", "hr", "main", "past", "sales_eu", "sales_none", "views"]
    for where in ("lake/namespaces", at):
        for name in ("empty", "hr", "past"):
            assert ask(aws, role("Analyst"), f"{where}/{name}")[0] == 404
            assert ask(aws, role("Analyst"), f"{where}/{name}/tables")[0] == 404
            assert ask(aws, role("Admin"), f"{where}/{name}")[0] == 200
        assert ask(aws, role("Analyst"), f"{where}/sales_none/tables")[1] == {"identifiers": []}


def keys(aws, table: str) -> list[str]:
    """The keys of all virtual files of a table, found by a caller that may read it."""
    body = ask(aws, role("Admin"), f"lake/namespaces/main/tables/{table}")[1]
    listed = [s["manifest-list"] for s in body["metadata"]["snapshots"]]
    found = [body["metadata-location"], *listed]
    for place in listed:
        avro = get(aws, role("Admin"), place.removeprefix(f"s3://{ALIAS}/")).body
        found += [record["manifest_path"] for record in fastavro.reader(BytesIO(avro))]
    return [place.removeprefix(f"s3://{ALIAS}/") for place in found]


FIELD = {"id": 1, "name": "id", "type": "long", "required": False}
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [FIELD]}
KEYS = [str(UUID(int=n)) for n in range(1, 6)]
TABLES, VIEWS = "namespaces/main/tables", "namespaces/main/views"


def view_of(name: str) -> dict:
    version = {
        "version-id": 1,
        "timestamp-ms": 1_700_000_000_000,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "duckdb"}],
        "default-namespace": ["main"],
    }
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {}}


def renaming(source: str, destination: str) -> dict:
    return {
        "source": {"namespace": ["main"], "name": source},
        "destination": {"namespace": ["main"], "name": destination},
    }


def test_callers_of_the_same_audience_do_not_share_keys(aws):
    request = {"name": "mine_by_key", "schema": SCHEMA}
    alice, bob = user("alice"), user("bob")
    made = write(aws, alice, TABLES, request, key=KEYS[0])
    assert made[0] == 200
    status, answer = write(aws, bob, TABLES, request, key=KEYS[0])
    assert status == 400 and "used for another request" in answer["error"]["message"]
    renewed = user("alice", exp="2", jti="another")
    status, answer = write(aws, renewed, TABLES, request, key=KEYS[0])
    uuids = [body["metadata"]["table-uuid"] for body in (answer, made[1])]
    assert status == 200 and uuids[0] == uuids[1]
    [[author]] = aws.lake.database.run(
        "SELECT author FROM ducklake_snapshot_changes ORDER BY snapshot_id DESC LIMIT 1"
    )
    assert author == "iss=https://idp.example/ sub=alice"


@pytest.mark.parametrize("kind", ["tables", "views"])
def test_a_name_that_is_hidden_since_is_not_in_the_answer_to_a_replay(aws, kind):
    name, key = f"mine_{kind}", KEYS[1 + (kind == "views")]
    path, body = (TABLES, {"name": name, "schema": SCHEMA})
    if kind == "views":
        path, body = (VIEWS, view_of(name))
    assert write(aws, user("alice"), path, body, key=key)[0] == 200
    assert write(aws, role("Admin"), f"{kind}/rename", renaming(name, f"top_{kind}"))[0] == 204
    status, answer = write(aws, user("alice"), path, body, key=key)
    assert (status, answer["error"]["type"]) == (500, "CommitStateUnknownException")
    assert "top_" not in json.dumps(answer)


def test_the_uuid_of_a_hidden_table_reveals_nothing(aws):
    """Whether it is given to a name that the caller may write, or to another one."""
    request = {"name": "confidential", "schema": SCHEMA}
    made = write(aws, role("Admin"), TABLES, request)[1]["metadata"]
    commit = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": made["table-uuid"]},
            {"action": "add-schema", "schema": SCHEMA},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    }
    for caller, name, expected in (
        (user("eve"), "mine_too", 400),
        (user("eve"), "Wages", 403),
        (user("eve"), "private", 403),
        (role("Other"), "Wages", 404),  # it does not see the namespace
    ):
        status, answer = write(aws, caller, f"{TABLES}/{name}", commit)
        assert (status, "confidential" in json.dumps(answer)) == (expected, False)
    aws.lake.database.run(
        "UPDATE polynya_commits SET client_snapshot_id = :id "
        "WHERE table_uuid = CAST(:uuid AS uuid)",
        id=2**50,
        uuid=made["table-uuid"],
    )
    snapshot = {
        "snapshot-id": 2**50,
        "timestamp-ms": 1,
        "manifest-list": "s3://a/b",
        "summary": {"operation": "append"},
    }
    refs = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    commit["updates"] += [
        {"action": "add-snapshot", "snapshot": snapshot},
        refs | {"snapshot-id": 2**50},
    ]
    status, answer = write(aws, user("eve"), f"{TABLES}/mine_too", commit)
    assert status == 500 and "confidential" not in json.dumps(answer)


# A request by a name, the name of something hidden in other letter case, and a name that the
# caller may read but not write.
LETTER_CASES = {
    "create a table": (TABLES, lambda name: {"name": name, "schema": SCHEMA}),
    "create a view": (VIEWS, view_of),
    "rename a table": ("tables/rename", lambda name: renaming("mine_one", name)),
    "rename a view": ("views/rename", lambda name: renaming("mine_view", name)),
    "create a namespace": ("namespaces", lambda name: {"namespace": [name]}),
}


@pytest.mark.parametrize("operation", LETTER_CASES)
def test_a_hidden_name_in_other_letter_case_is_one_that_may_not_be_written(aws, operation):
    path, body = LETTER_CASES[operation]
    write(aws, user("alice"), TABLES, {"name": "mine_one", "schema": SCHEMA})
    write(aws, user("alice"), VIEWS, view_of("mine_view"))
    names = ("HR", "Staff") if path == "namespaces" else ("Salaries", "Wages")
    taken, other = (write(aws, user("alice"), path, body(name)) for name in names)
    assert taken[0] == other[0] == 403
    assert json.dumps(taken).replace(names[0], names[1]) == json.dumps(other)


def test_a_guessed_key_of_another_table_is_not_found(aws):
    analyst = role("Analyst")
    secret, open_ = keys(aws, "salaries"), keys(aws, "orders")
    assert len(secret) >= 3
    for key in secret:
        assert head(aws, role("Admin"), key) == (200, None)
        for nobody in (analyst, role("Other"), None):
            assert head(aws, nobody, key) == (404, "NoSuchKey"), key
        response = get(aws, analyst, key)
        assert response.status == 404 and b"<Code>NoSuchKey</Code>" in response.body
    for key in open_:
        assert head(aws, analyst, key) == (200, None)


@pytest.mark.parametrize(
    "source",
    ["ssm:/no/such/policy", "s3://lakes/no/such/policy", '{"rules": [{}]}', '{"rules": []} '],
)
def test_without_a_valid_policy_nothing_is_served(aws, source):
    """The last policy is valid and permits nothing."""
    key = keys(aws, "orders")[0]
    with invocable(**aws.values | {"AUTHORIZATION": source}) as invoked:
        other = SimpleNamespace(**vars(aws) | invoked)
        for caller in (role("Admin"), role("Analyst"), None):
            status, body = ask(other, caller, "lake/namespaces/main/tables/orders")
            assert status == (404 if source.endswith(" ") else 500), body
            assert head(other, caller, key)[0] == status


def test_a_table_of_which_columns_are_hidden_is_refused(aws):
    """Callers have, or get, credentials for the bucket itself: nothing would be hidden."""
    of_orders = {"main": ["other", {"orders": {"hidden_columns": ["i"]}}]}
    rules = [
        {"principals": [f"arn:aws:iam::{ACCOUNT}:role/Analyst"], "tables": of_orders},
        {"principals": ["*"], **{key: {"*": ["*"]} for key in ("tables", "write")}},
    ]
    files = keys(aws, "orders")
    with invocable(**aws.values | {"AUTHORIZATION": json.dumps({"rules": rules})}) as invoked:
        other = SimpleNamespace(**vars(aws) | invoked)
        path = "lake/namespaces/main/tables/orders"
        for end, method in (("", "GET"), ("/credentials", "GET"), ("/plan", "POST")):
            status, body = ask(other, role("Analyst"), path + end, method)
            assert status == 400, (end, body)
            assert "`polynya serve`" in body["error"]["message"]
        for key in files:
            assert head(other, role("Analyst"), key) == (404, "NoSuchKey")
            assert head(other, role("Admin"), key) == (200, None)
            assert head(other, role("Analyst"), key.replace("/g3/list-", "/g3/list-h1-"))[0] == 404
        assert ask(other, role("Admin"), path)[0] == 200
        assert ask(other, role("Analyst"), "lake/namespaces/main/tables/salaries")[0] == 200


def test_the_policy_can_be_an_object_in_s3(aws):
    s3 = boto3.client("s3", endpoint_url=aws.moto)
    s3.put_object(Bucket="lakes", Key="policy.json", Body=json.dumps(POLICY).encode())
    with invocable(**aws.values | {"AUTHORIZATION": "s3://lakes/policy.json"}) as invoked:
        other = SimpleNamespace(**invoked)
        assert ask(other, role("Analyst"), "lake/namespaces/main/tables/orders")[0] == 200
        assert ask(other, role("Analyst"), "lake/namespaces/main/tables/salaries")[0] == 404
