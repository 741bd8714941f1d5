"""Copies of objects with another end, in one request and in parts."""

import boto3
import pytest
from polynya.runtime.errors import NoSuchKey
from polynya.storage import copies
from polynya.storage.aws import Clients
from polynya.storage.copies import SMALLEST_PART, copy_with_end
from polynya.storage.objects import S3Objects

from tests.support.lakes import BUCKET

SIZE = 2 * SMALLEST_PART + 77
BODY = bytes(range(251)) * (SIZE // 251 + 1)
SOURCE = f"s3://{BUCKET}/copies/day=1 2/a+b.parquet"
TARGET = f"s3://{BUCKET}/copies/day=1 2/polynya-7-a+b.parquet"


@pytest.fixture
def s3(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    client = boto3.client("s3", endpoint_url=moto)
    client.put_object(Bucket=BUCKET, Key=SOURCE.partition(f"{BUCKET}/")[2], Body=BODY)
    yield client


@pytest.mark.parametrize("part", [copies.PART, 2 * SMALLEST_PART])
@pytest.mark.parametrize("start", [0, 4, SMALLEST_PART - 1, SMALLEST_PART, SIZE])
def test_the_copy_has_the_other_end(s3, monkeypatch, start, part):
    monkeypatch.setattr(copies, "PART", part)
    copy_with_end(Clients(), SOURCE, TARGET, start, b"end")
    assert S3Objects(Clients()).read(TARGET) == BODY[:start] + b"end"


@pytest.mark.parametrize("start", [4, SIZE])
def test_an_object_that_is_not_there(s3, start):
    with pytest.raises(NoSuchKey):
        copy_with_end(Clients(), f"s3://{BUCKET}/copies/none", TARGET, start, b"end")
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=BUCKET)


def test_no_part_but_the_last_is_too_small():
    for start in (SMALLEST_PART, copies.PART, copies.PART + 1, 10**9 + 7):
        parts = copies._parts(start)
        assert [end for _, _, end in parts][:-1] == [first for _, first, _ in parts][1:]
        assert parts[0][1:2] == (0,) and parts[-1][2] == start
        assert all(end - first >= SMALLEST_PART for _, first, end in parts)
