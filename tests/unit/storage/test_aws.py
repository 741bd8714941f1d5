"""How answers of AWS are read."""

from datetime import UTC

import pytest
from botocore.utils import parse_timestamp
from polynya.storage.aws import Clients, timestamp

TIMESTAMPS = [
    "2026-11-22T14:02:46.123Z",
    "2026-11-22T14:02:46Z",
    "1970-01-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999Z",
    "2026-11-22T14:02:46+00:00",
    "Sun, 22 Nov 2026 14:02:46 GMT",
    "Sun, 22 Nov 2026 14:02:46 Z",
    1_700_000_000,
    1_700_000_000.25,
    "1700000000",
]


@pytest.mark.parametrize("text", TIMESTAMPS)
def test_a_timestamp_is_the_time_that_botocore_reads(text):
    assert timestamp(text) == parse_timestamp(text)
    assert timestamp(text).utcoffset() == parse_timestamp(text).utcoffset()


@pytest.mark.parametrize("text", ["Z", "yesterday", "2026-13-01T00:00:00Z"])
def test_what_is_no_timestamp_is_an_error(text):
    with pytest.raises(ValueError):
        timestamp(text)


def test_clients_read_timestamps_without_dateutil(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    for bucket in Clients()("s3").list_buckets()["Buckets"]:
        assert bucket["CreationDate"].tzinfo is UTC
