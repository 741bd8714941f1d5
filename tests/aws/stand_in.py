"""API Gateway, S3 and S3 Object Lambda on one machine.

`StandIn` has the servers. `Hosts` says which requests they answer: not those of other sites' pages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from polynya_local.messages import Answer, Request, Response
from polynya_local.s3.endpoint import no_page
from polynya_local.s3.local_bucket import LocalBucket
from polynya_local.s3.proxy import LakesInS3, S3Behind, S3Proxy, S3Upstream
from polynya_local.s3.requests import S3Address, misdirected
from polynya_local.s3.uploads import Uncommitted, UploadPaths
from polynya_local.server.hosts import CATALOG_PATH, Hosts, refused

from .api_gateway import READING, WRITING, ApiGateway
from .confinement import Confinement
from .http_server import HOST, HttpServer
from .lambda_function import Handler, InstanceOf, LambdaFunction
from .object_lambda import ObjectLambda

# As in template.yaml: an HTTP API waits 30 s for its function, S3 Object Lambda 60 s.
REST_TIMEOUT_S = 29
OBJECT_LAMBDA_TIMEOUT_S = 60


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
        self._hosts = Hosts.from_names([*own, *allowed_hosts])
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
        instance_of: InstanceOf = lambda event: "",
    ) -> None:
        """Serve in threads; each handler is always called in the same thread.

        Args:
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

        def answer(request: Request) -> Response:
            if refusal := self._hosts.refusal(request, self._api.server_port):
                return refused(request, refusal)
            return gateway.answer(request)

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

    def _s3_answer(self, request: Request) -> Response:
        if refusal := self._hosts.refusal(request, self._s3.server_port, is_s3=True):
            return misdirected(refusal)
        if S3Address.from_request(request).bucket == CATALOG_PATH.strip(
            "/"
        ):  # too short for a bucket's name
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
            address = S3Address.from_request(request)
            if address.bucket == self._alias:
                return self._object_lambda.answer(request, address)
        return self._buckets.answer(request, S3Address.from_request(request))


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
    """Answer on a free port of the loopback interface; yields the URI.

    Args:
        refused: the answer to a request that `Hosts` refuses, of the reason.
    """
    server, hosts = HttpServer(0), Hosts.from_names(())

    def checked(request: Request) -> Response:
        refusal = hosts.refusal(request, server.server_port)
        return refused(refusal) if refusal else answer(request)

    server.start(checked)
    try:
        yield server.uri
    finally:
        server.stop()
