"""S3 for functions that run in this process."""

import pytest
from polynya.storage import aws


@pytest.fixture
def s3(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    aws.client.cache_clear()
    yield
    aws.client.cache_clear()
