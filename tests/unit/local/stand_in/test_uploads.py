"""Real clients upload through the proxy to a real S3 (moto), below the paths of writers only."""

import base64
import io
import random
import zlib
from types import SimpleNamespace

import boto3
import pytest
import urllib3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError
from polynya_local.clients.duckdb_connection import connect
from polynya_local.clients.spark_jars import why_not
from polynya_local.stand_in import StandIn
from polynya_local.stand_in.http_message import Response
from polynya_local.stand_in.http_server import HttpServer
from polynya_local.stand_in.s3.uploads import UploadPaths
from pyarrow import parquet
from pyarrow.fs import S3FileSystem

REGION = "us-east-1"
BUCKET = "uploads"
UUID = "01a1fb09-8760-7336-b677-0e4f6c1fb6b5"
OF_TABLE = f"lake/main/orders/{UUID}"
STAGING = "lake/.polynya-staging"
PATHS = UploadPaths(
    data=f"s3://{BUCKET}/lake/",
    staging=f"s3://{BUCKET}/{STAGING}/",
    virtual=f"s3://{BUCKET}/lake/polynya/",
)
SMALL = b"x" * 100
LARGE = bytes(range(256)) * 48 * 1024
"""12 MB: over the size of a part of each client."""


def stand_in(endpoint: str, uploads: UploadPaths | None = PATHS, alias: str | None = None):
    made = StandIn(
        alias=alias, supporting_bucket=BUCKET, s3_endpoint=endpoint, region=REGION, uploads=uploads
    )
    made.start(lambda event, context: None, lambda event, context: None)
    return made


def client(endpoint: str, **config):
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id="anybody",
        aws_secret_access_key="any secret will do",
        config=Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}, **config),
    )


@pytest.fixture(scope="module")
def s3(moto):
    """The endpoint of the proxy, and a client of the S3 behind it."""
    real = boto3.client("s3", endpoint_url=moto)
    real.create_bucket(Bucket=BUCKET)
    with stand_in(moto) as made:
        yield SimpleNamespace(uri=made.s3_uri, real=real)


def stored(s3, key: str) -> bytes:
    return s3.real.get_object(Bucket=BUCKET, Key=key)["Body"].read()


# Clients


def boto3_put(uri: str, key: str, content: bytes) -> None:
    client(uri).put_object(Bucket=BUCKET, Key=key, Body=content)


def boto3_without_checksum(uri: str, key: str, content: bytes) -> None:
    of_old = client(uri, request_checksum_calculation="when_required")
    of_old.put_object(Bucket=BUCKET, Key=key, Body=content)


def boto3_sha256(uri: str, key: str, content: bytes) -> None:
    arguments = {"Bucket": BUCKET, "Key": key, "ChecksumAlgorithm": "SHA256"}
    client(uri).put_object(Body=content, **arguments)


def boto3_upload_file(uri: str, key: str, content: bytes) -> None:
    how = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
    client(uri).upload_fileobj(io.BytesIO(content), BUCKET, key, Config=how)


def boto3_presigned(uri: str, key: str, content: bytes) -> None:
    url = client(uri).generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": key})
    assert urllib3.request("PUT", url, body=content).status == 200


def pyarrow_files(uri: str) -> S3FileSystem:
    given = {"access_key": "x", "secret_key": "y", "region": REGION, "scheme": "http"}
    return S3FileSystem(endpoint_override=uri.removeprefix("http://"), **given)


def pyarrow(uri: str, key: str, content: bytes) -> None:
    with pyarrow_files(uri).open_output_stream(f"{BUCKET}/{key}") as stream:
        stream.write(content)


CLIENTS = [
    boto3_put,
    boto3_without_checksum,
    boto3_sha256,
    boto3_upload_file,
    boto3_presigned,
    pyarrow,
]


@pytest.mark.parametrize("content", [b"", SMALL, LARGE], ids=["empty", "small", "12 MB"])
@pytest.mark.parametrize("upload", CLIENTS, ids=lambda one: one.__name__)
def test_what_a_client_uploads_is_stored_as_it_is(s3, upload, content):
    key = f"{OF_TABLE}/{upload.__name__}/k=a b%2F/{len(content)}.parquet"
    upload(s3.uri, key, content)
    assert stored(s3, key) == content


@pytest.mark.parametrize("in_parts", [False, True], ids=["as one object", "in parts"])
def test_duckdb_uploads(s3, in_parts):
    """The bytes are random because they must not be compressed."""
    content = random.Random(1).randbytes(len(LARGE))
    key = f"{OF_TABLE}/duckdb/{in_parts}.parquet"
    with connect(("httpfs",), s3.uri) as con:
        if in_parts:  # 10,000 at most
            con.execute("SET s3_uploader_max_filesize = '50GB'")
        con.execute(f"COPY (SELECT $1::BLOB AS b) TO 's3://{BUCKET}/{key}'", [content])
        assert con.execute(f"FROM 's3://{BUCKET}/{key}'").fetchall() == [(content,)]
    found = parquet.read_table(f"{BUCKET}/{key}", filesystem=pyarrow_files(s3.uri))
    assert found.to_pylist() == [{"b": content}]
    assert ("-" in s3.real.head_object(Bucket=BUCKET, Key=key)["ETag"]) is in_parts


