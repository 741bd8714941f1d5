"""A read-only proxy to the S3 behind, which signs each request again."""

import logging
from collections.abc import Iterator
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse, Retry, Timeout, connection_from_url
from urllib3.exceptions import HTTPError

from ..http_message import PER_CONNECTION, Request, Response
from .address import S3Address
from .error import s3_error
from .upstream import S3Upstream

logger = logging.getLogger(__name__)

PIECE = 256 * 1024
# The client's credentials, which are replaced: clients may use any.
SIGNATURE_HEADERS = frozenset(
    ("authorization", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token")
)
# Repeats a request once if the server has closed the pooled connection; never after an answer.
RETRY = Retry(total=1, connect=0, read=1, redirect=0, status=0, raise_on_redirect=False)


class S3Proxy:
    """Forwards GET and HEAD unchanged in both directions, and refuses other methods."""

    def __init__(self, upstream: S3Upstream) -> None:
        self._upstream = upstream
        self._base_path = urlsplit(upstream.endpoint).path
        timeout = Timeout(connect=5, read=60)
        self._pool = connection_from_url(upstream.endpoint, maxsize=32, timeout=timeout)

    def answer(self, request: Request, address: S3Address) -> Response:
        """The answer of the S3 behind; 503 if it cannot be reached."""
        if request.method not in ("GET", "HEAD"):
            return s3_error(
                403, "AccessDenied", "this endpoint is read-only", resource=address.path
            )
        address = address.unsigned()
        headers = {
            name: value
            for name, value in request.headers
            if name.lower() not in SIGNATURE_HEADERS | PER_CONNECTION | {"host", "expect"}
        }
        amz_headers = {k: v for k, v in headers.items() if k.lower().startswith("x-amz-")}
        headers |= self._upstream.signature(request.method, address, amz_headers)
        try:
            found = self._pool.urlopen(
                request.method,
                self._base_path + address.target,
                headers=headers,
                retries=RETRY,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
        except HTTPError as error:
            logger.warning("the S3 at %s does not answer: %s", self._upstream.endpoint, error)
            return s3_error(
                503,
                "ServiceUnavailable",
                "the S3 behind this endpoint does not answer",
                resource=address.path,
                headers=(("Retry-After", "1"),),
            )
        return _passed_on(request.method, found)

    def stop(self) -> None:
        self._pool.close()


def _passed_on(method: str, found: BaseHTTPResponse) -> Response:
    headers = tuple(found.headers.items())
    if method == "HEAD" or found.status in (204, 304):
        found.drain_conn()
        return Response(found.status, headers)
    return Response(found.status, headers, _pieces(found))


def _pieces(found: BaseHTTPResponse) -> Iterator[bytes]:
    try:
        yield from found.stream(PIECE, decode_content=False)
    finally:
        found.close()  # after half an answer the connection cannot be used again
