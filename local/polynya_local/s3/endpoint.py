"""The S3 endpoint of the server: virtual files are generated, everything else is in a bucket."""

from dataclasses import dataclass, replace
from time import perf_counter

from polynya.access.authorized_lake import AuthorizedFiles
from polynya.access.caller import ANYBODY, Caller
from polynya.catalog.lakes import Lakes
from polynya.http.file_by_key import FileRequest, read_file
from polynya.runtime.budget import limited
from polynya.runtime.errors import PolynyaError, RequestTimeout, log_fields
from polynya.runtime.metrics import (
    count,
    count_refusal,
    function_logger,
    invocation,
    observe,
    spanned,
)
from polynya.virtual_files.names import is_virtual

from ..access.granted_files import Permission
from ..messages import Request, Response
from ..server.hosts import CATALOG_PATH, Hosts, refused
from .guard import S3Guard
from .proxy import LakesInS3, S3Proxy
from .requests import S3Address, misdirected, operation, s3_error

logger = function_logger("s3")

NO_PAGE = (
    ("Content-Security-Policy", "sandbox"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Disposition", "attachment"),
)

OPERATIONS = {"GetObject": "getObject", "HeadObject": "headObject"}
"""The operations of virtual files, as metrics name them."""


@dataclass(frozen=True, slots=True)
class VirtualFiles:
    """The virtual files, which are generated when they are read."""

    alias: str
    """The bucket in which clients find them."""
    bucket: str
    """The bucket that has all other keys of the alias."""
    lakes: Lakes[AuthorizedFiles]
    seconds: float
    """The time budget of a request."""

    def has(self, key: str) -> bool:
        """Whether a key is that of a virtual file."""
        return is_virtual(key, self.lakes.config.files.virtual_prefix)

    def answer(self, called: str, request: Request, address: S3Address, caller: Caller) -> Response:
        """The answer to GetObject or HeadObject."""
        started, status = perf_counter(), 500
        with invocation(), spanned(dict(request.headers)), limited(self.seconds):
            try:
                response = self._answer(called, request, address, caller)
                status = response.status
                return response
            finally:
                seconds = perf_counter() - started
                observe("Requests", seconds, operation=OPERATIONS[called], status=str(status))

    def _answer(
        self, called: str, request: Request, address: S3Address, caller: Caller
    ) -> Response:
        is_get = called == "GetObject"
        parameters = {name.lower(): value for name, value in address.parameters().items()}
        file_request = FileRequest(
            address.key_text,
            caller,
            range=(request.header("range") or parameters.get("range")) if is_get else None,
            if_match=request.header("if-match") or None,
            if_none_match=request.header("if-none-match") or None,
            is_head=not is_get,
        )
        try:
            file = read_file(self.lakes, file_request)
        except PolynyaError as error:
            return self._failure(error, address)
        except Exception as error:
            logger.error("unexpected error", path=address.path, **log_fields(error))
            return self._failure(PolynyaError("an unexpected error; see the log"), address)
        if is_get:
            count("BytesServed", file.length)
        return Response(file.status, tuple(file.headers.items()), file.body)

    def _failure(self, error: PolynyaError, address: S3Address) -> Response:
        if error.status < 400:
            return Response(error.status)  # NotModified
        count_refusal(error.code)
        if error.status >= 500:
            logger.error("refused", reason=str(error), path=address.path)
        retry = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
        message = str(error)
        return s3_error(error.status, error.code, message, resource=address.path, headers=retry)


@dataclass(frozen=True, slots=True)
class S3Endpoint:
    """Answers all requests to the port of S3."""

    buckets: S3Proxy | LakesInS3
    virtual: VirtualFiles | None
    """None: virtual files are stored in a bucket."""
    catalog_uri: str
    hosts: Hosts
    port: int
    guard: S3Guard | None = None
    """Verifies who sends a request; None: everybody may read everything."""

    def __call__(self, request: Request) -> Response:
        """The answer to a request."""
        if refusal := self.hosts.refusal(request, self.port, is_s3=True):
            return misdirected(refusal)
        address = S3Address.from_request(request)
        if address.bucket == CATALOG_PATH.strip("/"):  # too short for a bucket's name
            reason = (
                f"This is the endpoint of S3. The Iceberg REST catalog is at {self.catalog_uri}: "
                "give clients that as the URI of the catalog, and this one as that of S3."
            )
            return refused(request, reason)
        if self.guard is None:
            return no_page(self._answer(request, address))
        return no_page(self.guard.answer(request, address, self._answer))

    def _answer(
        self, request: Request, address: S3Address, permission: Permission | None = None
    ) -> Response:
        try:
            return self._object(request, address, permission)
        except RequestTimeout as error:
            return s3_error(400, error.code, str(error), resource=address.path)

    def _object(
        self, request: Request, address: S3Address, permission: Permission | None
    ) -> Response:
        virtual, caller = self.virtual, permission.caller if permission else ANYBODY
        if virtual is None or address.bucket != virtual.alias:
            return self.buckets.answer(request, address, permission=permission)
        called = operation(request, address)
        if called in OPERATIONS and virtual.has(address.key_text):
            return virtual.answer(called, request, address, caller)
        behind = virtual.bucket
        return self.buckets.answer(request, address, behind=behind, permission=permission)


def no_page(response: Response) -> Response:
    """An answer of S3 that no browser shows or runs, whatever content and type are stored."""
    # Otherwise a stored page would have this origin, and could read all answers of S3.
    names = {name.lower() for name, _ in NO_PAGE}
    headers = (header for header in response.headers if header[0].lower() not in names)
    return replace(response, headers=(*headers, *NO_PAGE))
