"""Fixtures of the stand-ins' tests."""

from collections.abc import Iterator

import boto3
import pytest

from tests.support.writes.uploads import BUCKET, Store, stand_in


@pytest.fixture(scope="module")
def uploads(moto: str) -> Iterator[Store]:
    """The proxy before moto, where clients may upload."""
    real = boto3.client("s3", endpoint_url=moto)
    real.create_bucket(Bucket=BUCKET)
    with stand_in(moto) as made:
        yield Store(made.s3_uri, real)
