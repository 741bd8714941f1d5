"""Reads pieces of very many objects in S3, for less CPU time than GetObject of boto3 takes."""

import os
from functools import cache
from typing import Any

from ... import budget
from ..aws import CONNECT_SECONDS, client, read_seconds
from ..s3 import TooLarge, body_of, bucket_and_key
from .reader import check_range
from .reader import read_range as read_range_with_boto3

AT_A_TIME = 48
"""How many ranges are worth reading at the same time: S3 takes 20 ms for each."""

SIGNED_SECONDS = 60
"""The shortest time for which a URL is signed. It is used at once, and by nobody else."""


class RangeReader:
    """Reads ranges of objects, also from several threads.

    boto3 signs a URL, and botocore's HTTP session sends the request, without boto3's layers for
    parameters and answers. What is not answered as expected is asked again through boto3, which
    knows errors, redirections and retries.
    """

    def read_range(self, location: str, first: int, end: int) -> bytes:
        """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

        Raises:
            NoSuchKey, Misconfigured, ServiceUnavailable, TooLarge: as `reader.read_range`.
            OutOfTime: no time is left in the budget.
        """
        check_range(first, end)
        found = bucket_and_key(location)
        body = self.fetch(*found, first, end) if found else None
        return read_range_with_boto3(location, first, end) if body is None else body

    def fetch(self, bucket: str, key: str, first: int, end: int) -> bytes | None:
        """The bytes of a range; None if S3 answers anything else.

        Raises:
            OutOfTime: no time is left in the budget.
        """
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import BotoCoreError
        from botocore.response import StreamingBody

        budget.check()
        try:
            url = client("s3").generate_presigned_url(
                "get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=SIGNED_SECONDS
            )
            headers = {"Range": f"bytes={first}-{end - 1}"}
            request = AWSRequest("GET", url, headers=headers, stream_output=True)
            answer = _session(read_seconds("s3")).send(request.prepare())
            if answer.status_code == 206:
                stream = StreamingBody(answer.raw, answer.headers.get("Content-Length"))
                return body_of({"Body": stream}, end - first)
            answer.raw.close()
        except (BotoCoreError, TooLarge):
            pass
        return None


@cache
def _session(seconds: float) -> Any:
    """Connections with a read timeout."""
    from botocore.httpsession import URLLib3Session
    from botocore.utils import get_environ_proxies

    return URLLib3Session(
        verify=os.environ.get("AWS_CA_BUNDLE") or True,
        proxies=get_environ_proxies(client("s3").meta.endpoint_url),
        timeout=(min(CONNECT_SECONDS, seconds), seconds),
        max_pool_connections=AT_A_TIME,
    )
