"""The application gives the same bytes in every host: behind Lambda's events, in process, as the
command `polynya serve`.

And it holds all that it knows: two with other settings live in one process, and so do functions.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from io import BytesIO
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote

import boto3
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.access.caller import ANYBODY
from polynya.catalog import scans
from polynya.catalog.lakes import Lakes, Shared
from polynya.http import reading, writing
from polynya.http.file_by_key import FileRequest, open_files, read_file
from polynya.runtime.settings import Config
from polynya.storage.aws import AwsSettings, Clients
from polynya.storage.s3_locations import bucket_and_key
from polynya_local.processes.serving import REGION

from tests.aws.lambda_function import LambdaFunction
from tests.contract.test_openapi import METRICS
from tests.contract.test_openapi_writes import OPERATIONS
from tests.support.databases import copy_database
from tests.support.lakes import BUCKET
from tests.support.servers.hosts import (
    Answer,
    Hosts,
    application,
    asgi_client,
    hosts_of,
    settings_of,
)
from tests.support.servers.in_process import functions
from tests.support.servers.lost_answers import LostAnswers
from tests.support.writes.hand_made import HandMade, parquet
from tests.support.writes.writable import set_up_writes

CREATE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR);
"""
SCRIPT = f"""{CREATE}
INSERT INTO t SELECT i, 'v' || i FROM range(100) AS r(i);
INSERT INTO t VALUES (100, 'v100');
DELETE FROM t WHERE i < 10;
CREATE TABLE late(i INTEGER);
INSERT INTO late FROM range(1000);
ALTER TABLE late ADD COLUMN d INTEGER DEFAULT 7;
CREATE TABLE "a/b"(i INTEGER);
CREATE VIEW v AS SELECT i FROM t;
"""


@pytest.fixture(scope="module")
def hosts(lake, moto, postgres_server) -> Iterator[Hosts]:
    """Each has a copy of the same catalog, with the same uuids and times, and the same files."""
    original = set_up_writes(lake.write("hosts", SCRIPT))
    copies = [
        replace(original, database=copy_database(postgres_server, original.database, f"host_{n}"))
        for n in range(3)
    ]
    with hosts_of(copies, moto) as hosts:
        yield hosts


# Each host that listens has another port, which getConfig tells clients.
ADDRESS = re.compile(rb'(?<="s3.endpoint":"http://127.0.0.1:)\d{5}(?=")')
# A file of gzip begins with the time at which it was made (RFC 1952), if the middleware makes it.
TIME_OF_GZIP = re.compile(rb"(?<=^\x1f\x8b\x08\x00).{4}", re.DOTALL)

NONE: Mapping[str, str] = {}


def same_answer(
    hosts: Hosts, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] = NONE
) -> Answer:
    """The answer that each host gives."""
    answers = []
    for host in hosts.all:
        answer = host.ask(method, target, body, headers)
        masked = ADDRESS.sub(b"00000", TIME_OF_GZIP.sub(bytes(4), answer.body))
        answers.append(answer._replace(body=masked))
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


