"""A bucket that is a folder: what S3's GetObject and ListObjectsV2 answer, and nothing outside."""

import os

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from polynya_local.lakes.lake_files import BUCKET
from polynya_local.lakes.opened import local_s3

BODY = bytes(range(256)) * 5
OUTSIDE = "secret.parquet"


@pytest.fixture(scope="module")
def s3(tmp_path_factory):
    root = tmp_path_factory.mktemp("bucket")
    folder = root / "data"
    (folder / "main" / "day=2020%2F01").mkdir(parents=True)
    (folder / "main" / "t.parquet").write_bytes(BODY)
    (folder / "main" / "day=2020%2F01" / "ä b+c.parquet").write_bytes(b"x")
    (folder / "empty").write_bytes(b"")
    (root / OUTSIDE).write_bytes(b"secret")
    (root / "data-2").mkdir()
    (root / "data-2" / OUTSIDE).write_bytes(b"secret")
    (folder / "link").symlink_to(root / OUTSIDE)
    (folder / "folder-link").symlink_to(root)
    (folder / "inner-link").symlink_to(folder / "main" / "t.parquet")
    os.mkfifo(folder / "pipe")
    with local_s3(folder) as endpoint:
        yield boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=Config(retries={"max_attempts": 1}),
        )


RANGES = [
    (None, 0, None),
    ("bytes=0-9", 0, 10),
    ("bytes=1270-", 1270, None),
    ("bytes=-8", -8, None),
    ("bytes=100-99999", 100, None),
    ("bytes=5-5", 5, 6),
]


@pytest.mark.parametrize(("range_", "start", "end"), RANGES)
def test_an_object_has_the_bytes_of_its_range(s3, range_, start, end):
    options = {"Range": range_} if range_ else {}
    answer = s3.get_object(Bucket=BUCKET, Key="main/t.parquet", **options)
    expected = BODY[start:end]
    assert answer["Body"].read() == expected
    assert answer["ContentLength"] == len(expected)
    if range_:
        first = start % len(BODY)
        assert answer["ContentRange"] == f"bytes {first}-{first + len(expected) - 1}/{len(BODY)}"
    assert s3.head_object(Bucket=BUCKET, Key="main/t.parquet")["ContentLength"] == len(BODY)


def test_a_key_is_not_decoded(s3):
    key = "main/day=2020%2F01/ä b+c.parquet"
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"x"


def test_a_link_within_the_folder_is_followed(s3):
    assert s3.get_object(Bucket=BUCKET, Key="inner-link")["Body"].read() == BODY


def test_an_empty_object(s3):
    assert s3.get_object(Bucket=BUCKET, Key="empty")["Body"].read() == b""


@pytest.mark.parametrize("key", ["./main/t.parquet", "/main/t.parquet", "main//.//t.parquet"])
def test_another_spelling_is_the_same_object(s3, key):
    """A catalog may name a file like this; DuckLake reads it."""
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == BODY


MISSING = [
    f"../{OUTSIDE}",
    f"main/../../{OUTSIDE}",
    f"../data-2/{OUTSIDE}",
    "main/../main/t.parquet",
    "main/t.parquet/",
    "x/" * 3000 + "main/t.parquet",
    "link",
    f"folder-link/{OUTSIDE}",
    f"folder-link/data-2/{OUTSIDE}",
    "/etc/passwd",
    "main",
    "main/",
    "pipe",
    "nothing",
]


@pytest.mark.parametrize("key", MISSING)
def test_what_is_no_file_below_the_folder_is_no_object(s3, key):
    with pytest.raises(ClientError) as error:
        s3.get_object(Bucket=BUCKET, Key=key)
    assert error.value.response["Error"]["Code"] == "NoSuchKey"


def test_a_range_after_the_end_and_another_bucket_are_refused(s3):
    for bucket, range_, code in (
        (BUCKET, "bytes=1280-", "InvalidRange"),
        ("other", "bytes=0-", "NoSuchBucket"),
    ):
        with pytest.raises(ClientError) as error:
            s3.get_object(Bucket=bucket, Key="main/t.parquet", Range=range_)
        assert error.value.response["Error"]["Code"] == code


def test_nothing_is_written_or_deleted(s3):
    for change in (
        lambda: s3.put_object(Bucket=BUCKET, Key="new", Body=b"x"),
        lambda: s3.delete_object(Bucket=BUCKET, Key="main/t.parquet"),
        lambda: s3.create_multipart_upload(Bucket=BUCKET, Key="new"),
    ):
        with pytest.raises(ClientError) as error:
            change()
        assert error.value.response["Error"]["Code"] == "AccessDenied"
    assert s3.head_object(Bucket=BUCKET, Key="main/t.parquet")["ContentLength"] == len(BODY)


def test_a_listing_has_the_files_in_pages(s3):
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=BUCKET, PaginationConfig={"PageSize": 1}
    )
    found = {item["Key"]: item["Size"] for page in pages for item in page.get("Contents", [])}
    assert found == {"main/t.parquet": 1280, "main/day=2020%2F01/ä b+c.parquet": 1, "empty": 0}


def test_a_listing_has_a_prefix_and_common_prefixes(s3):
    answer = s3.list_objects_v2(Bucket=BUCKET, Prefix="main/", Delimiter="/")
    assert [item["Key"] for item in answer["Contents"]] == ["main/t.parquet"]
    assert [item["Prefix"] for item in answer["CommonPrefixes"]] == ["main/day=2020%2F01/"]


def test_a_listing_may_be_empty(s3):
    answer = s3.list_objects_v2(Bucket=BUCKET, Prefix="nothing/")
    assert (answer["KeyCount"], answer["IsTruncated"]) == (0, False)
