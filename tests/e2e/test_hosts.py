"""The application gives the same bytes in every host: behind a Lambda event, in process, at a port.

And it holds all that it knows: two with other settings live in one process, and so do functions.
"""

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import unquote

import pytest
from aws_lambda_powertools import Logger
from polynya.access.caller import ANYBODY
from polynya.aws_lambda.api_handler import api_handler
from polynya.catalog.lakes import Lakes
from polynya.catalog.reader import open_catalog
from polynya.catalog.writer import open_writable_catalog
from polynya.http import reading, writing
from polynya.http.application import create_app
from polynya.http.calls import CALLER
from polynya.runtime.settings import Config
from polynya_local.processes.serving import REGION
from polynya_local.server.uvicorn_server import answering, bound_socket
from polynya_local.writes import EVERYBODY_MAY_WRITE
from starlette.types import ASGIApp

from tests.aws.lambda_function import LambdaFunction
from tests.support.servers.in_process import functions
from tests.support.writes.writable import set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR);
INSERT INTO t SELECT i, 'v' || i FROM range(100) AS r(i);
CREATE TABLE "a/b"(i INTEGER);
CREATE VIEW v AS SELECT i FROM t;
"""


class Answer(NamedTuple):
    """What a host gives; headers that it adds by itself are left out."""

    status: int
    headers: dict[str, str]
    body: bytes


Ask = Callable[[str, str, bytes], Answer]
"""Sends a request: the method, the target and the body."""

OF_THE_HOST = {"date", "connection", "transfer-encoding"}


def answer(status: int, headers: dict[str, str], body: bytes) -> Answer:
    # Mangum gives each answer a type, also one without a body.
    added = OF_THE_HOST | (set() if body else {"content-type"})
    lower = {name.lower(): value for name, value in headers.items()}
    return Answer(status, {n: v for n, v in lower.items() if n not in added}, body)


def with_caller(app: ASGIApp) -> ASGIApp:
    """What a host does before it calls the application."""

    async def hosted(scope, receive, send) -> None:
        await app({**scope, CALLER: ANYBODY}, receive, send)

    return hosted


def in_process(app: ASGIApp) -> Ask:
    def ask(method: str, target: str, body: bytes) -> Answer:
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", b"localhost"), (b"content-length", str(len(body)).encode())],
            CALLER: ANYBODY,
        }
        messages = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message) -> None:
            messages.append(message)

        with closing(asyncio.new_event_loop()) as loop:
            loop.run_until_complete(app(scope, receive, send))
        headers = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        return answer(
            messages[0]["status"], headers, b"".join(m.get("body", b"") for m in messages[1:])
        )

    return ask


def by_event(function: LambdaFunction) -> Ask:
    def ask(method: str, target: str, body: bytes) -> Answer:
        path, _, query = target.partition("?")
        event = {
            "version": "2.0",
            "rawPath": unquote(path),
            "rawQueryString": query,
            "headers": {"host": "localhost", "content-length": str(len(body))},
            "requestContext": {
                "http": {"method": method, "path": unquote(path), "sourceIp": "127.0.0.1"},
                "stage": "$default",
            },
            "body": body.decode(),
            "isBase64Encoded": False,
        }
        given = function.invoke(event)
        return answer(given["statusCode"], given["headers"], given["body"].encode())

    return ask


def at_a_port(uri: str) -> Ask:
    host, port = uri.removeprefix("http://").split(":")

    def ask(method: str, target: str, body: bytes) -> Answer:
        connection = HTTPConnection(host, int(port), timeout=60)
        connection.request(method, target, body=body)
        response = connection.getresponse()
        given = answer(response.status, dict(response.getheaders()), response.read())
        connection.close()
        return given

    return ask


def settings_of(lake, **values: str) -> dict[str, str]:
    return {
        "DATABASE_URL": lake.database.url,
        "METADATA_SCHEMA": lake.metadata_schema,
        "VIRTUAL_BUCKET": "virtual",
        "WRITES": "yes",
        "AUTHORIZATION": EVERYBODY_MAY_WRITE,
        **values,
    }


def application(settings: dict[str, str], stack: ExitStack) -> ASGIApp:
    """All operations on the lake of these settings."""
    config = Config.from_env(settings)
    catalogs = Lakes(config, open_catalog, environ=settings)
    writables = Lakes(config, open_writable_catalog, environ=settings, commits=True)
    stack.callback(catalogs.close)
    stack.callback(writables.close)
    groups = writing.operations(lambda: writables), reading.operations(lambda: catalogs)
    return create_app(Logger(level="CRITICAL"), *groups)


@pytest.fixture(scope="module")
def hosts(lake, moto) -> Iterator[dict[str, Ask]]:
    one = set_up_writes(lake.write("hosts", SCRIPT))
    with ExitStack() as stack:
        app = application(settings_of(one), stack)
        handler = api_handler(app, Logger(level="CRITICAL"))
        function = LambdaFunction("rest", handler, region="us-east-1", timeout_s=29)
        stack.callback(function.stop)
        uri = stack.enter_context(answering(with_caller(app), bound_socket(0)))
        yield {"event": by_event(function), "process": in_process(app), "port": at_a_port(uri)}


NAMES = {"prefix": "lake", "namespace": "main", "table": "t", "view": "v"}
ROUTES = [(method, path) for method, path, _ in (*reading.ROUTES, *writing.ROUTES)]
MORE = [
    ("GET", "/v1/lake/namespaces/main/tables/a%2Fb"),
    ("GET", "/v1/lake/namespaces/main/tables/t?snapshots=refs"),
    ("GET", "/v1/lake/namespaces/main/tables?pageSize=1"),
    ("GET", "/v1/lake/namespaces/main/tables?pageSize=x"),
    ("GET", "/v1/lake/namespaces/main/tables/gone"),
    ("GET", "/v1/other/namespaces"),
    ("GET", "/v1/nothing/at/all"),
    ("PUT", "/v1/lake/namespaces"),
]


@pytest.mark.parametrize(("method", "path"), [*ROUTES, *MORE])
def test_every_host_gives_the_same_bytes(method, path, hosts):
    """What writes is sent a body that is refused, so that it can be sent again."""
    target = re.sub(r"\{(\w+)\}", lambda name: NAMES[name[1]], path)
    if method == "DELETE":
        target += "-gone"
    body = b"{" if method == "POST" else b""
    answers = {name: ask(method, target, body) for name, ask in hosts.items()}
    assert answers["event"] == answers["process"] == answers["port"]
    assert answers["port"].status != 500
    assert answers["port"].body or answers["port"].status == 204 or method == "HEAD"


def test_functions_with_other_settings_live_in_one_process(lake, moto):
    """Both are started before one of them has read its settings."""
    one, other = (lake.write(f"instances_{name}", SCRIPT) for name in ("one", "other"))
    with (
        functions(**settings_of(one, WAREHOUSE="one")) as first,
        functions(**settings_of(other, WAREHOUSE="other")) as second,
    ):
        for name, started, lake_ in (("one", first, one), ("other", second, other)) * 2:
            function = LambdaFunction("rest", started.rest_catalog, region=REGION, timeout_s=29)
            loaded = by_event(function)("GET", f"/v1/{name}/namespaces/main/tables/t", b"")
            function.stop()
            properties = json.loads(loaded.body)["metadata"]["properties"]
            assert properties["write.data.path"].startswith(lake_.data_path)


def test_two_applications_with_other_settings_live_in_one_process(lake, moto):
    """They hide other types, of the same lake, while each answers requests of the other's names."""
    one = lake.write("hosts_twice", SCRIPT)
    with ExitStack() as stack:
        asks = [
            in_process(application(settings_of(one, **values), stack))
            for values in (
                {"WAREHOUSE": "first"},
                {"WAREHOUSE": "other", "HIDDEN_TYPES": "varchar"},
            )
        ]
        for _ in range(2):
            columns = []
            for ask, name in zip(asks, ("first", "other"), strict=True):
                loaded = ask("GET", f"/v1/{name}/namespaces/main/tables/t", b"")
                schemas = json.loads(loaded.body)["metadata"]["schemas"]
                columns.append([field["name"] for field in schemas[-1]["fields"]])
            assert columns == [["i", "s"], ["i"]]
        assert asks[0]("GET", "/v1/other/namespaces", b"").status == 404