TABLES = "/v1/lake/namespaces/main/tables"
TABLE = TABLES + "/t"
NAMES = {"prefix": "lake", "namespace": "main", "table": "t", "view": "v"}
ROUTES = [(method, path) for method, path, _ in (*reading.ROUTES, *writing.ROUTES)]
CREDENTIALS = ("GET", reading.TABLE + "/credentials")
"""No host has some to give."""
FILTERS = [
    {"type": "lt", "term": "i", "value": 50},
    {"type": "in", "term": "i", "values": [*range(1000)]},  # long enough to be compressed
]
GRANTED = [
    *((*route, b"") for route in ROUTES if route[0] in ("GET", "HEAD") and route != CREDENTIALS),
    ("GET", TABLES + "/a%2Fb", b""),
    ("GET", TABLES + "?pageSize=1", b""),
    ("GET", TABLE + "?snapshots=refs", b""),
    ("POST", TABLE + "/metrics", as_json(METRICS)),
    ("POST", TABLE + "/plan", b"{}"),
    *(("POST", TABLE + "/plan", as_json({"filter": filter_})) for filter_ in FILTERS),
]
REFUSED = [
    *((method, path, b"{") for method, path in ROUTES if method == "POST"),
    *((method, path + "-gone", b"") for method, path in ROUTES if method == "DELETE"),
    ("POST", TABLE, b"\xff"),  # no text: the event has it in base64
    (*CREDENTIALS, b""),
    ("GET", TABLES + "?pageSize=x", b""),
    ("GET", TABLES + "/gone", b""),
    ("HEAD", TABLES + "/gone", b""),
    ("GET", "/v1/other/namespaces", b""),
    ("GET", "/v1/nothing/at/all", b""),
    ("HEAD", "/v1/nothing/at/all", b""),
    ("PUT", "/v1/lake/namespaces", b""),
]
CASES = [(*case, True) for case in GRANTED] + [(*case, False) for case in REFUSED]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize(("method", "path", "body", "is_granted"), CASES)
def test_every_host_gives_the_same_bytes(method, path, body, is_granted, encoding, hosts):
    """What changes the lake is refused here, so that it can be sent again."""
    target = re.sub(r"\{(\w+)\}", lambda name: NAMES[name[1]], path)
    answer = same_answer(hosts, method, target, body, {"accept-encoding": encoding})
    assert (answer.status < 300) == is_granted and answer.status < 500
    assert answer.body or answer.status == 204 or method == "HEAD"


def test_every_host_compresses_what_is_large(hosts):
    """In an event it is in base64. The operation compresses the table, a middleware the plan."""
    for request in (("GET", TABLE, b""), GRANTED[-1]):
        answer = same_answer(hosts, *request, {"accept-encoding": "gzip"})
        assert answer.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("query", ["", "?snapshots=refs"])
def test_every_host_knows_the_answer_that_a_client_has(query, hosts):
    etag = same_answer(hosts, "GET", TABLE + query).headers["etag"]
    for value, status in ((etag, 304), (f'"other", {etag}', 304), ("*", 304), ('"other"', 200)):
        answer = same_answer(hosts, "GET", TABLE + query, b"", {"if-none-match": value})
        assert answer.status == status and answer.headers["etag"] == etag


def test_every_host_continues_the_plans_of_the_others(hosts):
    with patch.object(scans, "MOST_FILES", 1):  # in this process, of which one host is
        plan = hosts.process.ask("POST", TABLE + "/plan", b"{}", NONE)
    [task] = json.loads(plan.body)["plan-tasks"]
    answer = same_answer(hosts, "POST", TABLE + "/tasks", as_json({"plan-task": task}))
    assert len(json.loads(answer.body)["file-scan-tasks"]) == 1


@pytest.fixture(scope="module")
def keys(hosts) -> dict[str, str]:
    """The keys of virtual files, one of each kind."""
    loaded = [json.loads(same_answer(hosts, "GET", f"{TABLES}/{t}").body) for t in ("t", "late")]
    lists = [table["metadata"]["snapshots"][-1]["manifest-list"] for table in loaded]
    data, deletes = (entry["manifest_path"] for entry in records(hosts, lists[0]))
    [late] = (entry["manifest_path"] for entry in records(hosts, lists[1]))
    files = {
        "document": loaded[0]["metadata-location"],
        "list": lists[0],
        "manifest": data,
        "deletes": records(hosts, deletes)[0]["data_file"]["file_path"],
        # One of the lake with another footer, which has the column that was added after it.
        "data": records(hosts, late)[0]["data_file"]["file_path"],
    }
    return {name: bucket_and_key(location)[1] for name, location in files.items()}


def records(hosts: Hosts, location: str) -> list[dict]:
    answer = hosts.server.ask_file("GET", bucket_and_key(location)[1], b"", NONE)
    return [*fastavro.reader(io.BytesIO(answer.body))]


def same_file(hosts: Hosts, method: str, key: str, headers: Mapping[str, str] = NONE) -> Answer:
    """The answer that each host gives to a request for a virtual file."""
    aws, process, server = (host.ask_file(method, key, b"", headers) for host in hosts.all)
    assert aws == process == server
    return server


RANGES = ["bytes=0-9", "bytes=10-", "bytes=-7", "bytes=5-5", "bytes=0-99999999"]


