"""API Gateway, S3 and S3 Object Lambda on one machine.

`StandIn` has the servers. `Hosts` says which requests they answer: not those of other sites' pages.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from types import TracebackType
from typing import Self

from .api_gateway import READING, WRITING, ApiGateway
from .confinement import Confinement
from .http_server import HOST, Answer, HttpServer, Request, Response, to_text
from .lambda_function import Handler, InstanceOf, LambdaFunction
from .local_bucket import LocalBucket
from .object_lambda import ObjectLambda
from .s3_proxy import LakesInS3, S3Behind, S3Proxy, S3Upstream
from .s3_requests import S3Address, s3_error
from .uploads import Uncommitted, UploadPaths

MISDIRECTED = 421
"""The status of requests for another server (RFC 9110, section 15.5.20)."""
HTTP_PORT = 80
LOOPBACK = re.compile(r"(?:[a-z0-9._-]+\.)?(?:localhost\.?|127(?:\.[0-9]{1,3}){3})|\[::1\]")
"""With a bucket before it, as in `<bucket>.localhost`: RFC 6761, and what S3 clients make."""
HOST_HEADER = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
OTHER_SITES = frozenset(("cross-site", "same-site"))
"""Values of Sec-Fetch-Site for pages of another origin."""
OPAQUE = "null"
"""The header Origin of a page without a name; also of our own page, which sends no referrer."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that the servers of this process are known by."""

    allowed: frozenset[str]
    """`name` or `name:port` in lower case, besides loopback names and addresses."""

    @classmethod
    def of(cls, allowed: Iterable[str]) -> "Hosts":
        """The hosts that the user allows."""
        return cls(frozenset(host.strip().lower() for host in allowed))

    def refusal(self, request: Request, port: int, *, is_s3: bool = False) -> str | None:
        """Why a request is not answered, in a sentence; None: it is.

        Args:
            port: the port that the request has come to.
            is_s3: the request is for S3, which is for programs: no page may read from it.
        """
        host = to_text(request.header("host")).strip().lower()
        # A page of any site can name this machine as its own address (DNS rebinding): the browser
        # then sends requests here, and gives the page the rows in the answers. Such a request has
        # the site's name in its header Host, which no browser leaves out. A name below `localhost`,
        # or an address, is none that a site can have.
        if host and not self._is_known(host, port):
            return (
                f"This server is not known as {host[:200]}. It answers to 127.0.0.1:{port} and "
                f"localhost:{port}; polynya serve --allow-host {host[:200]} adds this one."
            )
        if is_s3 and request.header("sec-fetch-mode") == "navigate":
            return "This is S3, for clients of the catalog: a browser shows nothing from here."
        # A page can also send requests to this machine's own names. It cannot read the answers, but
        # it could change something. Browsers say in Sec-Fetch-Site and Origin where a request comes
        # from (older ones, and requests to a name without TLS, have only Origin); other clients
        # send neither. A link of another site may lead to our page: it sends no Origin.
        changes = is_s3 or request.method not in SAFE_METHODS
        is_of_another = changes and request.header("sec-fetch-site") in OTHER_SITES
        if is_of_another or self._has_other_origin(request, host):
            return "A page of another site may neither read nor change anything here."
        return None

    def _has_other_origin(self, request: Request, host: str) -> bool:
        """Whether the header Origin names another site than the header Host."""
        origin = request.header("origin").strip().lower()
        is_own = origin == OPAQUE and request.header("sec-fetch-site") == "same-origin"
        # Behind a proxy that gives this server another name, the user allows that of the page.
        hosts = {"", host, *self.allowed}
        return not is_own and (origin == OPAQUE or origin.rpartition("://")[2] not in hosts)

    def _is_known(self, host: str, port: int) -> bool:
        match = HOST_HEADER.fullmatch(host)
        if match is None:
            return False
        is_own_port = int(match["port"] or HTTP_PORT) == port
        is_loopback = LOOPBACK.fullmatch(match["name"]) is not None and is_own_port
        return is_loopback or host in self.allowed or match["name"] in self.allowed


# As in template.yaml: an HTTP API waits 30 s for its function, S3 Object Lambda 60 s.
REST_TIMEOUT_S = 29
OBJECT_LAMBDA_TIMEOUT_S = 60
PAGE_TIMEOUT_S = 600

CATALOG_PATH = "/v1/"
"""How the paths of the catalog begin; others are the page's, if there is one."""

