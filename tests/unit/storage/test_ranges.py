"""Ranges that are read past boto3 are those that boto3 reads, and errors are boto3's."""

import boto3
import pytest
from polynya.errors import NoSuchKey
from polynya.storage import aws
from polynya.storage.objects.ranges import RangeReader
from polynya.storage.objects.reader import read_range

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
    monkeypatch.setattr("polynya.storage.objects.ranges.read_range_with_boto3", None)
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
