"""Ranges that are read past boto3 are those that boto3 reads, and errors are boto3's.

No object is read into memory beyond a limit, whatever the server sends.
"""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import boto3
import pytest
from polynya.runtime.errors import NoSuchKey, ServiceUnavailable
from polynya.storage import aws
from polynya.storage.objects import (
    LARGEST,
    RangeReader,
    TooLarge,
    get_object,
    read_object,
    read_range,
)

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
    aws.client.cache_clear()
    one = RangeReader()
    client = boto3.client("s3", endpoint_url=moto)
    for key in ("ranges/first", *KEYS):
        client.put_object(Bucket=BUCKET, Key=key, Body=BODY)
    yield one
    aws.client.cache_clear()


@pytest.mark.parametrize("span", [(0, 10), (5, 300), (2550, 2560), (2550, 2561), (0, 5000)])
@pytest.mark.parametrize("key", KEYS)
def test_a_range_is_the_one_that_boto3_reads(reader, key, span, monkeypatch):
    location = f"s3://{BUCKET}/{key}"
    expected = read_range(location, *span)
    assert expected == BODY[slice(*span)]
    monkeypatch.setattr("polynya.storage.objects.read_range", None)
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
    for read in (read_range, reader.read_range, reader.read_range):
        with pytest.raises(NoSuchKey):
            read(location, first, first + 10)


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
        aws.client.cache_clear()
        yield Handler
        aws.client.cache_clear()
        server.shutdown()
        thread.join()


PLACE = "s3://bucket/key"
READS = {
    "a range": (lambda: read_range(PLACE, 5, 10), ServiceUnavailable),
    "a range, past boto3": (lambda: RangeReader().read_range(PLACE, 5, 10), ServiceUnavailable),
    "a whole object": (lambda: read_object(PLACE, 100_000), TooLarge),
    "an object that may be missing": (
        lambda: get_object(aws.client("s3"), "bucket", "key"),
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
    for read in (read_range, RangeReader().read_range):
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