NO_PAGE = (
    ("Content-Security-Policy", "sandbox"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Disposition", "attachment"),
)

HEALTH_PATH = "/health"
"""The one path of the catalog that begins otherwise."""


class StandIn:
    """Two servers, on the loopback interface by default: one for the catalog, one for all of S3.

    On the S3 server the bucket name `alias` is an Object Lambda access point before
    `supporting_bucket`; every other bucket is the S3 behind (`s3_endpoint`, AWS's own when None),
    asked with the credentials of this process, read-only except for `uploads`; or there is one
    other bucket, a folder of this machine (`local_bucket`). Without an alias there is no Object
    Lambda. The constructor binds the ports, so that `s3_uri` is known before the handlers are
    imported.

    Differences from AWS: signatures and permissions of clients are not checked (those of the
    functions in S3 are, if `start` gets `confinements`); a function is not ended at its timeout (a
    warning is logged); each function has one instance, to which callers queue; the sizes of
    requests and headers are not limited; ranges work without `AllowedFeatures`.
    """

    def __init__(
        self,
        *,
        alias: str | None,
        supporting_bucket: str | None,
        s3_endpoint: str | None,
        region: str,
        port: int = 0,
        host: str = HOST,
        keep_encoded_path: bool = False,
        uploads: UploadPaths | None = None,
        uncommitted: Uncommitted | None = None,
        local_bucket: LocalBucket | None = None,
        lakes: Callable[[S3Upstream], LakesInS3] | None = None,
        allowed_hosts: Iterable[str] = (),
        servers: tuple[HttpServer, HttpServer] | None = None,
    ) -> None:
        """Bind both ports: `port` and the next one, or any two if it is 0.

        Args:
            host: the address to listen on.
            servers: what `bound` has given for port and host; None: they are bound now.
            alias: the bucket name of the access point; None: there is none.
            supporting_bucket: the bucket before which the access point is.
            s3_endpoint: the S3 behind; None: AWS.
            keep_encoded_path: see ApiGateway.
            uploads: where clients may upload; None: nowhere.
            uncommitted: which uploads they may remove again; None: none, as on AWS.
            local_bucket: instead of an S3 behind; None: there is one.
            lakes: makes the S3 of several lakes, instead of the bucket, uploads and removals of
                one; None: there is one.
            allowed_hosts: what the header Host may be, besides this machine's own names.

        Raises:
            OSError: a port is taken.
        """
        self._alias = alias
        self._bucket = supporting_bucket or alias or ""
        self._region = region
        # The functions, too, read S3 at the address.
        own = [] if host == HOST else [host]
        self._hosts = Hosts.of([*own, *allowed_hosts])
        self._keep_encoded_path = keep_encoded_path
        self._functions: list[LambdaFunction] = []
        self._confinements: Mapping[str, Confinement] = {}
        self._object_lambda: ObjectLambda | None = None
        self._instance_of: InstanceOf = lambda event: ""
        self._api, self._s3 = servers or bound(port, host)
        # The functions read a local bucket as clients do, from this server.
        self._upstream = S3Upstream(self._s3.uri if local_bucket else s3_endpoint, region)
        self._buckets: S3Proxy | LakesInS3 = (
            lakes(self._upstream)
            if lakes
            else S3Proxy(local_bucket or S3Behind(self._upstream), uploads, uncommitted)
        )

    @property
    def api_uri(self) -> str:
        """The URI of the catalog."""
        return self._api.uri

    @property
    def s3_uri(self) -> str:
        """The endpoint of S3."""
        return self._s3.uri

    def start(
        self,
        rest_handler: Handler,
        object_lambda_handler: Handler | None = None,
        confinements: Mapping[str, Confinement] | None = None,
        *,
        commits_handler: Handler | None = None,
        page_handler: Handler | None = None,
        before_each: Callable[[Request], Response | None] | None = None,
        instance_of: InstanceOf = lambda event: "",
        other_paths: Mapping[str, Callable[[], Response]] | None = None,
    ) -> None:
        """Serve in threads; each handler is always called in the same thread.

        Args:
            page_handler: gets the requests that are not for the catalog; None: the catalog does.
            other_paths: answers to GET at paths that are neither the catalog's nor the page's.
            before_each: called before each request to the catalog or the page, in the thread of its
                connection; what it gives is the answer of the catalog, and not of the page.
            instance_of: names the instance of a function that gets an event.
            commits_handler: gets the requests that write, by `routes`; None: the one of the
                catalog does.
            confinements: the packages and permissions of each function, by its name; a function
                without one has those of this process.

        Raises:
            ValueError: there is an alias, but no handler for it.
        """
        self._confinements = confinements or {}
        self._instance_of = instance_of
        functions = {READING: self._function(READING, rest_handler, REST_TIMEOUT_S)}
        if commits_handler is not None:
            functions[WRITING] = self._function(WRITING, commits_handler, REST_TIMEOUT_S)
        if self._alias is not None:
            if object_lambda_handler is None:
                raise ValueError("an Object Lambda access point needs a handler")
            function = self._function(
                "object-lambda", object_lambda_handler, OBJECT_LAMBDA_TIMEOUT_S
            )
            self._object_lambda = ObjectLambda(
                function,
                self._upstream,
                self._buckets,
                alias=self._alias,
                bucket=self._bucket,
                region=self._region,
            )
        gateway = ApiGateway(functions, keep_encoded_path=self._keep_encoded_path)
        page = self._page(page_handler) if page_handler is not None else gateway

        def answer(request: Request) -> Response:
            if refusal := self._hosts.refusal(request, self._api.server_port):
                return refused(request, refusal)
            if other_paths and request.method == "GET" and request.path in other_paths:
                return other_paths[request.path]()
            instead = before_each(request) if before_each is not None else None
            if not _is_for_catalog(request):
                return page.answer(request)
            return instead or gateway.answer(request)

        self._api.start(answer)
        self._s3.start(self._s3_answer)

    def stop(self) -> None:
        """Finish the answers under way, free the ports and end all threads."""
        self._api.stop()
        for function in self._functions:
            function.stop()
        self._functions.clear()
        # After the functions: that of the access point sends its last answer to this server.
        self._s3.stop()
        self._buckets.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _function(self, name: str, handler: Handler, timeout_s: float) -> LambdaFunction:
        function = LambdaFunction(
            name,
            handler,
            region=self._region,
            timeout_s=timeout_s,
            confinement=self._confinements.get(name),
            instance_of=self._instance_of,
        )
        self._functions.append(function)
        return function

    def _page(self, handler: Handler) -> ApiGateway:
        """The page beside the catalog, which nothing on AWS answers for; its paths are kept."""
        function = self._function("page", handler, PAGE_TIMEOUT_S)
        return ApiGateway({READING: function}, keep_encoded_path=True)

    def _s3_answer(self, request: Request) -> Response:
        if refusal := self._hosts.refusal(request, self._s3.server_port, is_s3=True):
            return misdirected(refusal)
        if S3Address.of(request).bucket == CATALOG_PATH.strip("/"):  # too short for a bucket's name
            reason = (
                f"This is the endpoint of S3. The Iceberg REST catalog is at {self.api_uri}: give "
                "clients that as the URI of the catalog, and this one as that of S3."
            )
            return refused(request, reason)
        return no_page(self._object(request))

    def _object(self, request: Request) -> Response:
        if self._object_lambda is not None:
            if (request.method, request.path) == ("POST", "/WriteGetObjectResponse"):
                return self._object_lambda.write_response(request)
            address = S3Address.of(request)
            if address.bucket == self._alias:
                return self._object_lambda.answer(request, address)
        return self._buckets.answer(request, S3Address.of(request))


def bound(port: int, host: str = HOST) -> tuple[HttpServer, HttpServer]:
    """The servers of the catalog and of S3 with their ports bound, which answer nothing yet.

    Raises:
        OSError: a port is taken.
    """
    api = HttpServer(port, host)
    try:
        return api, HttpServer(port + 1 if port else 0, host)
    except OSError:
        api.stop()
        raise


@contextmanager
def loopback(answer: Answer, refused: Callable[[str], Response]) -> Iterator[str]:
    """Answer on a free port of the loopback interface; gives the URI.

    Args:
        refused: the answer to a request that `Hosts` refuses, of the reason.
    """
    server, hosts = HttpServer(0), Hosts.of(())

    def checked(request: Request) -> Response:
        refusal = hosts.refusal(request, server.server_port)
        return refused(refusal) if refusal else answer(request)

    server.start(checked)
    try:
        yield server.uri
    finally:
        server.stop()


def misdirected(reason: str) -> Response:
    """S3's answer to a request that is for another server."""
    return s3_error(MISDIRECTED, "MisdirectedRequest", reason)


def no_page(response: Response) -> Response:
    """An answer of S3 that no browser shows or runs, whatever content and type are stored."""
    # Otherwise a stored page would be one of this origin, and could read all that S3 answers.
    names = {name.lower() for name, _ in NO_PAGE}
    headers = (header for header in response.headers if header[0].lower() not in names)
    return replace(response, headers=(*headers, *NO_PAGE))


def refused(request: Request, reason: str) -> Response:
    """The answer to a request that is for another server, in the form that its client reads."""
    if _is_for_catalog(request):
        error = {"message": reason, "type": "ForbiddenException", "code": MISDIRECTED}
        body, type_ = json.dumps({"error": error}), "application/json"
    else:
        title = "<title>Polynya</title>"
        body = f'<!doctype html><html lang="en">{title}<p>{escape(reason)}</p></html>'
        type_ = "text/html; charset=utf-8"
    policy = ("Content-Security-Policy", "default-src 'none'")
    return Response(MISDIRECTED, (("Content-Type", type_), policy), body.encode())


def _is_for_catalog(request: Request) -> bool:
    return request.path.startswith(CATALOG_PATH) or request.path == HEALTH_PATH
