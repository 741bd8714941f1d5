"""The application gives the same bytes in every host: behind a Lambda event, in process, at a port.

And it holds all that it knows: two with other settings live in one process, and so do functions.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from io import BytesIO
from typing import NamedTuple
from urllib.parse import unquote

import boto3
import fastavro
import pyarrow.parquet as pq
import pytest
from aws_lambda_powertools import Logger
from polynya.access.caller import ANYBODY
from polynya.aws_lambda.api_handler import api_handler
from polynya.catalog.lakes import Lakes, Shared
from polynya.catalog.reader import open_catalog
from polynya.catalog.writer import open_writable_catalog
from polynya.http import reading, writing
from polynya.http.application import create_app
from polynya.http.calls import CALLER
from polynya.http.file_by_key import FileRequest, open_files, read_file
from polynya.runtime.settings import Config
from polynya.storage.aws import AwsSettings, Clients
from polynya.storage.s3_locations import bucket_and_key
from polynya_local.processes.serving import REGION
from polynya_local.server.uvicorn_server import answering, bound_socket
from polynya_local.writes import EVERYBODY_MAY_WRITE
from starlette.types import ASGIApp

from tests.aws.lambda_function import LambdaFunction
from tests.support.lakes import BUCKET
from tests.support.servers.in_process import functions
from tests.support.servers.lost_answers import LostAnswers
from tests.support.writes.writable import set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR);
INSERT INTO t SELECT i, 'v' || i FROM range(100) AS r(i);
CREATE TABLE "a/b"(i INTEGER);
CREATE VIEW v AS SELECT i FROM t;
"""


POSITION_DELETES = 1


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


def application(
    settings: dict[str, str], stack: ExitStack, shared: Shared | None = None
) -> ASGIApp:
    """All operations on the lake of these settings."""
    config, shared = Config.from_env(settings), shared or Shared()
    catalogs = Lakes(config, open_catalog, environ=settings, shared=shared)
    writables = Lakes(config, open_writable_catalog, environ=settings, commits=True, shared=shared)
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


class AskedStore(LostAnswers):
    """Passes on requests to S3, and keeps their paths."""

    def __init__(self, s3_endpoint: str) -> None:
        super().__init__(s3_endpoint)
        self.paths: set[str] = set()

    def forward(self, method, sent):
        self.paths.add(unquote(sent.path))
        return super().forward(method, sent)


def files_of_list(read: Callable[[str], bytes], location: str) -> Counter[int]:
    """The rows that a manifest list names, by the content of files; delete files are read, too."""

    def records(place: str) -> fastavro.reader:
        return fastavro.reader(BytesIO(read(place)))

    rows: Counter[int] = Counter()
    for manifest in records(location):
        for entry in records(manifest["manifest_path"]):
            file = entry["data_file"]
            rows[file["content"]] += file["record_count"]
            if file["content"] == POSITION_DELETES:
                deletes = pq.read_table(BytesIO(read(file["file_path"])))
                assert deletes.num_rows == file["record_count"]
    return rows


def test_two_applications_with_other_settings_live_in_one_process(lake, moto):
    """Each has a database, an S3 endpoint and a delivery of its own, and answers in turn with the
    other one; the environment names no endpoint."""
    kinds = {
        "first": ({"DELIVERY": "materialize", "VIRTUAL_BUCKET": BUCKET}, 100, 5),
        "other": ({"DELIVERY": "object-lambda", "HIDDEN_TYPES": "varchar"}, 7, 2),
    }
    s3 = boto3.client("s3", endpoint_url=moto)

    def read_in_s3(location: str) -> bytes:
        bucket, key = bucket_and_key(location)
        return s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    with ExitStack() as stack:
        deployed = []
        for name, (values, rows, deleted) in kinds.items():
            script = f"{SCRIPT.replace('range(100)', f'range({rows})')}DELETE FROM t WHERE i < "
            one = lake.write(f"hosts_{name}", f"{script}{deleted};", prefix=f"{name}/")
            store = stack.enter_context(AskedStore(moto))
            settings = settings_of(one, WAREHOUSE=name, VIRTUAL_PREFIX=f"{name}/v", **values)
            shared = Shared(aws=Clients(AwsSettings.from_s3_endpoint(store.uri)))
            ask = in_process(application(settings, stack, shared))
            lakes = Lakes(Config.from_env(settings), open_files, environ=settings, shared=shared)
            stack.callback(lakes.close)

            def read_by_key(location: str, lakes=lakes) -> bytes:
                _, key = bucket_and_key(location)
                body = read_file(lakes, FileRequest(key, ANYBODY)).body
                return body if isinstance(body, bytes) else b"".join(body)

            read = read_in_s3 if name == "first" else read_by_key
            deployed.append((name, one, store, ask, read))
        for _ in range(2):
            columns, counts = [], []
            for name, one, _, ask, read in deployed:
                loaded = ask("GET", f"/v1/{name}/namespaces/main/tables/t", b"")
                metadata = json.loads(loaded.body)["metadata"]
                assert metadata["properties"]["write.data.path"].startswith(one.data_path)
                columns.append([field["name"] for field in metadata["schemas"][-1]["fields"]])
                counts.append(files_of_list(read, metadata["snapshots"][-1]["manifest-list"]))
            assert columns == [["i", "s"], ["i"]]
            assert counts == [{0: 100, POSITION_DELETES: 5}, {0: 7, POSITION_DELETES: 2}]
        for name, _, store, _, _ in deployed:
            assert store.paths and all(f"{name}/" in path for path in store.paths), store.paths
        assert deployed[0][3]("GET", "/v1/other/namespaces", b"").status == 404
