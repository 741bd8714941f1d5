"""Real clients upload through the proxy to a real S3 (moto)."""

import io
import random

import pytest
import urllib3
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError
from polynya_local.clients.duckdb import connect
from polynya_local.clients.spark_jars import why_not
from pyarrow import parquet
from pyarrow.fs import S3FileSystem

from tests.support.writes.uploads import BUCKET, OF_TABLE, REGION, SMALL, STAGING, UUID, client

LARGE = bytes(range(256)) * 48 * 1024
"""12 MB: over the size of a part of each client."""


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
def test_what_a_client_uploads_is_stored_as_it_is(uploads, upload, content):
    key = f"{OF_TABLE}/{upload.__name__}/k=a b%2F/{len(content)}.parquet"
    upload(uploads.uri, key, content)
    assert uploads.content(key) == content


@pytest.mark.parametrize("in_parts", [False, True], ids=["as one object", "in parts"])
def test_duckdb_uploads(uploads, in_parts):
    """The bytes are random because they must not be compressed."""
    content = random.Random(1).randbytes(len(LARGE))
    key = f"{OF_TABLE}/duckdb/{in_parts}.parquet"
    with connect(("httpfs",), uploads.uri) as con:
        if in_parts:  # 10,000 at most
            con.execute("SET s3_uploader_max_filesize = '50GB'")
        con.execute(f"COPY (SELECT $1::BLOB AS b) TO 's3://{BUCKET}/{key}'", [content])
        assert con.execute(f"FROM 's3://{BUCKET}/{key}'").fetchall() == [(content,)]
    found = parquet.read_table(f"{BUCKET}/{key}", filesystem=pyarrow_files(uploads.uri))
    assert found.to_pylist() == [{"b": content}]
    assert ("-" in uploads.real.head_object(Bucket=BUCKET, Key=key)["ETag"]) is in_parts


@pytest.mark.spark
@pytest.mark.skipif(bool(why_not()), reason=str(why_not()))
def test_the_s3_client_of_java_uploads(uploads):
    """Iceberg's S3FileIO: small files as one object, larger ones in parts of 5 MB."""
    from polynya_local.clients.spark import catalog_settings, session

    jvm = session()._jvm
    settings = catalog_settings("", "", uploads.uri) | {
        "s3.multipart.part-size-bytes": str(5 << 20)
    }
    files = jvm.org.apache.iceberg.aws.s3.S3FileIO()
    files.initialize(settings)
    for content in (b"", SMALL, LARGE):
        key = f"{STAGING}/{UUID}/{len(content)}-m0.avro"
        stream = files.newOutputFile(f"s3://{BUCKET}/{key}").create()
        stream.write(content)
        stream.close()
        assert uploads.content(key) == content
    files.close()


def test_an_upload_can_be_aborted(uploads):
    proxied = client(uploads.uri)
    at = {"Bucket": BUCKET, "Key": f"{OF_TABLE}/aborted"}
    at["UploadId"] = proxied.create_multipart_upload(**at)["UploadId"]
    proxied.upload_part(**at, PartNumber=1, Body=SMALL)
    proxied.abort_multipart_upload(**at)
    begun = uploads.real.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    assert at["UploadId"] not in [one["UploadId"] for one in begun]


def test_metadata_and_content_type_arrive(uploads):
    about = {"Metadata": {"name": "value"}, "ContentType": "avro/binary", "ContentEncoding": "gzip"}
    key = f"{OF_TABLE}/described"
    client(uploads.uri).put_object(Bucket=BUCKET, Key=key, Body=SMALL, **about)
    found = uploads.real.head_object(Bucket=BUCKET, Key=key)
    assert {name: found[name] for name in about} == about


def test_a_condition_is_that_of_the_s3_behind(uploads):
    at = {"Bucket": BUCKET, "Key": f"{OF_TABLE}/once", "IfNoneMatch": "*"}
    client(uploads.uri).put_object(Body=b"first", **at)
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client(uploads.uri).put_object(Body=b"second", **at)
