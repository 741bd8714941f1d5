"""The listings of our moto server are byte for byte those of moto itself."""

from unittest.mock import patch

import boto3
import pytest
import requests
from moto.s3.responses import S3Response

from tests.support.servers.moto_server import moto_serialized

KEYS = ("a/1", "a/ü&<\"'>  x Contents><Name>", "a/b/2", "plain")
QUERIES = {
    "everything": "",
    "a prefix": "&prefix=a/",
    "folders": "&delimiter=/",
    "encoded, with owners": "&prefix=a&encoding-type=url&fetch-owner=true",
    "a page": "&max-keys=2",
    "nothing": "&prefix=b",
}


@pytest.fixture(scope="module")
def bucket(moto):
    resource = boto3.resource("s3", endpoint_url=moto, region_name="us-east-1")
    bucket = resource.create_bucket(Bucket="listings")
    for key in KEYS:
        bucket.put_object(Key=key, Body=b"1")
    yield f"{moto}/listings"
    bucket.objects.delete()
    bucket.delete()


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_the_listing_is_motos(bucket, query):
    answers = []
    for _ in range(2):  # keys are serialized once
        answers.append(requests.get(f"{bucket}?list-type=2{query}", timeout=10).content)
    with patch.object(S3Response, "serialized", moto_serialized):
        wanted = requests.get(f"{bucket}?list-type=2{query}", timeout=10).content
    assert answers == [wanted, wanted]
    assert b"<ListBucketResult" in wanted
