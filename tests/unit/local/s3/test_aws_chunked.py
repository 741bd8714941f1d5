"""The proxy decodes `aws-chunked`, in the example of AWS's documentation and as clients send it."""

import base64
import zlib

import pytest
import urllib3
from botocore.exceptions import ClientError
from polynya_local.messages import Response

from tests.aws.http_server import HttpServer
from tests.support.writes.uploads import BUCKET, OF_TABLE, stand_in

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
def test_chunks_are_decoded_before_they_are_sent_on(uploads, payload, extension, trailers):
    assert put_chunked(uploads.uri, payload, in_chunks(extension, trailers)).status == 200
    assert uploads.content(f"{OF_TABLE}/chunked") == DATA
    assert "ContentEncoding" not in uploads.real.head_object(
        Bucket=BUCKET, Key=f"{OF_TABLE}/chunked"
    )


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
def test_a_body_that_is_not_what_its_headers_say_is_refused(uploads, body):
    uploads.real.delete_object(Bucket=BUCKET, Key=f"{OF_TABLE}/chunked")
    answer = put_chunked(uploads.uri, CHUNKED[1][0], body)
    assert (answer.status, b"IncompleteBody" in answer.data) == (400, True)
    with pytest.raises(ClientError, match="NoSuchKey"):
        uploads.content(f"{OF_TABLE}/chunked")
