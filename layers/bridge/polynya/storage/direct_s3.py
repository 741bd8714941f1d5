"""Frequent requests to S3, without the layers of boto3 for parameters, endpoints and answers.

They take a third of its CPU time.
"""

import os
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote_plus, urlsplit
from xml.etree.ElementTree import ParseError, fromstring
from zlib import crc32

from ..runtime import budget
from ..runtime.metrics import observe_seconds
from .aws import CONNECT_SECONDS, Clients, read_seconds, timestamp
from .objects import LARGEST, S3Objects, check_range
from .s3_locations import bucket_and_key

AT_A_TIME = 48
"""The most ranges that are read at the same time: S3 takes 20 ms for each."""

SIGNED_SECONDS = 60
"""The shortest time for which a URL is signed. Only this process uses it, and at once."""


class _Bucket(NamedTuple):
    """How to request the objects of a bucket without boto3."""

    connections: Any
    origin: str
    """Scheme, host and port."""
    path: str
    """The path of its URL, with a slash at its end."""
    region: str


def _bucket(s3: Any, name: str, seconds: float) -> _Bucket | None:
    """A bucket, with a read timeout; None: it takes boto3, for a proxy or another signature."""
    import urllib3
    from botocore.httpsession import create_urllib3_context, get_cert_path
    from botocore.utils import get_environ_proxies

    key = "k"
    signed = s3.generate_presigned_url("get_object", Params={"Bucket": name, "Key": key})
    url = urlsplit(signed)
    credential = parse_qs(url.query).get("X-Amz-Credential")
    if credential is None or get_environ_proxies(signed):
        return None
    tls = {}
    if url.scheme == "https":
        context = tls["ssl_context"] = create_urllib3_context()
        context.load_verify_locations(os.environ.get("AWS_CA_BUNDLE") or get_cert_path(True))
    timeout = urllib3.Timeout(min(CONNECT_SECONDS, seconds), seconds)
    connections = urllib3.connection_from_url(signed, maxsize=AT_A_TIME, timeout=timeout, **tls)
    origin, path = f"{url.scheme}://{url.netloc}", url.path.removesuffix(key)
    return _Bucket(connections, origin, path, region=credential[0].split("/")[2])


OPERATIONS = {
    "GetObject": ("GET", 206),
    "PutObject": ("PUT", 200),
    "ListObjectsV2": ("GET", 200),
}
"""The method of a request that boto3 does not send, and the status of the answer that is used."""

ListedKeys = tuple[dict[str, float], bool]
"""When each key was put, in seconds since 1970; and whether there are more keys."""


class DirectS3:
    """Sends requests, also from several threads: botocore signs a URL, and urllib3 sends it.

    After an unexpected answer the caller asks again through boto3, which handles errors,
    redirections and retries.
    """

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._buckets: dict[tuple[str, float], _Bucket | None] = {}

    def send(
        self,
        operation: str,
        bucket: str,
        key: str,
        *,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        most: int = LARGEST,
    ) -> bytes | None:
        """The body of S3's answer; None if S3 answers anything else, or has more bytes.

        Args:
            operation: one of `OPERATIONS`.
            key: of an object; of a list, its prefix, which is in `query` too.
            headers: are signed, too.
            most: the largest number of bytes of the body.

        Raises:
            OutOfTime: no time is left in the budget.
        """
        from botocore.auth import S3SigV4QueryAuth
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError
        from urllib3.exceptions import HTTPError

        budget.check()
        method, status = OPERATIONS[operation]
        try:
            place = self._bucket(bucket)
            keys = self._clients.credentials()
            if place is None or keys is None:
                return None
            path = "" if operation == "ListObjectsV2" else quote(key, safe="/~")
            request = AWSRequest(method, place.origin + place.path + path, headers, params=query)
            S3SigV4QueryAuth(keys, "s3", place.region, SIGNED_SECONDS).add_auth(request)
            with observe_seconds("AwsCalls", service="s3"):
                answer = place.connections.urlopen(
                    method,
                    request.url.removeprefix(place.origin),
                    body=body,
                    headers=headers,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    enforce_content_length=True,
                )
                size = int(answer.headers.get("Content-Length", 0 if method == "PUT" else most))
                if answer.status == status and size <= most:
                    content: bytes = answer.read()
                    answer.release_conn()
                    return content
            answer.close()
        except (BotoCoreError, HTTPError):
            pass
        return None

    def _bucket(self, name: str) -> _Bucket | None:
        place = name, read_seconds("s3")
        if place not in self._buckets:
            self._buckets[place] = _bucket(self._clients("s3"), *place)
        return self._buckets[place]

    def put_new(self, bucket: str, key: str, body: bytes) -> bool:
        """Put an object; False if there is one, or if S3 does not say that it is put now."""
        checksum = b64encode(crc32(body).to_bytes(4, "big")).decode()
        headers = {
            "If-None-Match": "*",
            "x-amz-sdk-checksum-algorithm": "CRC32",
            "x-amz-checksum-crc32": checksum,
        }
        return self.send("PutObject", bucket, key, headers=headers, body=body) is not None

    def keys_after(self, bucket: str, prefix: str, key: str) -> ListedKeys | None:
        """The keys of a prefix after this one, up to a thousand; None if S3 does not say.

        boto3 takes a millisecond for forty keys.
        """
        query = {"list-type": "2", "prefix": prefix, "start-after": key, "encoding-type": "url"}
        body = self.send("ListObjectsV2", bucket, prefix, query=query)
        return None if body is None else _listed(body)


def _listed(body: bytes) -> ListedKeys | None:
    try:
        root = fromstring(body)
        if not root.tag.endswith("ListBucketResult"):
            return None
        names = root.tag.removesuffix("ListBucketResult")
        decoded = unquote_plus if root.findtext(f"{names}EncodingType") == "url" else str
        keys = {
            decoded(content.findtext(f"{names}Key", "")): timestamp(
                content.findtext(f"{names}LastModified", "")
            ).timestamp()
            for content in root.iterfind(f"{names}Contents")
        }
        return keys, {"true": True, "false": False}[root.findtext(f"{names}IsTruncated", "")]
    except (ParseError, ValueError, KeyError):
        return None


class RangeReader:
    """Reads ranges of objects without boto3, also from several threads."""

    def __init__(self, clients: Clients) -> None:
        self._objects, self._direct = S3Objects(clients), DirectS3(clients)

    def read_range(self, location: str, first: int, end: int) -> bytes:
        """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

        Raises:
            NoSuchKey, Misconfigured, ServiceUnavailable, TooLarge: as `S3Objects.read_range`.
            OutOfTime: no time is left in the budget.
        """
        check_range(first, end)
        source = bucket_and_key(location)
        body = self.fetch(*source, first, end) if source else None
        return self._objects.read_range(location, first, end) if body is None else body

    def fetch(self, bucket: str, key: str, first: int, end: int) -> bytes | None:
        """The bytes of a range; None if S3 answers anything else. Raises: as `DirectS3.send`."""
        span = {"Range": f"bytes={first}-{end - 1}"}
        return self._direct.send("GetObject", bucket, key, headers=span, most=end - first)
