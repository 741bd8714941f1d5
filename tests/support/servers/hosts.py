"""The application in each of its hosts, on lakes that are equal.

The hosts are AWS (tests/aws: API Gateway and S3 Object Lambda invoke the functions of functions/
with events), this process (the ASGI application, and `read_file`) and the command `polynya serve`.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from aws_lambda_powertools import Logger
from polynya.access.authorized_lake import AuthorizedFiles
from polynya.access.caller import ANYBODY
from polynya.catalog.lakes import Lakes, Shared
from polynya.catalog.reader import open_catalog
from polynya.catalog.writer import open_writable_catalog
from polynya.http import reading, writing
from polynya.http.application import create_app
from polynya.http.calls import CALLER
from polynya.http.file_by_key import FileRequest, open_files, read_file
from polynya.runtime.errors import PolynyaError
from polynya.runtime.settings import Config
from polynya_local.clients.native import Lake
from polynya_local.lakes.lake_files import ALIAS
from polynya_local.processes.serving import Bridge, serving
from polynya_local.writes import everybody_may_write
from starlette.types import ASGIApp

from tests.support.servers.in_process import standing_in


class Answer(NamedTuple):
    """What a host gives; headers that it adds by itself are left out."""

    status: int
    headers: dict[str, str]
    body: bytes


Ask = Callable[[str, str, bytes, Mapping[str, str]], Answer]
"""Sends a request: the method, the target, the body and the headers."""


class Host(NamedTuple):
    """How a host is asked."""

    ask: Ask
    """For the catalog."""
    ask_file: Ask
    """For a virtual file, whose key is the target."""


HOST_HEADERS = {"connection", "date", "transfer-encoding", "x-request-id"}
FILE_HEADERS = {"accept-ranges", "content-length", "content-range", "content-type", "etag"}
S3_ERROR = re.compile(rb"<Code>(.+)</Code><Message>(.+)</Message>", re.DOTALL)


def catalog_answer(method: str, status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The answer of the application."""
    # A function and an ASGI application give an answer to HEAD a body that HTTP does not send.
    body = b"" if method == "HEAD" else body
    # Mangum gives each answer a type, also one without a body.
    added = HOST_HEADERS | (set() if body else {"content-type"})
    lower = {name.lower(): value for name, value in headers.items()}
    return Answer(status, {n: v for n, v in lower.items() if n not in added}, body)


def file_answer(status: int, headers: Mapping[str, str], body: bytes) -> Answer:
    """The answer to GET or HEAD of a file, or `code: message` of an error."""
    if status < 300:
        lower = {name.lower(): value for name, value in headers.items()}
        return Answer(status, {n: v for n, v in lower.items() if n in FILE_HEADERS}, body)
    error = S3_ERROR.search(body)
    return Answer(status, {}, b": ".join(error.groups()) if error else body)


def http_client(uri: str) -> Ask:
    """Sends requests to a server."""

    def ask(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        with closing(HTTPConnection(urlsplit(uri).netloc, timeout=60)) as connection:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    return ask


def listening_host(catalog_uri: str, s3_uri: str) -> Host:
    """A host that listens."""
    catalog, s3 = http_client(catalog_uri), http_client(s3_uri)

    def ask(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return catalog_answer(method, *catalog(method, target, body, headers))

    def ask_file(method: str, key: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return file_answer(*s3(method, f"/{ALIAS}/{quote(key)}", body, headers))

    return Host(ask, ask_file)


def asgi_client(app: ASGIApp) -> Ask:
    """Calls an ASGI application."""

    def ask(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        path, _, query = target.partition("?")
        sent = {"host": "localhost", "content-length": str(len(body)), **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            CALLER: ANYBODY,
        }
        messages = []

        async def receive():
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message) -> None:
            messages.append(message)

        with closing(asyncio.new_event_loop()) as loop:
            loop.run_until_complete(app(scope, receive, send))
        given = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        pieces = b"".join(message.get("body", b"") for message in messages[1:])
        return catalog_answer(method, messages[0]["status"], given, pieces)

    return ask


def file_client(lakes: Lakes[AuthorizedFiles]) -> Ask:
    """Calls `read_file`."""

    def ask_file(method: str, key: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        is_head = method == "HEAD"
        request = FileRequest(
            key,
            ANYBODY,
            # That of HEAD is not for the function to know: hosts leave it out.
            range=None if is_head else headers.get("range"),
            if_match=headers.get("if-match"),
            if_none_match=headers.get("if-none-match"),
            is_head=is_head,
        )
        try:
            file = read_file(lakes, request)
        except PolynyaError as error:
            has_body = error.status >= 400 and not is_head
            return Answer(error.status, {}, f"{error.code}: {error}".encode() if has_body else b"")
        whole = file.body if isinstance(file.body, bytes) else b"".join(file.body)
        return file_answer(file.status, file.headers, whole)

    return ask_file


def policy_of(lake: Lake) -> str:
    """What everybody may do with `polynya serve --writes`."""
    return everybody_may_write(f"{lake.data_path}/")


def settings_of(lake: Lake, **values: str) -> dict[str, str]:
    """The settings of an application on a lake; `values` add to the usual ones or replace them."""
    return {
        "DATABASE_URL": lake.database.url,
        "METADATA_SCHEMA": lake.metadata_schema,
        "DELIVERY": "object-lambda",
        "CLIENTS": "all",
        "VIRTUAL_BUCKET": ALIAS,
        "WRITES": "yes",
        "AUTHORIZATION": policy_of(lake),
        **values,
    }


def application(
    settings: dict[str, str], stack: ExitStack, shared: Shared | None = None
) -> ASGIApp:
    """All operations on the lake of these settings."""
    config, shared = Config.from_env(settings), shared or Shared()
    catalogs = Lakes(config, open_catalog, environ=settings, shared=shared)
    writables = Lakes(config, open_writable_catalog, environ=settings, commits=True, shared=shared)
    stack.callback(catalogs.close)
    stack.callback(writables.close)
    groups = writing.operations(lambda: writables), reading.operations(lambda: catalogs)
    return create_app(Logger(level="CRITICAL"), *groups)


class Hosts(NamedTuple):
    """The hosts, each with a lake of its own."""

    aws: Host
    process: Host
    server: Host
    bridge: Bridge
    """The addresses of the server."""

    @property
    def all(self) -> tuple[Host, ...]:
        """The hosts."""
        return self.aws, self.process, self.server


@contextmanager
def hosts_of(lakes: Sequence[Lake], s3_endpoint: str) -> Iterator[Hosts]:
    """Serve three lakes, which are equal and may be written, for as long as the block lasts."""
    aws, process, server = lakes
    with ExitStack() as stack:
        # First: its settings are those of the command, and not the functions' in this environment.
        bridge = stack.enter_context(
            serving(server.database.url, s3_endpoint, delivery="object-lambda", writes=True)
        )
        values = {"alias": ALIAS, "CLIENTS": "all", "AUTHORIZATION": policy_of(aws)}
        stand_in = stack.enter_context(standing_in(aws, s3_endpoint, writes=True, **values))
        settings = settings_of(process, OBJECT_LAMBDA_ENDPOINT=bridge.s3_endpoint)
        files = Lakes(Config.from_env(settings), open_files, environ=settings)
        stack.callback(files.close)
        yield Hosts(
            listening_host(stand_in.api_uri, stand_in.s3_uri),
            Host(asgi_client(application(settings, stack)), file_client(files)),
            listening_host(bridge.catalog_uri, bridge.s3_endpoint),
            bridge,
        )
