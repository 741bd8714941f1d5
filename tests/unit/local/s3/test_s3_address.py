"""The bucket and key of a request to S3, in each spelling of clients."""

import pytest
from polynya_local.messages import Request
from polynya_local.s3.requests import S3Address, reads_object


def address(path: str, query: str = "", host: str = "127.0.0.1:9000") -> S3Address:
    return S3Address.from_request(Request("GET", path, query, (("Host", host),), None))


ADDRESSES = [  # host, path, bucket, key
    ("127.0.0.1:9000", "/", "", ""),
    ("127.0.0.1:9000", "/bucket", "bucket", ""),
    ("127.0.0.1:9000", "/bucket/", "bucket", ""),
    ("127.0.0.1:9000", "/bucket/a/b", "bucket", "a/b"),
    ("127.0.0.1:9000", "/bucket//a", "bucket", "/a"),
    ("127.0.0.1:9000", "/bucket/a%2Fb%20c", "bucket", "a%2Fb%20c"),
    # No bucket: in a location it would be another one, and the begin of a key.
    ("127.0.0.1:9000", "/bucket%2Fa%2F../b", "bucket%2Fa%2F..", "b"),
    ("localhost:9000", "/bucket/a", "bucket", "a"),
    ("bucket.localhost:9000", "/a/b", "bucket", "a/b"),
    ("bucket.localhost", "//a", "bucket", "/a"),
    ("lake--ol-s3.127.0.0.1:9000", "/a", "lake--ol-s3", "a"),
    ("two.dots.localhost:9000", "/", "two.dots", ""),
]


@pytest.mark.parametrize("host, path, bucket, key", ADDRESSES)
def test_bucket_and_key_are_read_from_path_or_host(host, path, bucket, key):
    found = address(path, host=host)
    assert (found.bucket, found.key) == (bucket, key)


# SigV4 encodes all of a path and a query except A-Z a-z 0-9 - . _ ~, with upper-case digits.
# https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
CANONICAL = [  # path, query, as signed
    ("/b/day=1/a+b", "", "/b/day%3D1/a%2Bb"),
    ("/b/day%3d1/a%2bb", "", "/b/day%3D1/a%2Bb"),
    ("/b/%7Ea/~b", "", "/b/~a/~b"),
    ("/b//a/../c", "", "/b//a/../c"),
    ("/b/caf%c3%a9", "", "/b/caf%C3%A9"),
    ("/b/100%25", "", "/b/100%25"),
    ("/b/%ff", "", "/b/%FF"),
    ("/b", "prefix=a/b&delimiter=%2f&empty=", "/b?prefix=a%2Fb&delimiter=%2F&empty="),
    ("/b", "acl", "/b?acl="),
    ("/b", "prefix=a+b", "/b?prefix=a%20b"),
]


@pytest.mark.parametrize("path, query, canonical", CANONICAL)
def test_each_address_has_one_canonical_encoding(path, query, canonical):
    assert address(path, query).canonical_target == canonical


UNSIGNED = [  # query, the rest without its signature
    ("", ""),
    ("versionId=1&X-Amz-Date=2&x-amz-signature=3", "versionId=1"),
    ("prefix=a%2Fb&list-type=2&X-Amz-Credential=x", "prefix=a%2Fb&list-type=2"),
    ("AWSAccessKeyId=a&Signature=b&Expires=1&versionId=1", "versionId=1"),
    ("Expires=1", "Expires=1"),
]


@pytest.mark.parametrize("query, left", UNSIGNED)
def test_only_the_signature_of_a_presigned_url_is_removed(query, left):
    assert address("/b/k", query).unsigned().query == left


@pytest.mark.parametrize(
    ("query", "is_read"),
    [
        ("", True),
        ("x-id=GetObject&versionId=1&partNumber=2&response-content-type=a", True),
        ("X-Amz-Signature=1&X-Amz-Date=2", True),
        *((name, False) for name in ("acl", "%41CL", "tagging", "uploadId=1", "attributes")),
        # What S3 does not have yet, or some kind of S3 has alone.
        *((name, False) for name in ("select", "policy", "annotation", "versionId=1&new=")),
    ],
)
def test_a_read_is_for_the_content_of_an_object_alone(query, is_read):
    for method in ("GET", "HEAD"):
        sent = Request(method, "/b/k", query, (("Host", "127.0.0.1:9000"),), None)
        assert reads_object(sent, S3Address.from_request(sent)) is is_read
