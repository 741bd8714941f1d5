"""What `polynya serve` takes: bodies of requests to the catalog, uploads, connections."""

import http.client
import json
from contextlib import ExitStack, closing
from urllib.parse import urlsplit

import pytest
import requests
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_local.processes.serving import COMMAND, serving

from tests.e2e.commands.test_workers import eventually

MB = 1024 * 1024
CONNECTIONS = 4
SCHEMA = {
    "type": "struct",
    "fields": [{"id": 1, "name": "i", "type": "int", "required": False}],
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("limited")
    with closing(connect(LAKE)) as con:
        catalog, data = literal(f"ducklake:{folder}/m.ducklake"), literal(f"{folder}/data")
        con.execute(f"ATTACH {catalog} AS lake (DATA_PATH {data})")
    return f"{folder}/m.ducklake"


@pytest.fixture(scope="module")
def served(lake):
    with serving(
        lake,
        None,
        delivery="object-lambda",
        writes=True,
        page=False,
        settings={"REQUEST_MB": "1"},
        options=["--max-connections", str(CONNECTIONS)],
    ) as bridge:
        yield bridge


def created(bridge, table: str, length: int) -> requests.Response:
    """The answer to a createTable whose body has so many bytes."""
    body = json.dumps({"name": table, "schema": SCHEMA})
    uri = f"{bridge.catalog_uri}/v1/lake/namespaces/main/tables"
    return requests.post(uri, data=body.ljust(length), timeout=60)


def test_a_request_has_a_limit_and_an_upload_has_none(served):
    # What the client still sends is read, so that it gets the answer.
    for length in (MB + 1, 30 * MB):
        answer = created(served, "t", length)
        assert answer.status_code == 413
        assert answer.json()["error"]["type"] == "ContentTooLargeException"
    answer = created(served, "t", MB)
    assert answer.status_code == 200, answer.text
    location = answer.json()["metadata"]["properties"]["write.data.path"].removeprefix("s3://")
    uri, body = f"{served.s3_endpoint}/{location}/new.parquet", bytes(range(256)) * (5 * MB // 256)
    assert requests.put(uri, data=body, timeout=60).status_code == 200
    assert requests.get(uri, timeout=60).content == body


def connected(uri: str) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection(urlsplit(uri).netloc, timeout=60)
    connection.connect()
    return connection


def asked(connection: http.client.HTTPConnection, path: str) -> tuple[int, http.client.HTTPMessage]:
    connection.request("GET", path)
    response = connection.getresponse()
    response.read()
    return response.status, response.headers


def test_connections_beyond_the_limit_are_refused_and_the_others_go_on(served):
    config = "/v1/config?warehouse=lake"

    def is_let_in() -> bool:
        with closing(connected(served.catalog_uri)) as connection:
            return asked(connection, config)[0] == 200

    with ExitStack() as stack:

        def opened(uri: str) -> http.client.HTTPConnection:
            return stack.enter_context(closing(connected(uri)))

        first = [opened(served.catalog_uri) for _ in range(CONNECTIONS - 1)]
        assert {asked(connection, config)[0] for connection in first} == {200}
        of_s3 = opened(served.s3_endpoint)
        assert asked(of_s3, "/nothing/here")[0] == 404
        for uri in (served.catalog_uri, served.s3_endpoint):
            status, headers = asked(opened(uri), config)
            assert status == 503
            assert (headers["retry-after"], headers["connection"]) == ("2", "close")
        # What restarts a process must not do so because it has much to do.
        with closing(connected(served.catalog_uri)) as other:
            assert asked(other, "/live")[0] == 200
            assert asked(other, config)[0] == 503
        assert {asked(connection, config)[0] for connection in first} == {200}
        assert not is_let_in()
        of_s3.close()
        eventually(is_let_in)


FILES = 128
"""How many open files a process starts with."""


def test_a_process_has_more_connections_than_files_that_it_starts_with(lake):
    limited = ["sh", "-c", f'ulimit -Sn {FILES}; exec "$@"', "sh", *COMMAND]
    with (
        serving(lake, None, delivery="object-lambda", page=False, command=limited) as bridge,
        ExitStack() as stack,
    ):
        for _ in range(2 * FILES):
            connection = stack.enter_context(closing(connected(bridge.catalog_uri)))
            assert asked(connection, "/live")[0] == 200
