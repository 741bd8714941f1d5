"""What is read, listed and put past boto3 is what boto3 would do, and errors are boto3's.

No object is read into memory beyond a limit, whatever the server sends.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from polynya.runtime.errors import NoSuchKey, ServiceUnavailable
from polynya.storage.aws import Clients
from polynya.storage.bucket_store import BucketStore
from polynya.storage.direct_s3 import DirectS3, RangeReader
from polynya.storage.objects import LARGEST, S3Objects, TooLarge, get_object

from tests.support.lakes import BUCKET

BODY = bytes(range(256)) * 10

KEYS = (
    "ranges/plain.parquet",
    "ranges/day=2026-01-01 00%3A00/a+b & c.parquet",
    "ranges/ä/日本/~_-.parquet",
    "ranges/a//b/'(*)!.parquet",
)


@pytest.fixture
def reader(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    one = RangeReader(Clients())
    client = boto3.client("s3", endpoint_url=moto)
    for key in ("ranges/first", *KEYS):
        client.put_object(Bucket=BUCKET, Key=key, Body=BODY)
    yield one


@pytest.mark.parametrize("span", [(0, 10), (5, 300), (2550, 2560), (2550, 2561), (0, 5000)])
@pytest.mark.parametrize("key", KEYS)
def test_a_range_is_the_one_that_boto3_reads(reader, key, span, monkeypatch):
    location = f"s3://{BUCKET}/{key}"
    expected = S3Objects(Clients()).read_range(location, *span)
    assert expected == BODY[slice(*span)]
    monkeypatch.setattr(S3Objects, "read_range", None)
    assert reader.read_range(location, *span) == expected


@pytest.mark.parametrize(
    ("location", "first"),
    [
        (f"s3://{BUCKET}/ranges/none", 0),
        (f"s3://{BUCKET}/ranges/first", 5000),
        ("s3://no-such-bucket/ranges/first", 0),
        ("file:///etc/passwd", 0),
    ],
)
def test_a_missing_file_is_an_error_of_boto3(reader, location, first):
    for read in (S3Objects(Clients()).read_range, reader.read_range, reader.read_range):
        with pytest.raises(NoSuchKey):
            read(location, first, first + 10)


@pytest.fixture
def stores(reader, moto):
    """A bucket of its own, past boto3 and by boto3 alone, and boto3's client."""
    s3 = boto3.client("s3", endpoint_url=moto)
    s3.create_bucket(Bucket="direct")
    yield (
        BucketStore("direct", lambda: None, direct=DirectS3(Clients())),
        BucketStore("direct", lambda: s3),
        s3,
    )
    for entry in s3.list_objects_v2(Bucket="direct").get("Contents", ()):
        s3.delete_object(Bucket="direct", Key=entry["Key"])


@pytest.mark.parametrize("body", [b"", b"x", BODY * 1000], ids=len)
@pytest.mark.parametrize("key", KEYS)
def test_an_object_is_put_and_listed_as_by_boto3(key, body, stores):
    direct, by_boto3, s3 = stores
    assert direct.put(key, body) == body
    stored = s3.get_object(Bucket="direct", Key=key, ChecksumMode="ENABLED")
    assert stored["Body"].read() == body
    s3.put_object(Bucket="direct", Key="other", Body=body, ChecksumAlgorithm="CRC32")
    other = s3.head_object(Bucket="direct", Key="other", ChecksumMode="ENABLED")
    assert stored["ChecksumCRC32"] == other["ChecksumCRC32"]
    keys = [key, f"{key}.none", "other"]
    ages, expected = direct.ages(keys), by_boto3.ages(keys)
    assert ages.keys() == expected.keys() == {key, "other"}
    assert all(abs(ages[name] - expected[name]) < 5 for name in ages)


def test_an_object_that_is_there_is_not_replaced(stores):
    direct, _, s3 = stores
    s3.put_object(Bucket="direct", Key="k", Body=b"first")
    direct = replace(direct, s3=lambda: s3)  # S3 answers 412, which boto3 is asked about
    assert direct.put("k", b"second") == b"first"


def test_more_keys_than_a_page_are_listed_past_boto3(stores, monkeypatch):
    """A page of S3 has a thousand keys; in this test it has 10."""
    direct, _, s3 = stores
    names = [f"p/{number:02}" for number in range(42)]
    for name in names:
        s3.put_object(Bucket="direct", Key=name, Body=b"")
    send, pages = DirectS3.send, []

    def shorter(self, *of, query, **rest):
        pages.append(query["start-after"])
        return send(self, *of, query=query | {"max-keys": "10"}, **rest)

    monkeypatch.setattr(DirectS3, "send", shorter)
    assert direct.ages([names[0], names[9], names[30], "p/9"]).keys() == {
        names[0],
        names[9],
        names[30],
    }
    assert pages == ["p/0", "p/3", "p/"]


