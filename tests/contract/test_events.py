"""The real handlers give the documented answers to the sample events of events/."""

import json
import os
import re
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import boto3
import fastavro
import pytest
import requests
from polynya.aws_lambda.object_handler import OPERATIONS
from polynya.runtime.errors import READ_ONLY
from polynya.virtual_files.names import is_virtual, parse
from polynya_local.messages import Response
from polynya_local.s3.requests import S3Address

from tests.aws.functions import Functions
from tests.aws.http_server import HttpServer
from tests.aws.lambda_function import LambdaFunction
from tests.aws.object_lambda import returned_response, written_response
from tests.checks.runtime_interface import EMULATOR, RuntimeInterface
from tests.support.answers import json_of
from tests.support.servers.in_process import ALIAS, functions

EVENTS = Path(__file__).parents[2] / "events"
DATA = "lakes"
LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE orders(id INTEGER, s VARCHAR);
INSERT INTO orders SELECT i, 'v' || i FROM range(1000) AS r(i);
DELETE FROM orders WHERE id < 10;
"""
S3_ERROR = re.compile(r"<Error><Code>(\w+)</Code><Message>(.*?)</Message>")


def in_process(started: Functions) -> tuple[LambdaFunction, LambdaFunction]:
    return (
        LambdaFunction("rest", started.rest_catalog, region="us-east-1", timeout_s=29),
        LambdaFunction("virtual", started.object_lambda, region="us-east-1", timeout_s=60),
    )


def behind_the_runtime_interface(started: Functions) -> tuple[RuntimeInterface, RuntimeInterface]:
    return RuntimeInterface("rest_catalog", 29), RuntimeInterface("object_lambda", 60)


def in_containers(started: Functions) -> tuple[Any, Any]:
    from tests.support.servers.in_containers import Containers

    return Containers("rest_catalog", 29), Containers("object_lambda", 60)


NEEDS_CONTAINERS = pytest.mark.skipif(
    "DOCKER_HOST" not in os.environ, reason="see `make sam-local`"
)
NEEDS_EMULATOR = pytest.mark.skipif(not EMULATOR.exists(), reason="`make setup` gets the emulator")
WAYS = [
    in_process,
    pytest.param(in_containers, marks=NEEDS_CONTAINERS),
    pytest.param(behind_the_runtime_interface, marks=NEEDS_EMULATOR),
]


@pytest.fixture(scope="module", params=WAYS)
def aws(request, lake, moto):
    """Both functions over a lake with the table `main.orders`; `written` collects answers."""
    served = lake.write(request.param.__name__, LAKE, prefix="events/")
    written = []

    def record(request):
        headers = {name.lower(): value for name, value in request.headers}
        written.append((request.path, headers, written_response(request)))
        return Response(200)

    recorder = HttpServer(0)
    recorder.start(record)
    values = {
        "DATABASE_URL": served.database.url,
        "VIRTUAL_BUCKET": ALIAS,
        "AWS_ENDPOINT_URL_S3": moto,
        "OBJECT_LAMBDA_ENDPOINT": recorder.uri,
    }
    with functions(**values) as started:
        rest, virtual = request.param(started)
        table = json_of(rest.invoke(event("rest_load_table")))
        yield SimpleNamespace(rest=rest, virtual=virtual, written=written, table=table, s3=moto)
        for function in (rest, virtual):
            function.stop()
    recorder.stop()


def event(name: str) -> dict:
    return json.loads((EVENTS / f"{name}.json").read_text())


def object_event(aws, name: str, key: str) -> dict:
    """The sample event with another key and a URL that is valid for the S3 of the tests."""
    sample = event(name)
    context = next(sample[kind] for kind in OPERATIONS if kind in sample)
    user = sample["userRequest"]
    user["url"] = re.sub(r"(https://[^/]+/)[^?]*", rf"\g<1>{key}", user["url"])
    operation = "get_object" if "getObjectContext" in sample else "head_object"
    arguments = {"Bucket": DATA, "Key": key}
    if "listObjectsV2Context" in sample:
        operation, arguments = (
            "list_objects_v2",
            {"Bucket": DATA, "Prefix": "events/", "MaxKeys": 1},
        )
    client = boto3.client("s3", endpoint_url=aws.s3)
    context["inputS3Url"] = client.generate_presigned_url(operation, Params=arguments)
    return sample


def test_the_virtual_files_of_the_samples_have_names_of_today():
    """Otherwise `sam local invoke` would answer them without a look at the lake."""
    keys = [
        urlsplit(event["userRequest"]["url"]).path.removeprefix("/")
        for path in EVENTS.glob("object_*.json")
        if "userRequest" in (event := json.loads(path.read_text()))
    ]
    virtual = [key for key in keys if is_virtual(key, "polynya")]
    assert len(virtual) == 4
    for key in virtual:
        parse(key, "polynya")


def test_every_sample_is_tested():
    tried = {*REST, "object_get_whole", "object_get_range", "object_head", "object_list"}
    tried |= {"object_missing", "object_real"}
    of_commits = {path.stem for path in EVENTS.glob("commits_*.json")}  # test_commit_events.py
    assert {path.stem for path in EVENTS.glob("*.json")} - of_commits == tried


REST = {
    "rest_config": (200, lambda body: body["overrides"] == {"prefix": "lake"}),
    "rest_health": (200, lambda body: body == {"status": "ok", "snapshot-id": 3}),
    "rest_list_namespaces": (200, lambda body: body == {"namespaces": [["main"]]}),
    "rest_list_tables": (
        200,
        lambda body: body == {"identifiers": [{"namespace": ["main"], "name": "orders"}]},
    ),
    "rest_load_table": (200, lambda body: body["metadata"]["current-snapshot-id"] == 3),
    "rest_load_table_jwt": (200, lambda body: body["config"] == {}),
    "rest_missing_table": (404, lambda body: body["error"]["type"] == "NoSuchTableException"),
    "rest_write": (
        403,
        lambda body: (
            body["error"] == {"type": "ForbiddenException", "code": 403, "message": READ_ONLY}
        ),
    ),
}


@pytest.mark.parametrize("name", REST)
def test_api_gateway(aws, name):
    """The answer has payload format 2.0, and the body is that of the route."""
    status, holds = REST[name]
    answer = aws.rest.invoke(event(name))
    assert answer["statusCode"] == status
    is_large = name.startswith("rest_load_table")
    assert answer["isBase64Encoded"] is is_large is ("content-encoding" in answer["headers"])
    assert answer["headers"]["content-type"] == "application/json"
    body = json_of(answer)
    assert holds(body), body


# Object Lambda


def keys(aws) -> dict[str, str]:
    """A key of each kind in the sample events, found as a client finds it."""
    prefix = f"s3://{ALIAS}/"
    metadata = aws.table["metadata"]
    keys = {
        "document": aws.table["metadata-location"].removeprefix(prefix),
        "list": metadata["snapshots"][-1]["manifest-list"].removeprefix(prefix),
    }
    _, answer = get(aws, "object_get_whole", keys["list"])
    manifests = [record["manifest_path"] for record in fastavro.reader(BytesIO(answer.body))]
    keys["manifest"] = next(m for m in manifests if "/data-" in m).removeprefix(prefix)
    return keys


def get(aws, name: str, key: str) -> tuple[dict, Response]:
    """What the function wrote: the headers of its request, and the answer that they describe."""
    aws.written.clear()
    assert aws.virtual.invoke(object_event(aws, name, key)) == {"statusCode": 200}
    [(path, headers, response)] = aws.written
    assert path == "/WriteGetObjectResponse"
    assert headers["x-amz-request-route"] == "io-use1-001"
    assert headers["x-amz-request-token"] == "OutputToken"
    return headers, response


def test_get_object_whole(aws):
    headers, response = get(aws, "object_get_whole", keys(aws)["list"])
    assert response.status == 200 and response.body[:4] == b"Obj\x01"
    assert headers["content-length"] == str(len(response.body))
    assert headers["x-amz-fwd-header-accept-ranges"] == "bytes"
    assert re.fullmatch(r'"[0-9a-f]{32}"', headers["x-amz-fwd-header-etag"])


def test_get_object_range(aws):
    key = keys(aws)["manifest"]
    headers, response = get(aws, "object_get_range", key)  # bytes=0-1023
    of_whole, whole = get(aws, "object_get_whole", key)
    assert response.status == 206 and response.body == whole.body[:1024] and len(whole.body) > 1024
    assert headers["x-amz-fwd-header-content-range"] == f"bytes 0-1023/{len(whole.body)}"
    assert headers["content-length"] == "1024"
    assert headers["x-amz-fwd-header-etag"] == of_whole["x-amz-fwd-header-etag"]


def test_head_object(aws):
    key = keys(aws)["document"]
    answer = aws.virtual.invoke(object_event(aws, "object_head", key))
    headers, response = get(aws, "object_get_whole", key)
    assert answer["statusCode"] == 200
    assert answer["headers"]["Content-Length"] == len(response.body)
    assert answer["headers"]["ETag"] == headers["x-amz-fwd-header-etag"]
    assert returned_response("HeadObject", answer, S3Address(ALIAS, key, "")).status == 200
    assert json.loads(response.body) == aws.table["metadata"]


def test_the_bucket_may_be_in_the_path(aws):
    """This is path style; AWS does not document that it converts it."""
    key = keys(aws)["list"]
    _, plain = get(aws, "object_get_whole", key)
    _, in_path = get(aws, "object_get_whole", f"{ALIAS}/{key}")
    assert in_path.status == 200 and in_path.body == plain.body


def test_get_missing_object(aws):
    key = event("object_missing")["userRequest"]["url"].partition(".com/")[2]
    uuid = aws.table["metadata"]["table-uuid"]
    for name in (key, key.replace(key.split("/")[1], uuid)):
        headers, response = get(aws, "object_missing", name)
        assert response.status == 404 and S3_ERROR.search(response.body.decode())[1] == "NoSuchKey"
        assert headers["x-amz-fwd-error-code"] == "NoSuchKey"
        head = aws.virtual.invoke(object_event(aws, "object_head", name))
        assert (head["statusCode"], head["errorCode"]) == (404, "NoSuchKey")


def test_get_real_object(aws):
    client = boto3.client("s3", endpoint_url=aws.s3)
    found = client.list_objects_v2(Bucket=DATA, Prefix="events/")["Contents"]
    key = next(item["Key"] for item in found if "delete" not in item["Key"])
    size = next(item["Size"] for item in found if item["Key"] == key)
    headers, response = get(aws, "object_real", key)  # bytes=-8
    assert response.status == 206 and response.body[-4:] == b"PAR1" and len(response.body) == 8
    assert headers["x-amz-fwd-header-content-range"] == f"bytes {size - 8}-{size - 1}/{size}"


def test_list_objects(aws):
    sample = object_event(aws, "object_list", "")
    answer = aws.virtual.invoke(sample)
    direct = requests.get(sample["listObjectsV2Context"]["inputS3Url"], timeout=20)
    assert answer["statusCode"] == 200 and answer["listResultXml"] == direct.text
    assert "<Key>events/" in answer["listResultXml"]
