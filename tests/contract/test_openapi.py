"""The Iceberg OpenAPI document describes every answer of a read route.

The document is the pinned one of Apache Iceberg; the answers come over HTTP from the real handlers.
"""

import itertools
from urllib.parse import quote

import pytest
import requests
from polynya.catalog.lakes import Lakes
from polynya.http.application import COMPRESSED_FROM
from polynya_local.processes.serving import serving

from tests.support.openapi import ENVELOPE, PATHS, resolved, validator
from tests.support.servers.in_process import standing_in

NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
TABLE = NAMESPACE + "/tables/{table}"
VIEW = NAMESPACE + "/views/{view}"
# Names that no lake has, and the answers of each route to them.
ABSENT = {"namespace": "no_such", "table": "no_such", "view": "no_such"}
MISSING = [
    ("/v1/config?warehouse=other", {}, "NoSuchWarehouseException"),
    ("/v1/config?warehouse=lake@987654321", {}, "NoSuchWarehouseException"),
    ("/v1/{prefix}/namespaces", {"prefix": "other"}, "NoSuchWarehouseException"),
    ("/v1/{prefix}/namespaces?parent=no_such", {}, "NoSuchNamespaceException"),
    (NAMESPACE, {}, "NoSuchNamespaceException"),
    (NAMESPACE + "/tables", {}, "NoSuchNamespaceException"),
    (NAMESPACE + "/views", {}, "NoSuchNamespaceException"),
    (TABLE, {}, "NoSuchTableException"),
    (TABLE, {"namespace": "main"}, "NoSuchTableException"),
    (VIEW, {}, "NoSuchViewException"),
    (VIEW, {"namespace": "main"}, "NoSuchViewException"),
]
BAD = [
    "/v1/{prefix}/namespaces?pageSize=0",
    "/v1/{prefix}/namespaces?pageToken=!",
    NAMESPACE + "/tables?pageSize=many",
    NAMESPACE + "/tables?pageToken=!",
    TABLE + "?snapshots=some",
]
METRICS = {
    "report-type": "scan-report",
    "table-name": "t",
    "snapshot-id": 1,
    "filter": True,
    "schema-id": 0,
    "projected-field-ids": [1],
    "projected-field-names": ["a"],
    "metrics": {},
}


class Client:
    """Sends requests for the document's operations and checks each answer against it."""

    def __init__(self, uri: str) -> None:
        self._uri, self._session = uri, requests.Session()
        self.prefix = "lake"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self._session.close()

    def send(self, method: str, route: str, status: int, **arguments) -> requests.Response:
        """The answer to `route`, with the names from `arguments` filled in, after all checks."""
        template, _, query = route.partition("?")
        words = {
            name: quote(arguments.pop(name, default), safe="")
            for name, default in {"prefix": self.prefix, **ABSENT}.items()
        }
        url = f"{self._uri}{template.format(**words)}" + (f"?{query}" if query else "")
        response = self._session.request(method, url, timeout=60, **arguments)
        where = f"{method} {url}: {response.status_code} {response.text[:300]}"
        assert response.status_code == status, where
        answers = PATHS[template][method.lower()]["responses"]
        # YAML reads the keys `200:` as numbers.
        answer = resolved(answers[status])
        if method == "HEAD" or "content" not in answer:
            assert not response.content, where
        else:
            assert response.headers["Content-Type"] == "application/json"
            schema = answer["content"]["application/json"]["schema"]["$ref"]
            validator(schema).validate(response.json())
        for name, header in answer.get("headers", {}).items():
            assert response.headers.get(name) or not resolved(header).get("required"), name
        if status >= 400 and method != "HEAD":
            error = response.json()["error"]
            assert error["code"] == status and error["message"] and error["type"]
        return response

    def get(self, route: str, status: int = 200, **arguments):
        response = self.send("GET", route, status, **arguments)
        return response.json() if response.content else None

    def pages(self, route: str, key: str, **names) -> list:
        """All items, read in pages of one."""
        items, token = [], ""
        for _ in range(1000):
            page = self.get(f"{route}?pageSize=1&pageToken={quote(token)}", **names)
            assert len(page[key]) <= 1
            items += page[key]
            token = page.get("next-page-token")
            if token is None:
                return items
        raise AssertionError(f"{route} has no last page")


# Deletes; inlined rows; comments and views.
LAKES = ["09", "13", "26"]
LAKES += [pytest.param(number, marks=pytest.mark.slow) for number in ("16", "22", "25", "31", "40")]


@pytest.fixture(scope="module", params=LAKES)
def client(request, lake, moto):
    with standing_in(lake(request.param), moto) as stand_in, Client(stand_in.api_uri) as client:
        yield client