@pytest.mark.parametrize("name", ["document", "list", "manifest", "deletes", "data"])
def test_every_host_gives_the_same_file(name, hosts, keys):
    key = keys[name]
    whole = same_file(hosts, "GET", key)
    head = same_file(hosts, "HEAD", key)
    assert whole.status == head.status == 200 and whole.headers == head.headers
    assert whole.headers["content-length"] == str(len(whole.body)) and not head.body
    for range_ in RANGES:
        part = same_file(hosts, "GET", key, {"range": range_})
        assert part.status == 206 and part.body in whole.body
        assert same_file(hosts, "HEAD", key, {"range": range_}) == head
    assert same_file(hosts, "GET", key, {"range": "bytes=99999999-"}).status == 416


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_every_host_has_the_same_conditions_of_a_file(method, hosts, keys):
    etag = same_file(hosts, "HEAD", keys["list"]).headers["etag"]
    for name, value, status in (
        ("if-none-match", etag, 304),
        ("if-none-match", '"other"', 200),
        ("if-match", etag, 200),
        ("if-match", '"other"', 412),
    ):
        assert same_file(hosts, method, keys["list"], {name: value}).status == status


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_every_host_lacks_the_same_files(method, hosts, keys):
    other_name = keys["list"].replace("list-", "list-9")
    no_name = keys["list"] + "x"
    for key in (other_name, no_name):
        answer = same_file(hosts, method, key)
        assert answer.status == 404
        assert answer.body.startswith(b"NoSuchKey: ") == (method == "GET")


def get_event(path: str) -> dict[str, Any]:
    request = {"method": "GET", "path": path, "sourceIp": "127.0.0.1"}
    return {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": "localhost"},
        "requestContext": {"http": request, "stage": "$default", "requestId": "one"},
        "isBase64Encoded": False,
    }


def test_functions_with_other_settings_live_in_one_process(lake, moto):
    """Both are started before one of them has read its settings."""
    one, other = (lake.write(f"instances_{name}", SCRIPT) for name in ("one", "other"))
    with (
        functions(**settings_of(one, WAREHOUSE="one")) as first,
        functions(**settings_of(other, WAREHOUSE="other")) as second,
    ):
        for name, started, lake_ in (("one", first, one), ("other", second, other)) * 2:
            function = LambdaFunction("rest", started.rest_catalog, region=REGION, timeout_s=29)
            loaded = function.invoke(get_event(f"/v1/{name}/namespaces/main/tables/t"))
            function.stop()
            properties = json.loads(loaded["body"])["metadata"]["properties"]
            assert properties["write.data.path"].startswith(lake_.data_path)


POSITION_DELETES = 1


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
            script = f"{CREATE}INSERT INTO t SELECT i, 'v' || i FROM range({rows}) AS r(i);"
            script += f"DELETE FROM t WHERE i < {deleted};"
            one = lake.write(f"hosts_{name}", script, prefix=f"{name}/")
            store = stack.enter_context(AskedStore(moto))
            settings = settings_of(one, WAREHOUSE=name, VIRTUAL_PREFIX=f"{name}/v", **values)
            shared = Shared(aws=Clients(AwsSettings.from_s3_endpoint(store.uri)))
            ask = asgi_client(application(settings, stack, shared))
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
                loaded = ask("GET", f"/v1/{name}/namespaces/main/tables/t", b"", NONE)
                metadata = json.loads(loaded.body)["metadata"]
                assert metadata["properties"]["write.data.path"].startswith(one.data_path)
                columns.append([field["name"] for field in metadata["schemas"][-1]["fields"]])
                counts.append(files_of_list(read, metadata["snapshots"][-1]["manifest-list"]))
            assert columns == [["i", "s"], ["i"]]
            assert counts == [{0: 100, POSITION_DELETES: 5}, {0: 7, POSITION_DELETES: 2}]
        for name, _, store, _, _ in deployed:
            assert store.paths and all(f"{name}/" in path for path in store.paths), store.paths
        assert deployed[0][3]("GET", "/v1/other/namespaces", b"", NONE).status == 404


