"""A proxy to the S3 behind the server, which signs each request again."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Protocol
from urllib.parse import urlsplit

import botocore.session
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from polynya.runtime.errors import READ_ONLY, PolynyaError
from polynya.storage.aws import Keys
from urllib3 import BaseHTTPResponse, Retry, Timeout, connection_from_url
from urllib3.exceptions import HTTPError

from ..access.granted_files import Permission
from ..messages import PER_CONNECTION, Headers, Request, Response
from .requests import (
    READS,
    IncompleteBody,
    S3Address,
    decoded_body,
    reads_object,
    s3_error,
    size_of,
)
from .uploads import (
    COMMITTED,
    CREATIONS,
    NO_KEY,
    Removals,
    Uncommitted,
    UploadPaths,
    operation_of,
)

# GET and HEAD have no body to hash.
UNSIGNED_PAYLOAD = Config(s3={"payload_signing_enabled": False})


class S3Upstream:
    """An S3 to which requests go in path style, with the credentials of this process."""

    def __init__(self, endpoint: str | None, region: str, keys: Keys | None = None) -> None:
        """`keys`: the credentials; None: those of the environment."""
        self.endpoint = (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/")
        self._region = region
        self._credentials = Credentials(*keys) if keys else own_credentials()

    def signature(
        self, method: str, address: S3Address, headers: Mapping[str, str]
    ) -> dict[str, str]:
        """The headers that sign a request with `headers`; none without credentials."""
        if self._credentials is None:
            return {}
        request = AWSRequest(method, self.endpoint + address.canonical_target, dict(headers))
        request.context["client_config"] = UNSIGNED_PAYLOAD
        credentials = self._credentials.get_frozen_credentials()
        S3SigV4Auth(credentials, "s3", self._region).add_auth(request)
        return {name: value for name, value in request.headers.items() if name not in headers}


def own_credentials() -> Credentials | None:
    """Credentials from the usual AWS variables and profiles; None: there are none."""
    provider = botocore.session.get_session().get_component("credential_provider")
    # It would ask the network for the role of an EC2 instance, which takes seconds elsewhere.
    provider.remove("iam-role")
    return provider.load_credentials()


logger = logging.getLogger(__name__)

PIECE = 256 * 1024
# The client's credentials, which are replaced: clients may use any.
SIGNATURE_HEADERS = frozenset(
    ("authorization", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token")
)
NOT_FORWARDED = SIGNATURE_HEADERS | PER_CONNECTION | {"host", "expect"}
NOT_OF_TABLE = (
    "these keys are for the files of one table, and this is not one of them; the catalog gives "
    "keys for each table"
)
ONLY_UPLOADS = (
    "this endpoint accepts uploads below a table's write.data.path and write.metadata.path, their "
    "removal until they are committed, and no other changes"
)
OWNERS_HEADERS = (
    *("x-amz-acl", "x-amz-grant-", "x-amz-tagging"),
    *("x-amz-object-lock-", "x-amz-website-redirect-location"),
)
"""The beginnings of headers for which S3 needs more rights than to upload: with the server's keys
they could publish a file, or lock it for ever."""
OF_OWNERS = "these keys are for uploads without the header {}: leave it out"
# Repeats a request once if the server has closed the pooled connection; never after an answer.
RETRY = Retry(total=1, connect=0, read=1, redirect=0, status=0, raise_on_redirect=False)


class Buckets(Protocol):
    """What clients read, and may upload to."""

    def canonical(self, address: S3Address) -> S3Address | None:
        """The only spelling of an address, by which rights are decided; None: it has none.

        A bucket, whose key is empty, has one spelling.
        """

    def create(
        self, method: str, address: S3Address, headers: Headers, body: IO[bytes]
    ) -> Response | None:
        """The answer to one of `CREATIONS`; None: there may be an object already, which stays."""

    def forward(
        self, method: str, address: S3Address, headers: Headers, body: IO[bytes] | None
    ) -> Response:
        """The answer to a request that is permitted.

        Args:
            body: the decoded body of an upload, at any position; None: a read, or a removal.
        """

    def stop(self) -> None:
        """Close what is open."""


class S3Proxy:
    """Passes on reads and permitted uploads, and refuses everything else."""

    def __init__(
        self,
        buckets: Buckets,
        uploads: UploadPaths | None = None,
        uncommitted: Uncommitted | None = None,
    ) -> None:
        """Connect when needed.

        Args:
            uploads: where clients may upload; None: nowhere.
            uncommitted: which uploads they may remove or replace; None: they may remove none, and
                an upload may replace anything, as on AWS.
        """
        self._buckets = buckets
        self._uploads = uploads
        self._uncommitted = uncommitted
        self._removals: Removals | None = None
        if uploads and uncommitted:
            self._removals = Removals(uploads, uncommitted, self._remove, buckets.canonical)

    def answer(
        self,
        request: Request,
        address: S3Address,
        *,
        behind: str | None = None,
        permission: Permission | None = None,
    ) -> Response:
        """The answer to a read or an upload; 503 if the S3 behind cannot be reached.

        Args:
            behind: the bucket behind the access point that the address names; None: it names none.
            permission: what the caller may do; None: read everything, and upload.
        """
        real = address.with_bucket(behind) if behind else address
        if request.method in READS:
            if permission is not None and not self._may_read(permission, request, real):
                return _denied(address, NOT_OF_TABLE)
            return self._buckets.forward(request.method, real, request.headers, None)
        if self._uploads is None:
            return _denied(real, READ_ONLY)
        canonical = self._buckets.canonical(real)
        if canonical is None:
            return _denied(address, NO_KEY)
        real, address = canonical, replace(address, key=canonical.key)
        if self._removals and (
            removed := self._removals.answer(request, address, behind, permission)
        ):
            return removed
        if permission is not None and not permission.may_write(real.location):
            return _denied(address, NOT_OF_TABLE)
        if permission is not None and (name := _owners_header(request)):
            return _denied(address, OF_OWNERS.format(name))
        is_copy = bool(request.header("x-amz-copy-source"))  # it reads another object
        if is_copy or not self._uploads.permit(request.method, address):
            return _denied(address, ONLY_UPLOADS)
        try:
            body, headers = decoded_body(request)
        except IncompleteBody as error:
            return s3_error(400, "IncompleteBody", str(error), resource=address.path)
        except ConnectionError:
            raise  # the client has gone
        except OSError as error:
            message = f"the upload cannot be put into a temporary file: {error.strerror}"
            return s3_error(500, "InternalError", message, resource=address.path)
        with body:
            return self._upload(request, address, real, headers, body)

    def _upload(
        self,
        request: Request,
        address: S3Address,
        real: S3Address,
        headers: Headers,
        body: IO[bytes],
    ) -> Response:
        """The answer to an upload that is permitted, unless it would replace a committed file."""
        if operation_of(request.method, real) not in CREATIONS or self._uncommitted is None:
            return self._buckets.forward(request.method, real, headers, body)
        created = self._buckets.create(request.method, real, headers, body)
        if created is not None:
            return created
        try:
            with self._uncommitted({real.location}) as uncommitted:
                if real.location not in uncommitted:
                    return _denied(address, COMMITTED)
                return self._buckets.forward(request.method, real, headers, body)
        except PolynyaError as error:
            return s3_error(503, "SlowDown", str(error), resource=address.path)

    def _may_read(self, permission: Permission, request: Request, real: S3Address) -> bool:
        """Whether a caller may read an object of the S3 behind."""
        canonical = self._buckets.canonical(real)
        return (
            reads_object(request, real)
            and canonical is not None
            # Some kinds of S3 resolve such names to others.
            and not {".", ".."} & {*canonical.key_text.split("/")}
            and permission.may_read(canonical.location)
        )

    def _remove(self, address: S3Address) -> Response:
        return self._buckets.forward("DELETE", address, (), None)

    def stop(self) -> None:
        """Close the connections."""
        self._buckets.stop()


@dataclass(frozen=True, slots=True)
class LakeInS3:
    """The part of S3 that belongs to one of several lakes."""

    proxy: S3Proxy
    bucket: str
    """The bucket of its data, which is behind the access point for its virtual files."""
    locations: tuple[str, ...]
    """What clients read, and may upload to; each with a slash at its end."""
    is_alone: bool
    """Whether no other lake has this bucket."""

    def has(self, address: S3Address) -> bool:
        """Whether a request is about the lake."""
        is_own = self.is_alone and address.bucket == self.bucket
        return is_own or address.location.startswith(self.locations)


class LakesInS3:
    """The S3 of several lakes: each request goes to the proxy of the lake that it is about."""

    def __init__(self, lakes: Sequence[LakeInS3], other: S3Proxy) -> None:
        """`other`: answers requests that are about none of the lakes."""
        self._lakes, self._other = lakes, other

    def answer(
        self,
        request: Request,
        address: S3Address,
        *,
        behind: str | None = None,
        permission: Permission | None = None,
    ) -> Response:
        """As `S3Proxy.answer`; what is behind the access point depends on the lake."""
        for lake in self._lakes:
            if lake.has(address):
                bucket = behind and lake.bucket
                return lake.proxy.answer(request, address, behind=bucket, permission=permission)
        return self._other.answer(request, address, behind=behind, permission=permission)

    def stop(self) -> None:
        """Close the connections."""
        for lake in self._lakes:
            lake.proxy.stop()
        self._other.stop()


class S3Behind:
    """The S3 behind: its answers are passed on unchanged, and so are requests."""

    def __init__(self, upstream: S3Upstream) -> None:
        """Connect when needed."""
        self._upstream = upstream
        self._base_path = urlsplit(upstream.endpoint).path
        timeout = Timeout(connect=5, read=60)
        self._pool = connection_from_url(
            upstream.endpoint, maxsize=32, timeout=timeout, blocksize=PIECE
        )

    def canonical(self, address: S3Address) -> S3Address:
        """As `Buckets.canonical`: in S3 two spellings are two objects."""
        return address

    def create(
        self, method: str, address: S3Address, headers: Headers, body: IO[bytes]
    ) -> Response | None:
        """As `Buckets.create`."""
        # Not by If-None-Match, which some kinds of S3 do not have.
        head = self.forward("HEAD", replace(address, query=""), (), None)
        return self.forward(method, address, headers, body) if head.status == 404 else None

    def forward(
        self, method: str, address: S3Address, headers: Headers, body: IO[bytes] | None
    ) -> Response:
        """As `Buckets.forward`."""
        address = address.unsigned()
        sent = {name: value for name, value in headers if name.lower() not in NOT_FORWARDED}
        amz_headers = {k: v for k, v in sent.items() if k.lower().startswith("x-amz-")}
        try:
            sent |= self._upstream.signature(method, address, amz_headers)
            if body is not None:
                sent["Content-Length"] = str(size_of(body))  # else it is sent in chunks
            response = self._pool.urlopen(
                method,
                self._base_path + address.target,
                body=body,
                headers=sent,
                retries=RETRY,
                redirect=False,
                preload_content=False,
                decode_content=False,
            )
            return _passed_on(method, response)
        except HTTPError as error:
            logger.warning("the S3 at %s does not answer: %s", self._upstream.endpoint, error)
            return _unavailable(address)
        except BotoCoreError as error:
            logger.warning("requests to S3 cannot be signed: %s", error)
            return _unavailable(address)

    def stop(self) -> None:
        """Close the connections."""
        self._pool.close()


def _owners_header(request: Request) -> str:
    """The header of a request that is for owners of the bucket; empty: it has none."""
    names = (name.lower() for name, _ in request.headers)
    return next((name for name in names if name.startswith(OWNERS_HEADERS)), "")


def _denied(address: S3Address, why: str) -> Response:
    return s3_error(403, "AccessDenied", why, resource=address.path)


def _unavailable(address: S3Address) -> Response:
    message = "the S3 behind this endpoint does not answer"
    retry = (("Retry-After", "1"),)
    return s3_error(503, "ServiceUnavailable", message, resource=address.path, headers=retry)


def _passed_on(method: str, response: BaseHTTPResponse) -> Response:
    """The answer of the S3 behind.

    Raises:
        HTTPError: a short answer breaks off.
    """
    headers = tuple(response.headers.items())
    if method == "HEAD" or response.status in (204, 304):
        response.drain_conn()
        return Response(response.status, headers)
    # Each piece of an answer costs two changes of threads.
    if response.length_remaining is not None and response.length_remaining <= PIECE:
        body = response.read(decode_content=False)
        response.release_conn()
        return Response(response.status, headers, body)
    return Response(response.status, headers, _pieces(response))


def _pieces(response: BaseHTTPResponse) -> Iterator[bytes]:
    try:
        yield from response.stream(PIECE, decode_content=False)
    finally:
        response.close()  # after half an answer the connection cannot be used again