@pytest.mark.spark
@pytest.mark.skipif(bool(why_not()), reason=str(why_not()))
def test_the_s3_client_of_java_uploads(s3):
    """Iceberg's S3FileIO: small files as one object, larger ones in parts of 5 MB."""
    from polynya_local.clients.spark import catalog_settings, session

    jvm = session()._jvm
    settings = catalog_settings("", "", s3.uri) | {"s3.multipart.part-size-bytes": str(5 << 20)}
    files = jvm.org.apache.iceberg.aws.s3.S3FileIO()
    files.initialize(settings)
    for content in (b"", SMALL, LARGE):
        key = f"{STAGING}/{UUID}/{len(content)}-m0.avro"
        stream = files.newOutputFile(f"s3://{BUCKET}/{key}").create()
        stream.write(content)
        stream.close()
        assert stored(s3, key) == content
    files.close()


def test_an_upload_can_be_aborted(s3):
    proxied = client(s3.uri)
    at = {"Bucket": BUCKET, "Key": f"{OF_TABLE}/aborted"}
    at["UploadId"] = proxied.create_multipart_upload(**at)["UploadId"]
    proxied.upload_part(**at, PartNumber=1, Body=SMALL)
    proxied.abort_multipart_upload(**at)
    begun = s3.real.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    assert at["UploadId"] not in [one["UploadId"] for one in begun]


def test_metadata_and_content_type_arrive(s3):
    about = {"Metadata": {"name": "value"}, "ContentType": "avro/binary", "ContentEncoding": "gzip"}
    key = f"{OF_TABLE}/described"
    client(s3.uri).put_object(Bucket=BUCKET, Key=key, Body=SMALL, **about)
    found = s3.real.head_object(Bucket=BUCKET, Key=key)
    assert {name: found[name] for name in about} == about


def test_a_condition_is_that_of_the_s3_behind(s3):
    at = {"Bucket": BUCKET, "Key": f"{OF_TABLE}/once", "IfNoneMatch": "*"}
    client(s3.uri).put_object(Body=b"first", **at)
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client(s3.uri).put_object(Body=b"second", **at)


# Where


PERMITTED = [
    f"lake/main/orders/{UUID}/a.parquet",
    f"lake/main/orders/{UUID}/d=1/e=2/a.parquet",
    f"lake/{UUID}/{UUID}/a.parquet",
    f"{STAGING}/{UUID}/m0.avro",
    f"{STAGING}/snap.avro",
]
REFUSED = [
    "lake/main/orders/a.parquet",
    f"lake/main/orders/{UUID}",
    f"lake/main/orders/{UUID}/",
    f"lake/main/orders/{UUID.upper()}/a.parquet",
    f"lake/main/orders/x{UUID}/a.parquet",
    f"other/main/orders/{UUID}/a.parquet",
    f"lakes/main/orders/{UUID}/a.parquet",
    f"{UUID}/a.parquet",
    f"lake/polynya/{UUID}/list.avro",
    f"lake/main/orders/{UUID}/../customers/a.parquet",
    f"lake/main/orders/{UUID}/./a.parquet",
    f"{STAGING}/../main/orders/a.parquet",
    f"{STAGING}/",
    STAGING,
]


@pytest.mark.parametrize("key", PERMITTED)
def test_a_key_below_the_paths_of_writers_is_written(s3, key):
    client(s3.uri).put_object(Bucket=BUCKET, Key=key, Body=SMALL)
    assert stored(s3, key) == SMALL


@pytest.mark.parametrize("key", REFUSED)
def test_no_other_key_is_written(s3, key):
    proxied = client(s3.uri)
    for operation in (proxied.put_object, proxied.create_multipart_upload):
        with pytest.raises(ClientError, match="AccessDenied"):
            operation(Bucket=BUCKET, Key=key)
    with pytest.raises(ClientError, match="NoSuchKey"):
        stored(s3, key)


def test_no_other_bucket_is_written(s3):
    s3.real.create_bucket(Bucket="other-uploads")
    with pytest.raises(ClientError, match="AccessDenied"):
        client(s3.uri).put_object(Bucket="other-uploads", Key=f"{OF_TABLE}/a", Body=SMALL)


# Operations

KEY = f"{OF_TABLE}/there"
OPERATIONS = [
    ("delete_object", {"Key": KEY}),
    ("delete_objects", {"Delete": {"Objects": [{"Key": KEY}]}}),
    ("copy_object", {"Key": KEY, "CopySource": f"{BUCKET}/{KEY}"}),
    ("put_object_acl", {"Key": KEY, "ACL": "public-read"}),
    ("put_object_tagging", {"Key": KEY, "Tagging": {"TagSet": []}}),
    ("restore_object", {"Key": KEY}),
    ("delete_object_tagging", {"Key": KEY}),
    ("delete_bucket", {}),
    ("put_bucket_versioning", {"VersioningConfiguration": {"Status": "Enabled"}}),
]


