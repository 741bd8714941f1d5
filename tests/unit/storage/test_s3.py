"""Locations in S3."""

import pytest
from polynya.storage.s3_locations import bucket_and_key, is_s3

LOCATIONS = [
    ("s3://b/a/k", ("b", "a/k")),
    ("s3a://b/a%20b", ("b", "a%20b")),
    ("s3n://b", ("b", "")),
    ("s3:///k", ("", "k")),
    ("gs://b/k", None),
    ("S3://b/k", None),
    ("/b/k", None),
    ("s3", None),
    ("s3/k", None),
    ("", None),
]


@pytest.mark.parametrize(("location", "expected"), LOCATIONS)
def test_bucket_and_key_of_a_location(location, expected):
    assert bucket_and_key(location) == expected
    assert is_s3(location) == (expected is not None)
