"""S3 for functions that run in this process."""

import pytest


@pytest.fixture
def s3(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