@pytest.mark.parametrize(("operation", "arguments"), OPERATIONS)
def test_an_operation_that_is_no_upload_is_refused(s3, operation, arguments):
    s3.real.put_object(Bucket=BUCKET, Key=KEY, Body=SMALL)
    with pytest.raises(ClientError, match="AccessDenied") as refused:
        getattr(client(s3.uri), operation)(Bucket=BUCKET, **arguments)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert stored(s3, KEY) == SMALL


@pytest.mark.parametrize("uploads", [None, PATHS], ids=["writes off", "writes on"])
def test_nothing_is_put_through_an_access_point(moto, uploads):
    with (
        stand_in(moto, uploads, alias="lake--ol-s3") as made,
        pytest.raises(ClientError, match="AccessDenied"),
    ):
        client(made.s3_uri).put_object(Bucket="lake--ol-s3", Key=KEY, Body=SMALL)


# aws-chunked: the example of AWS's documentation, and the forms that clients have.
# https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html

SIGNATURE = ";chunk-signature=" + "0" * 64
DATA = b"a" * 65536 + b"a" * 1024
CRC32 = base64.b64encode(zlib.crc32(DATA).to_bytes(4, "big")).decode()
TRAILER = f"x-amz-checksum-crc32:{CRC32}\r\n"
SIGNED_TRAILER = TRAILER + "x-amz-trailer-signature:" + "0" * 64 + "\r\n"


def in_chunks(extension: str, trailers: str) -> bytes:
    pieces = [b"a" * 65536, b"a" * 1024, b""]
    heads = [f"{len(piece):x}{extension}\r\n".encode() for piece in pieces]
    body = b"".join(head + piece + b"\r\n" for head, piece in zip(heads[:2], pieces, strict=False))
    return body + heads[2] + trailers.encode() + b"\r\n"


CHUNKED = [
    ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", SIGNATURE, ""),
    ("STREAMING-UNSIGNED-PAYLOAD-TRAILER", "", TRAILER),
    ("STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", SIGNATURE, SIGNED_TRAILER),
]


def put_chunked(uri: str, payload: str, body: bytes, **headers: str):
    given = {
        "x-amz-content-sha256": payload,
        "Content-Encoding": "aws-chunked",
        "x-amz-decoded-content-length": str(len(DATA)),
    }
    given |= {"x-amz-trailer": "x-amz-checksum-crc32"} if payload.endswith("TRAILER") else {}
    url = f"{uri}/{BUCKET}/{OF_TABLE}/chunked"
    return urllib3.request("PUT", url, body=body, headers=given | headers, retries=False)


@pytest.mark.parametrize(("payload", "extension", "trailers"), CHUNKED, ids=[c[0] for c in CHUNKED])
def test_chunks_are_decoded_before_they_are_sent_on(s3, payload, extension, trailers):
    assert put_chunked(s3.uri, payload, in_chunks(extension, trailers)).status == 200
    assert stored(s3, f"{OF_TABLE}/chunked") == DATA
    assert "ContentEncoding" not in s3.real.head_object(Bucket=BUCKET, Key=f"{OF_TABLE}/chunked")


def test_the_checksum_at_the_end_becomes_a_header():
    """The S3 behind checks it, and wants to see it again when a multipart upload is completed."""
    seen = []

    def answer(request):
        seen.append((dict(request.headers), request.body.read()))
        return Response(200)

    behind = HttpServer(0)
    behind.start(answer)
    payload, extension, trailers = CHUNKED[2]
    try:
        with stand_in(behind.uri) as made:
            coding = {"Content-Encoding": "gzip, aws-chunked"}
            put_chunked(made.s3_uri, payload, in_chunks(extension, trailers), **coding)
    finally:
        behind.stop()
    [(headers, body)] = seen
    headers = {name.lower(): value for name, value in headers.items()}
    assert body == DATA
    assert headers["x-amz-checksum-crc32"] == CRC32
    assert headers["content-encoding"] == "gzip"
    assert headers["content-length"] == str(len(DATA))
    assert headers["x-amz-content-sha256"] == "UNSIGNED-PAYLOAD"
    gone = {"x-amz-trailer", "x-amz-trailer-signature", "x-amz-decoded-content-length"}
    assert not gone & headers.keys()


BROKEN = [
    DATA,
    in_chunks("", "")[:-600],
    in_chunks("", "").replace(b"10000\r\n", b"ffff\r\n", 1),
    b"0\r\n\r\n",
]


@pytest.mark.parametrize("body", BROKEN, ids=["plain", "cut off", "wrong size", "too short"])
def test_a_body_that_is_not_what_its_headers_say_is_refused(s3, body):
    s3.real.delete_object(Bucket=BUCKET, Key=f"{OF_TABLE}/chunked")
    answer = put_chunked(s3.uri, CHUNKED[1][0], body)
    assert (answer.status, b"IncompleteBody" in answer.data) == (400, True)
    with pytest.raises(ClientError, match="NoSuchKey"):
        stored(s3, f"{OF_TABLE}/chunked")
