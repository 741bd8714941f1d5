"""The Iceberg OpenAPI document describes the answers of the routes that write."""

import pytest
from polynya_local.processes.serving import serving

from tests.contract.test_openapi import NAMESPACE, TABLE, VIEW, Client
from tests.support.openapi import PATHS
from tests.support.writes.writable import set_up_writes

NAMESPACES = "/v1/{prefix}/namespaces"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}],
}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "representations": [{"type": "sql", "sql": "SELECT 1 AS a", "dialect": "duckdb"}],
    "default-namespace": ["n"],
}
A_VIEW = {"name": "v", "schema": SCHEMA, "view-version": VERSION, "properties": {}}
SETTING = {"updates": [{"action": "set-properties", "updates": {"a": "1"}}], "requirements": []}


def rename(source: str, destination: str):
    names = {"source": source, "destination": destination}
    return {key: {"namespace": ["n"], "name": name} for key, name in names.items()}


# Method, route, status, body.
OPERATIONS = [
    ("POST", NAMESPACES, 200, {"namespace": ["n"], "properties": {"owner": "me"}}),
    ("POST", NAMESPACES, 409, {"namespace": ["n"]}),
    ("POST", NAMESPACES, 400, {"namespace": ["n", "m"]}),
    ("POST", NAMESPACE + "/properties", 200, {"updates": {"a": "b"}, "removals": ["c"]}),
    ("POST", NAMESPACE + "/properties", 422, {"updates": {"a": "b"}, "removals": ["a"]}),
    ("POST", NAMESPACE + "/tables", 200, {"name": "t", "schema": SCHEMA}),
    ("POST", NAMESPACE + "/tables", 409, {"name": "t", "schema": SCHEMA}),
    ("POST", NAMESPACE + "/views", 200, A_VIEW),
    ("POST", NAMESPACE + "/views", 409, A_VIEW),
    ("POST", VIEW, 200, SETTING),
    ("POST", TABLE, 200, SETTING),
    ("DELETE", NAMESPACE, 409, None),
    ("POST", "/v1/{prefix}/tables/rename", 204, rename("t", "u")),
    ("POST", "/v1/{prefix}/tables/rename", 404, rename("t", "u")),
    ("POST", "/v1/{prefix}/views/rename", 409, rename("v", "u")),
    ("POST", "/v1/{prefix}/views/rename", 204, rename("v", "w")),
    ("POST", "/v1/{prefix}/views/rename", 204, rename("w", "v")),
    ("POST", "/v1/{prefix}/tables/rename", 204, rename("u", "t")),
    (
        *("POST", "/v1/{prefix}/transactions/commit", 204),
        {"table-changes": [{"identifier": {"namespace": ["n"], "name": "t"}, **SETTING}]},
    ),
    ("POST", "/v1/{prefix}/transactions/commit", 400, {"table-changes": []}),
    ("POST", NAMESPACE + "/register", 400, {"name": "r", "metadata-location": "s3://b/m"}),
    ("POST", NAMESPACE + "/register-view", 400, {"name": "r", "metadata-location": "s3://b/m"}),
    ("DELETE", TABLE, 204, None),
    ("DELETE", TABLE, 404, None),
    ("DELETE", VIEW, 204, None),
    ("DELETE", VIEW, 404, None),
    ("DELETE", NAMESPACE, 204, None),
    ("DELETE", NAMESPACE, 404, None),
]


@pytest.fixture(scope="module")
def client(lake, moto):
    served = lake.fresh("31")
    set_up_writes(served)
    with (
        serving(served.database.url, moto, writes=True) as bridge,
        Client(bridge.catalog_uri) as client,
    ):
        yield client


def test_every_answer_is_as_described(client):
    """In this order: each operation depends on those before it."""
    for method, route, status, body in OPERATIONS:
        arguments = {} if body is None else {"json": body}
        client.send(method, route, status, namespace="n", table="t", view="v", **arguments)


def test_the_config_names_every_operation_that_writes(client):
    named = client.get("/v1/config")["endpoints"]
    done = {f"{method} {route}" for method, route, _, _ in OPERATIONS}
    assert done - {f"POST {NAMESPACE}/register-view"} <= set(named)
    assert {f"{method.upper()} {path}" for path in PATHS for method in PATHS[path]} >= set(named)
