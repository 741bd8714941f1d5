"""Clients of a real S3 (moto) through the read-only proxy."""

import hashlib
import hmac
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace
from urllib.parse import quote, unquote_to_bytes
from xml.etree import ElementTree

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer
from polynya_local.messages import Response
from pyarrow.fs import S3FileSystem

from tests.aws.http_server import HttpServer
from tests.aws.stand_in import StandIn

REGION = "us-east-1"
BUCKET = "behind-the-proxy"  # all buckets of moto are shared in the process
KEYS = [
    "plain.parquet",
    "a b/c+d.parquet",
    "day=2024-01-01/x.parquet",
    "100%/a%2Fb.parquet",
    "//leading//slashes",
    "ünïcödé/雪/🦆.parquet",
    "~tilde/'quote'/(a),b;c:d@e&f$g!h*.parquet",
    "what?/x#y.parquet",
]


def content(key: str) -> bytes:
    return key.encode() * 1000


def client(endpoint: str, secret: str = "any secret will do"):
    config = Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"})
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="anybody",
        aws_secret_access_key=secret,
        config=config,
    )


@pytest.fixture(scope="module")
def own_credentials():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "ours")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "ours")
        yield


@pytest.fixture(scope="module")
def stores(own_credentials):
    """Boto3 clients of the S3 behind the proxy and of the proxy."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    behind = "http://{}:{}".format(*moto.get_host_and_port())
    real = client(behind)
    real.create_bucket(Bucket=BUCKET)
    for key in KEYS:
        real.put_object(Bucket=BUCKET, Key=key, Body=content(key), Metadata={"name": "value"})
    with serve(behind) as stand_in:
        yield SimpleNamespace(real=real, proxied=client(stand_in.s3_uri), uri=stand_in.s3_uri)
    moto.stop()


def serve(endpoint: str) -> StandIn:
    stand_in = StandIn(alias=None, supporting_bucket=None, s3_endpoint=endpoint, region=REGION)
    stand_in.start(lambda event, context: None)
    return stand_in


@pytest.mark.parametrize("key", KEYS)
def test_an_object_is_returned_unchanged(stores, key):
    found = stores.proxied.get_object(Bucket=BUCKET, Key=key)
    real = stores.real.head_object(Bucket=BUCKET, Key=key)
    assert found["Body"].read() == content(key)
    assert (found["ETag"], found["LastModified"]) == (real["ETag"], real["LastModified"])
    assert found["Metadata"] == {"name": "value"}


@pytest.mark.parametrize("key", KEYS)
def test_head_returns_the_length_of_the_object(stores, key):
    head = stores.proxied.head_object(Bucket=BUCKET, Key=key)
    assert head["ContentLength"] == len(content(key))


RANGES = [("bytes=0-9", 0, 10), ("bytes=100-", 100, None), ("bytes=-5", -5, None)]


@pytest.mark.parametrize("header, first, last", RANGES)
def test_a_range_is_returned(stores, header, first, last):
    found = stores.proxied.get_object(Bucket=BUCKET, Key=KEYS[0], Range=header)
    assert found["ResponseMetadata"]["HTTPStatusCode"] == 206
    assert found["Body"].read() == content(KEYS[0])[first:last]


def test_a_listing_is_returned(stores):
    names = [item["Key"] for item in stores.proxied.list_objects_v2(Bucket=BUCKET)["Contents"]]
    assert sorted(names) == sorted(KEYS)


def test_a_listing_has_a_prefix_and_pages(stores):
    found = stores.proxied.list_objects_v2(Bucket=BUCKET, Prefix="a b/", MaxKeys=1)
    assert [item["Key"] for item in found["Contents"]] == ["a b/c+d.parquet"]


def test_pyarrow_reads_files_and_folders(stores):
    files = S3FileSystem(
        access_key="x",
        secret_key="y",
        region=REGION,
        scheme="http",
        endpoint_override=stores.uri.removeprefix("http://"),
    )
    key = "ünïcödé/雪/🦆.parquet"
    with files.open_input_file(f"{BUCKET}/{key}") as file:
        assert (file.size(), file.read_at(7, 3)) == (len(content(key)), content(key)[3:10])
    with pytest.raises(FileNotFoundError):
        files.open_input_file(f"{BUCKET}/no such file")


def test_a_presigned_url_with_any_signature_is_read(stores):
    arguments = {"Bucket": BUCKET, "Key": KEYS[1]}
    url = stores.proxied.generate_presigned_url("get_object", arguments)
    answer = urllib3.request("GET", url)
    assert (answer.status, answer.data) == (200, content(KEYS[1]))


def test_a_bucket_can_be_part_of_the_host_name(stores):
    port = stores.uri.rpartition(":")[2]
    host = {"Host": f"{BUCKET}.localhost:{port}"}
    url = f"{stores.uri}//leading//slashes"
    # urllib3.request() would write one slash for two; the pool sends the path unchanged.
    with urllib3.connection_from_url(stores.uri) as pool:
        answer = pool.urlopen("GET", "/" + quote("//leading//slashes"), headers=host)
    assert (answer.status, answer.data) == (200, content("//leading//slashes")), url


def test_a_missing_key_is_the_error_of_the_real_s3(stores):
    with pytest.raises(ClientError, match="NoSuchKey"):
        stores.proxied.get_object(Bucket=BUCKET, Key="missing")
    with pytest.raises(ClientError, match="404"):
        stores.proxied.head_object(Bucket=BUCKET, Key="missing")


WRITES = [
    ("put_object", {"Key": "new", "Body": b"x" * 3_000_000}),
    ("delete_object", {"Key": KEYS[0]}),
    ("create_multipart_upload", {"Key": "new"}),
    ("delete_bucket", {}),
]


@pytest.mark.parametrize("operation, arguments", WRITES)
def test_a_write_is_refused(stores, operation, arguments):
    with pytest.raises(ClientError, match=r"AccessDenied.*polynya serve --writes"):
        getattr(stores.proxied, operation)(Bucket=BUCKET, **arguments)
    names = [item["Key"] for item in stores.real.list_objects_v2(Bucket=BUCKET)["Contents"]]
    assert sorted(names) == sorted(KEYS)


def test_eight_threads_read_concurrently(stores):
    def read(number: int) -> bool:
        key = KEYS[number % len(KEYS)]
        return stores.proxied.get_object(Bucket=BUCKET, Key=key)["Body"].read() == content(key)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(48)))


def test_an_unreachable_s3_is_a_503():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with serve(f"http://127.0.0.1:{port}") as stand_in:
        answer = urllib3.request("GET", f"{stand_in.s3_uri}/b/k", retries=False)
    assert answer.status == 503
    assert ElementTree.fromstring(answer.data).findtext("Code") == "ServiceUnavailable"
    assert int(answer.headers["retry-after"]) > 0


@contextmanager
def interrupted_after_half(length: int):
    """The endpoint before an S3 that sends half of each object of so many bytes."""

    def half():
        yield b"x" * (length // 2)
        raise OSError("the disk is gone")

    behind = HttpServer(0)
    behind.start(lambda request: Response(200, (("Content-Length", str(length)),), half()))
    try:
        with serve(behind.uri) as stand_in:
            yield stand_in.s3_uri
    finally:
        behind.stop()


def test_an_interrupted_answer_of_s3_is_interrupted_for_the_client():
    with (
        interrupted_after_half(1_000_000) as endpoint,
        pytest.raises(urllib3.exceptions.ProtocolError),
    ):
        urllib3.request("GET", f"{endpoint}/b/k", retries=False)


def test_an_interrupted_short_answer_of_s3_is_a_503():
    with interrupted_after_half(1_000) as endpoint:
        assert urllib3.request("GET", f"{endpoint}/b/k", retries=False).status == 503


# SigV4, implemented from its documentation, because the proxy signs with botocore.
# https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
def signature(method, path, query, headers, signed, secret, scope):
    date, region, service, _ = scope.split("/")
    canonical = "\n".join(
        [
            method,
            quote(unquote_to_bytes(path), safe="/-_.~"),
            "&".join(sorted(query)),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed),
            "",
            ";".join(signed),
            headers["x-amz-content-sha256"],
        ]
    )
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashed])
    key = b"AWS4" + secret.encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, to_sign.encode(), "sha256").hex()


def test_the_signature_of_this_module_is_that_of_the_documented_example():
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "range": "bytes=0-9",
        "x-amz-content-sha256": hashlib.sha256(b"").hexdigest(),
        "x-amz-date": "20130524T000000Z",
    }
    secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
    scope = "20130524/us-east-1/s3/aws4_request"
    found = signature("GET", "/test.txt", [], headers, sorted(headers), secret, scope)
    assert found == "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"


TARGETS = [  # as a client without an SDK may write them; the query sorted and encoded for SigV4
    ("/b/day=1/a+b,c", []),
    ("/b//a%2fb/~", []),
    ("/b/caf%C3%A9", []),
    ("/b?prefix=a/b&list-type=2", ["list-type=2", "prefix=a%2Fb"]),
    ("/b/k?versionId=1&X-Amz-Expires=9&X-Amz-Signature=theirs", ["versionId=1"]),
]


@pytest.mark.parametrize("target, query", TARGETS)
def test_a_request_is_signed_with_the_proxys_own_credentials(monkeypatch, target, query):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "our-key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "our-secret")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "our-token")
    request, answer = _seen_behind(target, {"x-amz-checksum-mode": "ENABLED", "Range": "bytes=0-9"})
    headers = {name.lower(): value for name, value in request.headers}
    fields = dict(part.split("=", 1) for part in headers["authorization"].split()[1:])
    fields = {name: value.rstrip(",") for name, value in fields.items()}
    key_id, _, scope = fields["Credential"].partition("/")
    signed = fields["SignedHeaders"].split(";")
    assert answer.data == b"found"
    assert key_id == "our-key"
    assert {"host", "x-amz-checksum-mode", "x-amz-security-token"} <= set(signed)
    assert (headers["range"], headers["x-amz-security-token"]) == ("bytes=0-9", "our-token")
    path = target.partition("?")[0]
    assert request.path == path.replace("%2f", "%2F")  # urllib3 writes escapes in upper case
    assert len(request.query.split("&") if request.query else []) == len(query)
    expected = signature("GET", path, query, headers, signed, "our-secret", scope)
    assert fields["Signature"] == expected


def test_without_credentials_a_request_is_not_signed(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    request, _ = _seen_behind("/b/k", {"Authorization": "AWS4-HMAC-SHA256 Credential=theirs"})
    assert not {"authorization", "x-amz-date"} & {name.lower() for name, _ in request.headers}


def _seen_behind(target, headers):
    """The request that arrives at the real S3, and the answer to the client."""
    seen = []

    def answer(request):
        seen.append(request)
        return Response(200, (), b"found")

    behind = HttpServer(0)
    behind.start(answer)
    try:
        with serve(behind.uri) as stand_in, urllib3.connection_from_url(stand_in.s3_uri) as pool:
            # Not urlopen(), which corrects the target: this is a client without an SDK.
            connection = pool._get_conn()
            connection.request("GET", target, headers=headers)
            found = connection.getresponse()
            connection.close()
    finally:
        behind.stop()
    return seen[0], found