@pytest.fixture(scope="module")
def command(lake, moto):
    """A client of `polynya serve`."""
    served = lake("13")
    with serving(served.database.url, moto) as bridge, Client(bridge.catalog_uri) as client:
        yield client


def names(client: Client) -> list[tuple[str, str]]:
    namespaces = client.get("/v1/{prefix}/namespaces")["namespaces"]
    return [
        (namespace, identifier["name"])
        for (namespace,) in namespaces
        for identifier in client.get(NAMESPACE + "/tables", namespace=namespace)["identifiers"]
    ]


def test_the_validator_finds_errors():
    """A schema with unresolved references would accept everything."""
    wrong = {"metadata": {"format-version": "two", "table-uuid": "x"}, "config": {"a": 1}}
    errors = validator("#/components/schemas/LoadTableResult").iter_errors(wrong)
    assert {tuple(e.absolute_path) for e in errors} == {
        ("metadata", "format-version"),
        ("config", "a"),
    }
    assert not validator(ENVELOPE).is_valid({"error": {}})


def test_config_names_the_lake_and_what_is_served(client):
    for query in ("", "?warehouse=", "?warehouse=lake"):
        config = client.get(f"/v1/config{query}")
        assert config["overrides"]["prefix"] == "lake"
        for endpoint in config["endpoints"]:
            method, path = endpoint.split(" ")
            assert method.lower() in PATHS[path], endpoint


def test_namespaces_and_their_pages(client):
    whole = client.get("/v1/{prefix}/namespaces")["namespaces"]
    assert ["main"] in whole
    assert client.pages("/v1/{prefix}/namespaces", "namespaces") == whole
    for (namespace,) in whole:
        assert client.get(NAMESPACE, namespace=namespace)["namespace"] == [namespace]
        client.send("HEAD", NAMESPACE, 204, namespace=namespace)
        query = f"?parent={quote(namespace, safe='')}"
        assert client.get("/v1/{prefix}/namespaces" + query)["namespaces"] == []
        tables = client.get(NAMESPACE + "/tables", namespace=namespace)["identifiers"]
        pages = client.pages(NAMESPACE + "/tables", "identifiers", namespace=namespace)
        assert pages == tables
        client.get(NAMESPACE + "/views", namespace=namespace)
        client.get(NAMESPACE + "/views?pageSize=1&pageToken=", namespace=namespace)


def test_tables(client):
    for namespace, table in names(client):
        name = {"namespace": namespace, "table": table}
        client.send("HEAD", TABLE, 204, **name)
        tags = []
        for query in ("", "?snapshots=all", "?snapshots=refs"):
            response = client.send("GET", TABLE + query, 200, **name)
            tags.append(response.headers["ETag"])
            for header in (tags[-1], f'"other", {tags[-1]}'):
                same = client.send(
                    "GET", TABLE + query, 304, headers={"If-None-Match": header}, **name
                )
                assert same.headers["ETag"] == tags[-1]
            client.send("GET", TABLE + query, 200, headers={"If-None-Match": '"other"'}, **name)
            consistent(response.json())
        # "the ETag for snapshots=refs and for snapshots=all must differ" if the bodies differ.
        whole, refs = (client.get(TABLE + f"?snapshots={word}", **name) for word in ("all", "refs"))
        assert tags[0] == tags[1] and (tags[1] == tags[2]) == (whole == refs)
        wanted = {ref["snapshot-id"] for ref in whole["metadata"].get("refs", {}).values()}
        assert {s["snapshot-id"] for s in refs["metadata"]["snapshots"]} == wanted
        client.send("POST", TABLE + "/metrics", 204, json=METRICS, **name)


def test_answers_are_compressed_for_clients_that_accept_gzip(client):
    for namespace, table in names(client):
        name = {"namespace": namespace, "table": table}
        plain, packed = (
            client.send("GET", TABLE, 200, headers={"Accept-Encoding": encoding}, **name)
            for encoding in ("identity", "gzip")
        )
        assert plain.json() == packed.json()
        assert plain.headers["ETag"] == packed.headers["ETag"]
        assert "Content-Encoding" not in plain.headers
        if len(plain.content) >= COMPRESSED_FROM:
            assert packed.headers.get("Content-Encoding") == "gzip"
            assert int(packed.headers["Content-Length"]) < len(plain.content)


