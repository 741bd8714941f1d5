"""Copies of objects with another end, in one request and in parts."""

import itertools
from types import SimpleNamespace

import boto3
import pytest
from polynya.runtime import budget
from polynya.runtime.errors import NoSuchKey, OutOfTime, ServiceUnavailable
from polynya.storage import copies
from polynya.storage.aws import AwsSettings, Clients
from polynya.storage.bucket_store import BucketStore, DeliveryBucket
from polynya.storage.copies import SMALLEST_PART, copy_with_end
from polynya.storage.objects import S3Objects

from bench.support.lakes import BUCKET as OF_SEAWEEDFS
from bench.support.s3 import WEED
from bench.support.s3 import s3 as seaweedfs
from tests.support.lakes import BUCKET

NUMBERS = itertools.count()
SIZE = 2 * SMALLEST_PART + 77
BODY = bytes(range(251)) * (SIZE // 251 + 1)
SOURCE = f"s3://{BUCKET}/copies/day=1 2/a+b.parquet"
SHORT = "copies/short.parquet"
TARGET = f"s3://{BUCKET}/copies/day=1 2/polynya-7-a+b.parquet"


@pytest.fixture
def s3(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    client = boto3.client("s3", endpoint_url=moto)
    client.put_object(Bucket=BUCKET, Key=SOURCE.partition(f"{BUCKET}/")[2], Body=BODY)
    client.put_object(Bucket=BUCKET, Key=SHORT, Body=b"short")
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


def test_a_source_that_is_shorter_is_not_copied(s3):
    with pytest.raises(NoSuchKey, match="shorter"):
        copy_with_end(Clients(), f"s3://{BUCKET}/{SHORT}", TARGET, 9, b"end")


@pytest.fixture(scope="module", params=["moto", pytest.param("seaweedfs", marks=pytest.mark.slow)])
def endpoint(request, moto):
    """Of a store, and a bucket in it."""
    if request.param == "moto":
        yield moto, BUCKET
    elif not WEED.exists():
        pytest.skip("no SeaweedFS: make bench")
    else:
        with seaweedfs() as started:
            yield started, OF_SEAWEEDFS


@pytest.fixture
def store(endpoint):
    """A bucket that clients read, the keys of a source in it and of a copy, and the source."""
    uri, name = endpoint
    s3, folder = boto3.client("s3", endpoint_url=uri), f"copies-{next(NUMBERS)}"
    source, copy = f"{folder}/source", f"{folder}/copy"
    s3.put_object(Bucket=name, Key=source, Body=BODY)
    clients = Clients(AwsSettings(endpoints={"s3": uri}))
    bucket = DeliveryBucket(BucketStore(name, lambda: clients("s3")))
    is_moto = name == BUCKET
    return SimpleNamespace(
        s3=s3, name=name, bucket=bucket, source=source, copy=copy, is_moto=is_moto
    )


def body_of(store) -> bytes:
    """The bytes of the copy."""
    return store.s3.get_object(Bucket=store.name, Key=store.copy)["Body"].read()


def uploads(store) -> list:
    """Those of the copy that have not ended."""
    all_of_them = store.s3.list_multipart_uploads(Bucket=store.name).get("Uploads", [])
    return [upload for upload in all_of_them if upload["Key"] == store.copy]


STARTS = [4, SMALLEST_PART - 1, SMALLEST_PART, SMALLEST_PART + 1, SIZE]


@pytest.mark.slow(but=["[moto-4]", f"[moto-{SIZE}]"])
@pytest.mark.parametrize("start", STARTS)
def test_a_copy_that_clients_read_stays_unless_it_is_replaced(store, monkeypatch, start):
    monkeypatch.setattr(copies, "PART", 2 * SMALLEST_PART)
    source = store.bucket.source(f"s3://{store.name}/{store.source}")
    store.bucket.put_copy(store.copy, source, start, b"end", 4, is_new=True)
    etag = store.s3.head_object(Bucket=store.name, Key=store.copy)["ETag"]
    assert body_of(store) == BODY[:start] + b"end"
    store.bucket.put_copy(store.copy, source, start, b"other", 4, is_new=True)
    assert body_of(store) == BODY[:start] + b"end"
    store.bucket.put_copy(store.copy, source, start, b"end", 4, is_new=False)
    assert store.s3.head_object(Bucket=store.name, Key=store.copy)["ETag"] == etag
    store.bucket.put_copy(store.copy, source, start, b"other", 4, is_new=False)
    assert body_of(store) == BODY[:start] + b"other"
    assert uploads(store) == []


@pytest.mark.slow(but=["[moto-4]"])
@pytest.mark.parametrize("start", [4, SIZE])
def test_two_objects_are_not_mixed(store, start):
    if store.is_moto and start == SIZE:
        pytest.skip("moto copies a part whatever its source is now")
    source = store.bucket.source(f"s3://{store.name}/{store.source}")
    store.s3.put_object(Bucket=store.name, Key=store.source, Body=BODY[::-1])
    with pytest.raises(ServiceUnavailable, match="replaced"):
        store.bucket.put_copy(store.copy, source, start, b"end", 4, is_new=True)
    assert uploads(store) == []
    listed = store.s3.list_objects_v2(Bucket=store.name, Prefix=store.copy)
    assert listed["KeyCount"] == 0


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_copy_that_fails_leaves_no_parts(store, monkeypatch, is_gone):
    """Its time is over, or the source is gone, when one of two parts is there."""
    monkeypatch.setattr(copies, "PART", 2 * SMALLEST_PART)
    now = [0.0]
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now[0]))
    source = store.bucket.source(f"s3://{store.name}/{store.source}")
    copied = copies.Copy._copied_part

    def copy_one_part(*part):
        answer = copied(*part)
        assert len(uploads(store)) == 1
        if is_gone:
            store.s3.delete_object(Bucket=store.name, Key=store.source)
        else:
            now[0] += 60
        return answer

    monkeypatch.setattr(copies.Copy, "_copied_part", copy_one_part)
    with pytest.raises(NoSuchKey if is_gone else OutOfTime), budget.limited(30):
        store.bucket.put_copy(store.copy, source, SIZE, b"end", 1, is_new=True)
    assert uploads(store) == []


def test_no_part_but_the_last_is_too_small():
    for start in (SMALLEST_PART, copies.PART, copies.PART + 1, 10**9 + 7, 10**12, 5 * 10**12):
        parts = copies._parts(start)
        assert [end for _, _, end in parts][:-1] == [first for _, first, _ in parts][1:]
        assert parts[0][1:2] == (0,) and parts[-1][2] == start
        assert all(SMALLEST_PART <= end - first <= 5 * 2**30 for _, first, end in parts)
        assert len(parts) < 10_000