@pytest.mark.parametrize("body", [b"", b"<html/>", b"<ListBucketResult>", b"<ListBucketResult/>"])
def test_a_listing_that_is_none_is_asked_again(body, stores, monkeypatch):
    direct, by_boto3, s3 = stores
    by_boto3.put("a/b", b"x")
    monkeypatch.setattr(DirectS3, "send", lambda *_, **__: body)
    direct = replace(direct, s3=lambda: s3)
    assert direct.ages(["a/b", "a/c"]).keys() == {"a/b"}


@pytest.mark.parametrize("encoding", ["<EncodingType>url</EncodingType>", ""])
def test_keys_are_decoded_as_by_boto3(encoding, monkeypatch, moto):
    """S3 writes a space as `+`; moto does not."""
    names = ("p/a%2Bb+c%C3%A4", "p/a%25&amp;b")
    keys = "".join(
        f"<Contents><Key>{name}</Key><LastModified>2026-11-25T10:00:00.000Z</LastModified></Contents>"
        for name in names
    )
    start = '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
    body = f"{start}{encoding}<IsTruncated>false</IsTruncated>{keys}</ListBucketResult>"
    s3 = boto3.client("s3", endpoint_url=moto)
    s3.meta.events.register("before-send", lambda **_: AWSResponse("", 200, {}, Raw(body.encode())))
    expected = BucketStore("direct", lambda: s3)._listed("p/", "p")
    monkeypatch.setattr(DirectS3, "send", lambda *_, **__: body.encode())
    assert DirectS3(Clients()).keys_after("direct", "p/", "p") == expected
    assert len(expected[0]) == 2


class Raw(BytesIO):
    """A body as urllib3 has it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def test_what_may_not_be_put_or_listed_is_an_error_of_boto3(reader, moto):
    store = BucketStore("no-such-bucket", lambda: Clients()("s3"), direct=DirectS3(Clients()))
    for request in (lambda: store.put("k", b"x"), lambda: store.ages(["k"])):
        with pytest.raises(ClientError):
            request()


ENORMOUS = 1 << 32


class Careless(BaseHTTPRequestHandler):
    """S3 as it answers a range that it takes for invalid: with the whole object."""

    sent: list[int]
    status = 200
    most = ENORMOUS
    """It hangs up after so many bytes."""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(ENORMOUS))
        self.end_headers()
        try:
            for start in range(0, self.most, 1 << 20):
                piece = bytes(min(1 << 20, self.most - start))
                self.wfile.write(piece)
                self.sent.append(len(piece))
        except OSError:
            pass
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(params=[200, 206])
def careless(request, monkeypatch) -> Iterator[type[Careless]]:
    class Handler(Careless):
        sent, status = [], request.param

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
        yield Handler
        server.shutdown()
        thread.join()


PLACE = "s3://bucket/key"
READS = {
    "a range": (lambda: S3Objects(Clients()).read_range(PLACE, 5, 10), ServiceUnavailable),
    "a range, past boto3": (
        lambda: RangeReader(Clients()).read_range(PLACE, 5, 10),
        ServiceUnavailable,
    ),
    "a whole object": (lambda: S3Objects(Clients()).read(PLACE, 100_000), TooLarge),
    "an object that may be missing": (
        lambda: get_object(Clients()("s3"), "bucket", "key"),
        TooLarge,
    ),
}


@pytest.mark.parametrize("what", READS)
def test_no_more_of_an_object_is_read_than_was_asked_for(what, careless, monkeypatch):
    monkeypatch.setattr("polynya.storage.objects.body_of.__defaults__", (1_000_000,))
    read, error = READS[what]
    with pytest.raises(error):
        read()
    assert sum(careless.sent) < 64 << 20  # what the sockets hold


@pytest.mark.parametrize("what", ["a range", "a range, past boto3", "a whole object"])
def test_a_body_that_ends_early_is_an_error(what, careless):
    careless.most = 3
    with pytest.raises(ServiceUnavailable):
        READS[what][0]()


RANGES = [(5, 5, NoSuchKey), (5, 4, NoSuchKey), (-1, 5, NoSuchKey), (0, LARGEST + 1, TooLarge)]


@pytest.mark.parametrize(("first", "end", "error"), RANGES)
def test_a_range_that_s3_would_not_understand_is_not_asked_for(first, end, error, careless):
    for read in (S3Objects(Clients()).read_range, RangeReader(Clients()).read_range):
        with pytest.raises(error):
            read(PLACE, first, end)
    assert careless.sent == []


def test_every_body_of_an_object_is_read_within_a_limit():
    """The functions, the command and the jobs have one way to read a body."""
    root = Path(__file__).parents[3]
    calls = [
        line
        for folder in ("layers", "functions", "local", "pipeline")
        for path in (root / folder).rglob("*.py")
        for line in path.read_text().splitlines()
        if re.search(r"[.]get_object\(|\[.Body.\]", line) and "self._get_object" not in line
    ]
    assert len(calls) > 5
    assert [line for line in calls if "body_of(" not in line] == [
        '    stream, pieces, left = answer["Body"], [], most + 1'
    ]