def consistent(loaded: dict) -> None:
    """Check a rule of the specification's text: every id refers to something that exists."""
    metadata = loaded["metadata"]
    snapshots = metadata["snapshots"]
    ids = [snapshot["snapshot-id"] for snapshot in snapshots]
    assert len(set(ids)) == len(ids) and all(number > 0 for number in ids)
    current = metadata.get("current-snapshot-id", -1)
    refs = metadata.get("refs", {})
    assert (current in ids and refs["main"]["snapshot-id"] == current) or current == -1
    assert all(ref["snapshot-id"] in ids for ref in refs.values())
    schemas = {schema["schema-id"] for schema in metadata["schemas"]}
    assert metadata["current-schema-id"] in schemas
    assert {spec["spec-id"] for spec in metadata["partition-specs"]} >= {
        metadata["default-spec-id"]
    }
    for snapshot in snapshots:
        assert snapshot["schema-id"] in schemas
        assert snapshot["sequence-number"] <= metadata["last-sequence-number"]
        assert snapshot["manifest-list"].startswith(metadata["location"] + "/")
        assert snapshot["timestamp-ms"] <= metadata["last-updated-ms"]
    times = [entry["timestamp-ms"] for entry in metadata.get("snapshot-log", [])]
    assert times == sorted(times)
    assert not [path for path in nulls(loaded) if path], "null where Java expects no value"
    assert loaded["metadata-location"].endswith(".metadata.json")
    fields = itertools.chain.from_iterable(schema["fields"] for schema in metadata["schemas"])
    assert max((field["id"] for field in fields), default=0) <= metadata["last-column-id"]


def nulls(node, path: str = "") -> list[str]:
    if isinstance(node, dict):
        children = [(f"{path}.{key}", value) for key, value in node.items()]
    elif isinstance(node, list):
        children = [(f"{path}[{index}]", value) for index, value in enumerate(node)]
    else:
        return [path] if node is None else []
    return [found for key, value in children for found in nulls(value, key)]


@pytest.mark.parametrize("route, names, type", MISSING)
def test_a_missing_resource_is_404_with_a_documented_type(command, route, names, type):
    assert command.get(route, 404, **names)["error"]["type"] == type
    if "head" in PATHS[route.partition("?")[0]]:
        command.send("HEAD", route, 404, **names)


@pytest.mark.parametrize("route", BAD)
def test_a_malformed_request_is_400(command, route):
    error = command.get(route, 400, namespace="main")["error"]
    assert error["type"] == "BadRequestException"


def test_the_command_answers_the_same(command, lake, moto):
    test_config_names_the_lake_and_what_is_served(command)
    test_namespaces_and_their_pages(command)
    test_tables(command)


def test_a_pinned_warehouse_shows_no_later_snapshot(client):
    everything = {
        name: client.get(TABLE, namespace=name[0], table=name[1]) for name in names(client)
    }
    ids = [s["snapshot-id"] for one in everything.values() for s in one["metadata"]["snapshots"]]
    pinned = sorted(ids)[len(ids) // 2]
    config = client.get(f"/v1/config?warehouse=lake@{pinned}")
    assert config == client.get(f"/v1/config?warehouse=lake%40{pinned}")
    client.prefix = config["overrides"]["prefix"]
    try:
        seen = names(client)
        for namespace, table in seen:
            client.send("HEAD", TABLE, 204, namespace=namespace, table=table)
            loaded = client.get(TABLE, namespace=namespace, table=table)
            consistent(loaded)
            assert all(s["snapshot-id"] <= pinned for s in loaded["metadata"]["snapshots"])
        assert seen
    finally:
        client.prefix = "lake"


def test_an_internal_error_is_a_documented_answer(lake, moto, monkeypatch):
    """The error is simulated, because no real one is known. Its message may contain a secret."""

    def fail(*args):
        raise ZeroDivisionError("postgresql://reader:secret@db/lake")

    with standing_in(lake("09"), moto) as served, Client(served.api_uri) as client:
        monkeypatch.setattr(Lakes, "named", fail)
        response = requests.get(f"{served.api_uri}/v1/config", timeout=10)
        monkeypatch.undo()
        assert response.status_code == 500
        validator(ENVELOPE).validate(response.json())
        assert "secret" not in response.text
        client.send("GET", "/v1/config", 200)


def test_without_a_database_every_route_answers_503(lake, moto):
    away = {"DATABASE_URL": "postgresql://127.0.0.1:1/away"}
    stand_in = standing_in(lake("09"), moto, **away)
    with stand_in as served, Client(served.api_uri) as client:
        for route in (
            "/v1/config",
            "/v1/{prefix}/namespaces",
            NAMESPACE,
            TABLE,
            NAMESPACE + "/tables",
        ):
            response = client.send("GET", route, 503)
            assert int(response.headers["Retry-After"]) > 0
            assert response.json()["error"]["type"] == "SlowDownException"
            if "head" in PATHS[route]:
                client.send("HEAD", route, 503)
