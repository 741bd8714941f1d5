"""The application of `polynya serve`: what it answers at each of its two ports."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Any
from urllib.parse import parse_qs, unquote

from anyio import CapacityLimiter, to_thread
from fastapi import Response as HttpResponse
from polynya.access.caller import ANYBODY, Caller
from polynya.access.policy import Rights
from polynya.catalog.lakes import Lakes, Shared
from polynya.catalog.reader import open_catalog
from polynya.catalog.warehouse import Warehouse
from polynya.catalog.writer import open_writable_catalog
from polynya.ducklake.connection.database import Database
from polynya.http import reading, writing
from polynya.http.application import create_app, observed
from polynya.http.calls import CALLER, Call
from polynya.http.file_by_key import open_files
from polynya.runtime.budget import limited
from polynya.runtime.errors import PolynyaError
from polynya.runtime.isolation import isolating
from polynya.runtime.metrics import function_logger, invocation, spanned, watching
from polynya.runtime.settings import Config
from polynya.storage.aws import DEFAULT_REGION, AwsSettings, Clients
from polynya.storage.object_store import s3_store
from starlette.types import ASGIApp, Receive, Scope, Send

from . import openmetrics
from .access.access import Access, is_for_token
from .access.granted_files import open_granted_files
from .access.settings import AccessSettings
from .builders import LakeFolders, new_builders, new_readers
from .cache_folder import folder_name
from .lakes.lake_files import ALIAS, FolderOfBucket
from .lakes.opened import LocalLake, translate_read_errors
from .messages import Request, Response
from .page.app import LazyPage, lakes_page
from .page.links import LAKES_PATH, Addresses
from .page.login import Login, prevent_caching
from .s3.endpoint import S3Endpoint, VirtualFiles
from .s3.guard import S3Guard
from .s3.local_bucket import CatalogFiles, LocalBucket
from .s3.local_store import local_store
from .s3.proxy import LakeInS3, LakesInS3, S3Behind, S3Proxy, S3Upstream
from .s3.uploads import UncommittedFiles, UploadPaths
from .server.answering import (
    Answering,
    received_body,
    received_in_time,
    request_of,
    send_response,
)
from .server.connections import LIVE_PATH
from .server.hosts import Hosts, is_for_catalog, refused
from .server.proxies import BehindProxies
from .server.request_ids import RequestIds
from .server.turns import Turns

MOST_BESIDE = 2
"""How many files a process generates in advance at the same time."""

THREADS = 16
"""How many requests to the catalog a process answers at the same time, each with a connection."""

LONGEST_FORM = 64 * 1024
"""Bytes of a request for a token, which anybody may send."""
FORM_SECONDS = 10
"""How long these bytes may take."""

CATALOG_SECONDS = 26
FILE_SECONDS = 55
PAGE_SECONDS = 600
"""The time budgets of requests, the first two as on AWS."""


@dataclass(frozen=True, slots=True)
class ServedLake:
    """A lake that is served."""

    opened: LocalLake
    data_path: str
    bucket: str
    """The bucket of its data."""
    uploads: UploadPaths | None
    """Where clients may upload; None: they may not write."""
    catalogs: CatalogFiles
    """The files of the catalogs of all lakes, which may be in the folder of this one."""

    @property
    def local_bucket(self) -> LocalBucket | None:
        """The bucket, if it is a folder of this machine."""
        folder = self.opened.folder
        return LocalBucket(self.bucket, folder, self.catalogs) if folder else None


@dataclass(frozen=True, slots=True)
class Served:
    """What a process needs for its application. It can be pickled if no lake is in a file."""

    settings: Mapping[str, str] = field(repr=False)
    """As in docs/settings.md; they may hold passwords."""
    lakes: Mapping[str, ServedLake]
    are_several: bool
    catalog_uri: str
    s3_uri: str
    """The addresses that clients use."""
    s3_port: int
    """Where the S3 endpoint listens."""
    aws: AwsSettings
    """The endpoints of AWS or of what replaces it: the S3 behind, with the data."""
    supporting_bucket: str
    """The bucket behind the alias of the virtual files, if they are generated on read."""
    virtual_root: str
    """The location of all virtual files, with a slash at its end."""
    cache_folder: Path
    """The folder of the folders of lakes."""
    has_page: bool
    host: str
    allowed_hosts: tuple[str, ...]
    access: AccessSettings | None = None
    """How callers are known; None: everybody may call."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that say who the client is."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why other lakes are not served, by their names."""

    def __call__(self) -> ASGIApp:
        """The application, for the process that runs it."""
        return BehindProxies(RequestIds(Application(self), self.s3_port), self.trusted_proxies)

    @property
    def is_object_lambda(self) -> bool:
        """Whether metadata files are generated when they are read."""
        return self.settings["DELIVERY"] == "object-lambda"

    @property
    def cache_names(self) -> dict[str, str]:
        """The names of the folders for what is generated, by the names of lakes."""
        return {
            name: folder_name(
                name, lake.opened.name_of_catalog, lake.opened.metadata_schema, lake.data_path
            )
            for name, lake in self.lakes.items()
        }

    @property
    def s3_endpoint(self) -> str | None:
        """The S3 behind; None: AWS."""
        return self.aws.endpoints.get("s3")

    @property
    def folders(self) -> dict[str, LocalBucket]:
        """The buckets that are folders of this machine, by their names."""
        return {
            lake.bucket: bucket for lake in self.lakes.values() if (bucket := lake.local_bucket)
        }

    @property
    def writes(self) -> bool:
        """Whether clients may write to a lake."""
        return any(lake.uploads for lake in self.lakes.values())


@dataclass(frozen=True, slots=True)
class PageCallers:
    """The visitors of the page of a lake, as its catalog knows them."""

    access: Access
    catalogs: Lakes[Any]
    lake: str

    def rights(self, caller: Caller) -> Rights:
        """As `page.app.Callers.rights`."""
        return self.catalogs.access.catalog_rights(caller, self.catalogs.config_name(self.lake))

    def reader_token(self, caller: Caller) -> str:
        """As `page.app.Callers.reader_token`."""
        return self.access.sessions.reader_token(caller)


class Application:
    """An ASGI application for two ports: the catalog and the page, and S3."""

    def __init__(self, served: Served) -> None:
        """No lake is opened before it is needed."""
        self._served = served
        self._s3_port = served.s3_port
        self._hosts = Hosts.from_names([served.host, *served.allowed_hosts])
        self._only = None if served.are_several else next(iter(served.lakes))
        self._mirrors = {
            name: lake.opened.mirror for name, lake in served.lakes.items() if lake.opened.mirror
        }
        self._uncommitted = {
            name: _uncommitted(lake) for name, lake in served.lakes.items() if lake.uploads
        }
        self._access = Access(served.access, served.catalog_uri) if served.access else None
        self._login = None
        if self._access is not None and served.has_page:
            self._login = Login(self._access, served.catalog_uri)
        cached = LakeFolders(served.cache_folder, served.cache_names)
        clients = Clients(served.aws)
        builders = new_builders(
            served.settings,
            served.cache_folder,
            served.cache_names,
            served.folders,
            served.aws,
        )
        self._shared = Shared(
            THREADS,
            cached.cache,
            local_store(served.folders, s3_store(clients)),
            builders.build,
            self._run_soon,
            cached.store,
            clients,
            *((self._access.vending, self._access.client_properties) if self._access else ()),
        )
        self._readers, self._beside = new_readers(), BoundedSemaphore(MOST_BESIDE)
        self._limiter: CapacityLimiter | None = None
        config = Config.from_env(served.settings)
        self._catalogs = Lakes(config, open_catalog, environ=served.settings, shared=self._shared)
        self._catalog = Turns(observed(self._new_catalog(config)), cached.leases)
        self._metrics = openmetrics.OpenMetrics({n: m.age for n, m in self._mirrors.items()})
        self._own_answers = {openmetrics.PATH: self._metrics_text, LIVE_PATH: self._live}
        self._page = self._new_page() if served.has_page else None
        self._s3 = Answering(self._new_s3())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        with isolating(self._readers.call), watching(self._metrics):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        port = scope["server"][1]
        if port == self._s3_port:
            await self._s3(scope, receive, send)
            return
        receive = received_in_time(receive)
        body = received_body(scope, receive, LONGEST_FORM)
        request = request_of(scope, body)
        if refusal := self._hosts.refusal(request, port):
            await send_response(scope, receive, send, refused(request, refusal))
            return
        if self._access and request.path != LIVE_PATH:
            is_for_people = self._login is not None and self._is_for_page(request)
            if is_for_token(request) or (is_for_people and request.method == "POST"):
                await body.receive(FORM_SECONDS)
            admit = self._login.admit if self._login and is_for_people else self._access.admit
            answer = await to_thread.run_sync(admit, request)
            if isinstance(answer, Response):
                await send_response(scope, receive, send, answer)
                return
            scope[CALLER], send = answer, self._access.recording(request, scope, answer, send)
            send = prevent_caching(send) if is_for_people else send
        else:
            scope[CALLER] = ANYBODY
        if request.method == "GET" and (own := self._own_answers.get(request.path)):
            response = await to_thread.run_sync(own, scope[CALLER])
            await send_response(scope, receive, send, response)
        else:
            is_for_page = self._page is not None and self._is_for_page(request)
            failure = await to_thread.run_sync(self._refresh, request) if self._mirrors else None
            # The page itself says how old the state is that it shows.
            if failure and not is_for_page:
                await send_response(scope, receive, send, _refusal(failure))
                return
            with invocation(), spanned(dict(request.headers)):
                if self._page is None or not is_for_page:
                    with limited(CATALOG_SECONDS):
                        await self._catalog(scope, receive, send)
                else:
                    with limited(PAGE_SECONDS):
                        await self._page(scope, receive, send)

    def _is_for_page(self, request: Request) -> bool:
        """Whether the page answers a request, if there is one."""
        return not is_for_catalog(request) and request.path not in self._own_answers

    def _live(self, caller: Caller) -> Response:
        return Response(200, (("Content-Type", "text/plain"),), b"ok\n")

    def _metrics_text(self, caller: Caller) -> Response:
        text = self._metrics.text(partial(self._sees, caller))
        return Response(200, (("Content-Type", openmetrics.CONTENT_TYPE),), text)

    def _sees(self, caller: Caller, lake: str) -> bool:
        """Whether a caller has rights in a lake."""
        catalogs = self._catalogs
        if not catalogs.are_several and self._access is None:
            return True
        try:
            return bool(catalogs.access.catalog_rights(caller, catalogs.config_name(lake)).tables)
        except PolynyaError:
            return False

    def _new_catalog(self, config: Config) -> ASGIApp:
        settings, shared = self._served.settings, self._shared
        groups = [reading.operations(lambda: self._catalogs)]
        if self._served.writes:
            writables = Lakes(
                config, open_writable_catalog, environ=settings, commits=True, shared=shared
            )
            for name, mirror in self._mirrors.items():
                # Before PostgreSQL's COMMIT, so that the file is never behind what a reader has
                # seen.
                writables.named(name).database.before_commit = mirror.write_back
            operations = writing.operations(lambda: writables)
            groups.insert(0, operations._replace(around=self._committing))
        logger, longest = function_logger("polynya"), config.request_mb * 1024**2
        return create_app(logger, *groups, run=self._run_in_thread, longest_body=longest)

    async def _run_in_thread(self, answer: Callable[[], HttpResponse]) -> HttpResponse:
        # A limiter belongs to the event loop that runs.
        self._limiter = self._limiter or CapacityLimiter(THREADS)
        return await to_thread.run_sync(answer, limiter=self._limiter)

    def _run_soon(self, work: Callable[[], object]) -> None:
        """Run work beside the requests, unless too much is under way: then a request will do it."""
        if not self._beside.acquire(blocking=False):
            return

        def run() -> None:
            try:
                with limited(FILE_SECONDS):
                    work()
            finally:
                self._beside.release()

        try:
            # A daemon: the server does not wait for it when it ends.
            Thread(target=copy_context().run, args=(run,), name="beside", daemon=True).start()
        except RuntimeError:  # there can be no more threads
            self._beside.release()

    @contextmanager
    def _committing(self, call: Call) -> Iterator[None]:
        """Lock a lake in a file for the block, in which a request writes to it."""
        name = self._only or Warehouse.parse_prefix(call.prefix).name
        with ExitStack() as stack:
            if name in self._uncommitted and (mirror := self._mirrors.get(name)) is not None:
                # The commit has the file for itself.
                stack.enter_context(translate_read_errors(mirror.name))
                stack.enter_context(mirror.writing())
            yield

    def _refresh(self, request: Request) -> PolynyaError | None:
        """Copy what has changed in the file of the lake that a request is about; returns why
        that is not possible."""
        name = self._only or lake_of_path(request.path, request.query)
        if (mirror := self._mirrors.get(name)) is None:
            return None
        mirror.refresh_if_possible()
        return mirror.failure()

    def _new_page(self) -> ASGIApp:
        served, objects, pages = self._served, self._shared.objects, dict[str, LazyPage]()
        for name, lake in served.lakes.items():
            addresses = Addresses(
                catalog_uri=served.catalog_uri,
                s3_endpoint=served.s3_uri,
                warehouse=name,
                delivery=served.settings["DELIVERY"],
                writes=lake.uploads is not None,
                # The folder is of interest only on this machine.
                folder="" if self._access else str(lake.opened.folder or ""),
                lake=name if served.are_several else lake.opened.name,
                has_tokens=self._access is not None,
            )
            # Native DuckDB reads a folder of this machine from the port of S3, as clients do.
            endpoint = served.s3_uri if lake.opened.folder else served.s3_endpoint
            opened = replace(lake.opened, s3_endpoint=endpoint)
            base = f"/{LAKES_PATH}/{name}" if served.are_several else ""
            callers = None
            if self._access is not None:
                callers = PageCallers(self._access, self._catalogs, name)
            pages[name] = LazyPage(addresses, opened, served.settings, objects, base, callers)
        return (
            lakes_page(pages, served.failures) if served.are_several else pages[next(iter(pages))]
        )

    def _new_s3(self) -> S3Endpoint:
        served = self._served
        virtual = None
        if served.is_object_lambda:
            config = Config.from_env(served.settings)
            files = Lakes(config, open_files, environ=served.settings, shared=self._shared)
            virtual = VirtualFiles(ALIAS, served.supporting_bucket, files, FILE_SECONDS)
        aws = served.aws
        upstream = S3Upstream(served.s3_endpoint, aws.region or DEFAULT_REGION, aws.keys)
        buckets = self._several_in_s3(upstream) if served.are_several else self._one_in_s3(upstream)
        guard = None
        if self._access is not None:
            config = Config.from_env(served.settings)
            granted = Lakes(
                config, open_granted_files, environ=served.settings, shared=self._shared
            )
            access = self._access
            guard = S3Guard(access.keys, granted, access.audit, access.rate)
        return S3Endpoint(buckets, virtual, served.catalog_uri, self._hosts, self._s3_port, guard)

    def _one_in_s3(self, upstream: S3Upstream) -> S3Proxy:
        return self._proxy(self._only or "", upstream)

    def _proxy(self, name: str, upstream: S3Upstream) -> S3Proxy:
        lake, uncommitted = self._served.lakes[name], self._uncommitted.get(name)
        buckets = lake.local_bucket or S3Behind(upstream)
        return S3Proxy(buckets, lake.uploads, uncommitted.claim if uncommitted else None)

    def _several_in_s3(self, upstream: S3Upstream) -> LakesInS3:
        buckets = [lake.bucket for lake in self._served.lakes.values()]
        lakes = []
        for name, lake in self._served.lakes.items():
            data = f"{lake.data_path.rstrip('/')}/"
            staging = (lake.uploads.staging,) if lake.uploads else ()
            virtual = f"{self._served.virtual_root}{name}/"
            is_alone = buckets.count(lake.bucket) == 1
            proxy = self._proxy(name, upstream)
            lakes.append(LakeInS3(proxy, lake.bucket, (data, virtual, *staging), is_alone))
        return LakesInS3(lakes, S3Proxy(S3Behind(upstream)))


def _refusal(error: PolynyaError) -> Response:
    headers = (("Content-Type", "application/json"), ("Retry-After", "1"))
    return Response(error.status, headers, json.dumps({"error": error.rest_model()}).encode())


def lake_of_path(path: str, query: str) -> str:
    """The name of the lake that a path of the catalog, or of the page, is about; else empty."""
    match path.split("/"):
        case ["", "v1", "config"]:
            return Warehouse.parse_name(_warehouse(query)).name
        case ["", "health"]:
            return _warehouse(query)
        case [_, "v1", prefix, *_]:
            return Warehouse.parse_prefix(unquote(prefix)).name
        case [_, first, name, *_] if first == LAKES_PATH:
            return name
        case _:  # also of `OPTIONS *`, which has no slash
            return ""


def _warehouse(query: str) -> str:
    return parse_qs(query).get("warehouse", [""])[0]


def _uncommitted(lake: ServedLake) -> UncommittedFiles:
    """Finds the files of a lake that no commit has named."""
    opened = lake.opened
    database = Database(opened.database, opened.metadata_schema)
    if opened.mirror is None or opened.folder is None:
        return UncommittedFiles(database)
    mirror, folder = opened.mirror, FolderOfBucket(lake.bucket, opened.folder)

    def refresh() -> None:
        with translate_read_errors(mirror.name):
            mirror.refresh()

    return UncommittedFiles(database, folder.identity, refresh)