# What three lakes cannot have in common once they are written: the uuids that the catalog draws,
# the fingerprints of them in names and entity tags, and when PostgreSQL has committed. The first
# two become numbers in the order of their appearance, so that the same one is still the same.
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
FINGERPRINT = '(?<=[-"])[0-9a-f]{20}(?="|[.]metadata[.]json|[.]avro|[.]parquet)'
DRAWN = re.compile(f"{UUID}|{FINGERPRINT}")
TIME = re.compile(r'"(timestamp-ms|last-updated-ms)":\d{13}')


class Writers:
    """The hosts, whose lakes are written by the same requests in the same order."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = [(host, dict[str, str]()) for host in hosts.all]
        """Each with the numbers of what its lake has drawn."""
        self.succeeded: set[tuple[str, str]] = set()
        """The routes of requests that changed something."""

    def send(self, method: str, route: str, body: object = None, **names: str) -> Answer:
        """The answer that each host gives, as the first one gives it."""
        target = route.format(**{"prefix": "lake", "namespace": "main", **names})
        sent = b"" if body is None else as_json(body)
        answers = [host.ask(method, target, sent, NONE) for host, _ in self._hosts]
        masked = [masked_answer(a, n) for a, (_, n) in zip(answers, self._hosts, strict=True)]
        assert masked[0] == masked[1] == masked[2]
        if answers[0].status < 300:
            self.succeeded.add((method, route))
        return answers[0]


def masked_answer(answer: Answer, numbers: dict[str, str]) -> Answer:
    """The answer with numbers for what was drawn; new ones are added to `numbers`."""

    def number(drawn: re.Match[str]) -> str:
        return numbers.setdefault(drawn[0], f"<{len(numbers)}>")

    headers = {name: DRAWN.sub(number, value) for name, value in answer.headers.items()}
    body = DRAWN.sub(number, TIME.sub(r'"\1":0', answer.body.decode()))
    return Answer(answer.status, headers, body.encode())


class HandMadeEverywhere(HandMade):
    """Commits the same files in each host."""

    def __init__(self, writers: Writers, hosts: Hosts, s3_endpoint: str) -> None:
        super().__init__(hosts.bridge, s3_endpoint)
        self._writers = writers

    def post(self, table, requirements, updates):
        body = {"requirements": requirements, "updates": updates}
        answer = self._writers.send("POST", reading.TABLE, body, table=table)
        return answer.status, answer.body.decode()


def test_every_host_writes_the_same(hosts, moto):
    """The last test of the module: what it writes has other times in each lake."""
    writers = Writers(hosts)
    names = {"namespace": "n", "table": "t", "view": "v"}
    for method, route, status, body in OPERATIONS:
        assert writers.send(method, route, body, **names).status == status, (method, route)
        for read in (reading.NAMESPACE, reading.TABLE, reading.VIEW):
            writers.send("GET", read, **names)
    hand_made = HandMadeEverywhere(writers, hosts, moto)
    rows = {("i", 1): pa.array([7], pa.int32()), ("s", 2): pa.array(["new"])}
    status, message = hand_made.commit("t", parquet(rows))
    assert status == 200, message
    writers.send("GET", reading.TABLE, table="t")
    writers.send("POST", reading.TABLE + "/plan", {}, table="t")

    source = json.loads(same_answer(hosts, "GET", TABLES + "/a%2Fb").body)["metadata"]
    path = source["properties"]["write.data.path"].partition("/main/")[0] + "/elsewhere"
    source |= {"location": path, "snapshots": [], "snapshot-log": [], "metadata-log": []}
    source |= {"refs": {}, "current-snapshot-id": None}
    location = hand_made.put({"properties": {"p": path}}, "p", ".metadata.json", as_json(source))
    body = {"name": "registered", "metadata-location": location}
    answer = writers.send("POST", reading.NAMESPACE + "/register", body)
    assert answer.status == 200, answer.body
    writers.send("GET", "/v1/{prefix}/events?since=0")

    # A view cannot be registered; reports are of the routes that read.
    never = {
        ("POST", reading.NAMESPACE + "/register-view"),
        ("POST", reading.TABLE + "/metrics"),
    }
    assert {(method, path) for method, path, _ in writing.ROUTES} - writers.succeeded == never
