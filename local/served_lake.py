"""Runs the Lambda functions on this machine for opened lakes."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TextIO
from urllib.parse import parse_qs, unquote

from polynya.catalog.open_catalog import settings_of_lake, virtual_prefix
from polynya.catalog.warehouse import Warehouse
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya.ducklake.queries.named_objects import newest_file
from polynya.ducklake.rows.objects import Lake
from polynya.mapping.properties import table_properties
from polynya.mapping.tables import check_lake, check_version
from polynya.runtime import metrics
from polynya.runtime.errors import Misconfigured, PolynyaError
from polynya.runtime.settings import FileSettings
from polynya.storage.objects import bucket_and_key
from polynya_pipeline.common.errors import say
from polynya_pipeline.common.options import Delivery

from . import openmetrics, reach
from .lakes.files import ALIAS
from .lakes.mirror import Mirror
from .lakes.opened import LocalLake, not_served, readable_file, use_local_credentials
from .local_aws.confinement import Confinement
from .local_aws.dynamodb import TABLE, dynamodb
from .local_aws.http_server import HttpServer, Request, Response
from .local_aws.lambda_function import Handler
from .local_aws.local_aws import StandIn, loopback, misdirected
from .local_aws.local_bucket import LocalBucket
from .local_aws.s3_proxy import LakeInS3, LakesInS3, S3Behind, S3Proxy, S3Upstream
from .local_aws.s3_requests import S3Address
from .local_aws.uploads import OF_THE_FUNCTION, Uncommitted, UncommittedFiles, UploadPaths
from .page.app import LakesPage, LazyPage
from .page.links import LAKES_PATH, Addresses
from .writes import rule_for_everybody


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command, beside those that say which lake it is."""

    s3_endpoint: str | None
    host: str
    delivery: Delivery
    warehouse: str
    virtual_bucket: str | None
    hidden_types: tuple[str, ...]
    writes: bool
    as_deployed: bool
    page: bool = True
    """Whether people get a page at the address of the catalog."""
    allowed_hosts: tuple[str, ...] = ()
    """What the header Host may be, besides this machine's own names."""

    @property
    def is_object_lambda(self) -> bool:
        """Whether metadata files are generated when they are read."""
        return self.delivery == Delivery.OBJECT_LAMBDA

    def bucket_of_virtual_files(self, data_bucket: str) -> str:
        """The bucket that the locations of metadata files name."""
        return ALIAS if self.is_object_lambda else self.virtual_bucket or data_bucket


Servers = tuple[HttpServer, HttpServer]
"""The servers of the catalog and of S3."""


Settings = Mapping[str, Mapping[str, str]]
"""The settings of each of several lakes by its name, as in the document LAKES."""


@dataclass(frozen=True, slots=True)
class ServedLake:
    """A lake that is served, and what the servers need of it."""

    opened: LocalLake
    lake: Lake
    """As its catalog has it now."""
    uploads: UploadPaths | None
    """Where clients may upload; None: they may not write."""
    uncommitted: UncommittedFiles | None

    @property
    def bucket(self) -> str:
        """The bucket of its data."""
        return _data_bucket(self.lake)

    @property
    def local_bucket(self) -> LocalBucket | None:
        """The bucket, if it is a folder of this machine."""
        folder = self.opened.folder
        return LocalBucket(self.bucket, folder) if folder else None

    @property
    def removable(self) -> Uncommitted | None:
        """Which uploads clients may remove again; None: they may not write."""
        return self.uncommitted.among if self.uncommitted else None

    def in_s3(self, upstream: S3Upstream, virtual: str, *, is_alone: bool) -> LakeInS3:
        """What is in S3 of it.

        Args:
            virtual: the location of its virtual files, with a slash at its end.
            is_alone: no other lake has its bucket.
        """
        data = f"{self.lake.data_path.rstrip('/')}/"
        staging = (self.uploads.staging,) if self.uploads else ()
        buckets = self.local_bucket or S3Behind(upstream)
        proxy = S3Proxy(buckets, self.uploads, self.removable)
        return LakeInS3(proxy, self.bucket, (data, virtual, *staging), is_alone)


def may_write(settings: Mapping[str, str], options: Options) -> bool:
    """Whether clients may write to a lake with these settings of its own."""
    return options.writes and settings.get("writes") != "no"


def serve_lake(opened_lake: LocalLake, options: Options, servers: Servers, stdout: TextIO) -> None:
    """Serve a lake until a signal arrives; print one line of JSON when it is ready.

    Raises:
        PolynyaError: the lake cannot be served with these options.
    """
    serve_lakes({options.warehouse: opened_lake}, None, options, servers, stdout)


def serve_lakes(
    opened: Mapping[str, LocalLake],
    settings: Settings | None,
    options: Options,
    servers: Servers,
    stdout: TextIO,
) -> None:
    """Serve lakes until a signal arrives; print one line of JSON when they are ready.

    Args:
        opened: the lakes by their names.
        settings: of several lakes; None: there is one.

    Raises:
        PolynyaError: one of them cannot be served with these options.
    """
    are_several = settings is not None
    lakes: dict[str, ServedLake] = {}
    for name, lake in opened.items():
        try:
            first_bucket = next(iter(lakes.values())).bucket if lakes else None
            own = settings and settings.get(name, {})
            of_lake = replace(options, writes=may_write(own or {}, options))
            environ = os.environ if own is None else settings_of_lake(name, own, os.environ)
            lakes[name] = _served(lake, first_bucket, of_lake, {**os.environ, **environ})
        except PolynyaError as error:
            if not lakes and name == [*opened][-1]:
                raise
            not_served(name, error)
    first = next(iter(lakes.values()))
    virtual = options.bucket_of_virtual_files(first.bucket)
    stand_in = _stand_in(lakes, are_several, options, virtual, servers)
    with ExitStack() as stack:
        for served in lakes.values():
            if served.uncommitted:
                stack.enter_context(closing(served.uncommitted))
        endpoints = {
            "OBJECT_LAMBDA_ENDPOINT": stand_in.s3_uri,
            "AWS_ENDPOINT_URL_DYNAMODB": stack.enter_context(dynamodb()),
        }
        s3 = options.s3_endpoint
        if any(served.opened.folder for served in lakes.values()):
            use_local_credentials()
            s3 = stack.enter_context(_functions_s3(lakes, options))
        if s3:
            endpoints["AWS_ENDPOINT_URL_S3"] = s3
        _set_environment(first.opened, options, virtual, endpoints)
        os.environ.pop("LAKES", None)  # the command has its lakes from its arguments
        if settings is not None:
            _set_lakes(lakes, settings)
        if options.writes and not os.environ.get("AUTHORIZATION"):
            os.environ["AUTHORIZATION"] = _policy_of_writes(lakes, are_several=are_several)
        # The page ends after the servers, because an answer of it may be under way.
        with _page(stand_in, lakes, are_several, options, s3) as page, stand_in:
            _start(stand_in, lakes, are_several, options, page)
            ended = _ended()
            if page is not None:
                say(f"a page about the lake: {stand_in.api_uri}/")
            ready = _ready(stand_in, options)
            if are_several:
                ready |= {"warehouse": next(iter(lakes)), "warehouses": [*lakes]}
            print(json.dumps(ready), file=stdout, flush=True)
            ended.wait()


def _served(
    opened: LocalLake, first_bucket: str | None, options: Options, settings: Mapping[str, str]
) -> ServedLake:
    """A lake that can be served.

    Args:
        first_bucket: of the data of the first of several lakes; None: it is this lake.
        settings: of the lake, as the functions have them.

    Raises:
        PolynyaError: it cannot be served, or one of its settings is wrong.
    """
    table_properties(FileSettings.from_env(settings).custom_properties)
    _check_delivery(opened, options)
    lake = _read_lake(opened, options)
    if not options.writes:
        return ServedLake(opened, lake, None, None)
    virtual = options.bucket_of_virtual_files(first_bucket or _data_bucket(lake))
    uploads = _uploads(lake, virtual, settings)
    database = Database(opened.database, opened.metadata_schema)
    return ServedLake(opened, lake, uploads, UncommittedFiles(database))


def _functions_s3(lakes: Mapping[str, ServedLake], options: Options) -> AbstractContextManager[str]:
    """The S3 that the functions use if the data of a lake is in a folder; gives the endpoint."""
    upstream = S3Upstream(options.s3_endpoint, os.environ["AWS_DEFAULT_REGION"])
    proxies: dict[str, S3Proxy] = {}
    for served in lakes.values():
        uploads = served.uploads and replace(served.uploads, beside=OF_THE_FUNCTION)
        if bucket := served.local_bucket:
            proxies[served.bucket] = S3Proxy(bucket, uploads)
    other = S3Proxy(S3Behind(upstream))

    def answer(request: Request) -> Response:
        address = S3Address.of(request)
        return proxies.get(address.bucket, other).answer(request, address)

    return loopback(answer, misdirected)


def _policy_of_writes(lakes: Mapping[str, ServedLake], *, are_several: bool) -> str:
    """The policy that permits everything in each lake."""
    # Not all that this process may read in S3: whoever connects would read it then.
    rules = [
        rule_for_everybody([served.uploads.data] if served.uploads else [])
        | ({"lakes": [name]} if are_several else {})
        for name, served in lakes.items()
    ]
    return json.dumps({"rules": rules})


def _set_lakes(lakes: Mapping[str, ServedLake], settings: Settings) -> None:
    """The settings of the functions for several lakes."""
    document = {
        name: {
            **settings[name],
            "database_url": served.opened.database,
            "metadata_schema": served.opened.metadata_schema,
            # A mirror has the data elsewhere than its catalog says.
            "data_path": served.lake.data_path
            if served.opened.is_mirror
            else settings[name].get("data_path", served.lake.data_path),
        }
        for name, served in lakes.items()
    }
    for name in ("DATABASE_URL", "DATABASE_CREDENTIALS"):
        os.environ.pop(name, None)
    os.environ["LAKES"] = json.dumps(document)


def lake_of_event(event: Mapping[str, Any]) -> str:
    """The name of the lake that an event of a function, or of the page, is about; else empty."""
    if "userRequest" in event:
        path = event["userRequest"]["url"].partition("://")[2].partition("/")[2]
        key = path.removeprefix(f"{ALIAS}/").removeprefix(f"{virtual_prefix(os.environ)}/")
        return str(key.partition("/")[0])
    return _lake_of_path(event["rawPath"], event.get("rawQueryString", ""))


def _lake_of_path(path: str, query: str) -> str:
    parts = path.split("/")
    if path in {"/v1/config", "/health"}:
        warehouse = parse_qs(query).get("warehouse", [""])[0]
        return Warehouse.of_name(warehouse).name if path == "/v1/config" else warehouse
    if parts[1] == "v1" and len(parts) > 2:
        return Warehouse.of_prefix(unquote(parts[2])).name
    return parts[2] if parts[1] == LAKES_PATH and len(parts) > 2 else ""


def _start(
    stand_in: StandIn,
    lakes: Mapping[str, ServedLake],
    are_several: bool,
    options: Options,
    page: Handler | None,
) -> None:
    # The functions read their settings when they are first called.
    from polynya_functions.commits import app as commits_app
    from polynya_functions.object_lambda import app as object_lambda_app
    from polynya_functions.rest_catalog import app as rest_catalog_app

    commits: dict[str, Handler] = {}
    for name, served in lakes.items():
        mirror, handler = served.opened.mirror, commits_app.handler
        if served.uncommitted is None:
            continue
        if mirror:
            with readable_file(mirror.name):
                is_new = mirror.set_up_commits()
            if is_new:
                say(f"{mirror.name} has the table polynya_commits now")
            # Before PostgreSQL's COMMIT, so that the file is never behind what a reader has seen.
            opened = commits_app.lakes().named(name)
            opened.database.before_commit = mirror.write_back
            handler = _with_the_file(mirror, handler)
        commits[name] = served.uncommitted.beside(handler)

    # Whatever a request names, it is for the only lake, which refuses other names itself.
    only = None if are_several else next(iter(lakes))

    def commit(event: dict[str, Any], context: Any) -> Any:
        name = lake_of_event(event) if only is None else only
        # Another name gets the function's own answer: there is no such lake.
        return commits.get(name, commits_app.handler)(event, context)

    def refresh(request: Request) -> None:
        name = _lake_of_path(request.path, request.query) if only is None else only
        if name in lakes and (mirror := lakes[name].opened.mirror):
            mirror.refresh_if_possible()

    def instance_of(event: Mapping[str, Any]) -> str:
        name = lake_of_event(event) if only is None else only
        return name if name in lakes else ""

    mirrors = {n: served.opened.mirror for n, served in lakes.items() if served.opened.mirror}
    stand_in.start(
        rest_catalog_app.handler,
        object_lambda_app.handler,
        _confinements(lakes) if options.as_deployed else None,
        commits_handler=commit if commits else None,
        page_handler=page,
        before_each=refresh if mirrors else None,
        other_paths={openmetrics.PATH: _metrics(mirrors)},
        instance_of=instance_of,
    )


def _metrics(mirrors: Mapping[str, Mirror]) -> Callable[[], Response]:
    """What is at `/metrics`, from now on."""
    shown = openmetrics.OpenMetrics({name: mirror.age for name, mirror in mirrors.items()})
    metrics.watchers.append(shown)
    headers = (("Content-Type", openmetrics.CONTENT_TYPE),)
    return lambda: Response(200, headers, shown.text())


def _with_the_file(mirror: Mirror, commits: Handler) -> Handler:
    """The handler of the function that writes, for a lake in a file, which it has for itself."""

    def handler(event: dict[str, object], context: object) -> object:
        try:
            with readable_file(mirror.name), mirror.writing():
                return commits(event, context)
        except PolynyaError as error:
            refusal = error
        return {
            "statusCode": refusal.status,
            "headers": {"Content-Type": "application/json", "Retry-After": "1"},
            "body": json.dumps({"error": refusal.rest_model()}),
        }

    return handler


@contextmanager
def _page(
    stand_in: StandIn,
    lakes: Mapping[str, ServedLake],
    are_several: bool,
    options: Options,
    functions_s3: str | None,
) -> Iterator[Handler | None]:
    """The handler of the page, if there is to be one.

    Args:
        functions_s3: the endpoint of the functions' S3, which the page sets in the environment too.
    """
    if not options.page:
        yield None
        return
    with ExitStack() as stack:
        pages: dict[str, LazyPage] = {}
        for name, served in lakes.items():
            lake = served.opened
            addresses = Addresses(
                catalog_uri=stand_in.api_uri,
                s3_endpoint=stand_in.s3_uri,
                warehouse=name,
                delivery=options.delivery.value,
                writes=served.uploads is not None,
                folder=str(lake.folder or ""),
                lake=name if are_several else lake.name,
            )
            base = f"/{LAKES_PATH}/{name}" if are_several else ""
            page = LazyPage(addresses, replace(lake, s3_endpoint=functions_s3), base)
            pages[name] = stack.enter_context(closing(page))
        yield LakesPage(pages) if are_several else pages[options.warehouse]


def _ready(stand_in: StandIn, options: Options) -> dict[str, object]:
    """The line of JSON."""
    return {
        "catalog_uri": stand_in.api_uri,
        "warehouse": options.warehouse,
        "s3_endpoint": stand_in.s3_uri,
        "delivery": options.delivery.value,
        "writes": options.writes,
        "page": f"{stand_in.api_uri}/" if options.page else None,
    }


def _check_delivery(lake: LocalLake, options: Options) -> None:
    """Raise if the lake cannot be served with this delivery."""
    if options.virtual_bucket is not None and options.is_object_lambda:
        raise Misconfigured(
            "--virtual-bucket names the bucket that --delivery materialize puts metadata files "
            "into, and object-lambda puts them nowhere: leave it out, or give both"
        )
    if lake.folder is not None and not options.is_object_lambda:
        raise Misconfigured(
            "--delivery materialize puts files into the data bucket, and the data of this lake is "
            "in a local folder, which is not changed: leave it out"
        )


def _stand_in(
    lakes: Mapping[str, ServedLake],
    are_several: bool,
    options: Options,
    virtual: str,
    servers: Servers,
) -> StandIn:
    first = next(iter(lakes.values()))

    def in_s3(upstream: S3Upstream) -> LakesInS3:
        prefix = virtual_prefix(os.environ)
        buckets = [served.bucket for served in lakes.values()]
        return LakesInS3(
            [
                served.in_s3(
                    upstream,
                    f"s3://{virtual}/{prefix}/{name}/",
                    is_alone=buckets.count(served.bucket) == 1,
                )
                for name, served in lakes.items()
            ],
            S3Proxy(S3Behind(upstream)),
        )

    return StandIn(
        alias=ALIAS if options.is_object_lambda else None,
        supporting_bucket=options.virtual_bucket or first.bucket,
        s3_endpoint=options.s3_endpoint,
        region=os.environ["AWS_DEFAULT_REGION"],
        host=options.host,
        uploads=first.uploads,
        uncommitted=first.removable,
        local_bucket=None if are_several else first.local_bucket,
        lakes=in_s3 if are_several else None,
        allowed_hosts=options.allowed_hosts,
        servers=servers,
    )


def _set_environment(
    lake: LocalLake, options: Options, virtual: str, endpoints: Mapping[str, str]
) -> None:
    """The settings of the functions.

    Args:
        endpoints: of the services that they call, by the names of the variables.
    """
    os.environ.update(
        DATABASE_URL=lake.database,
        METADATA_SCHEMA=lake.metadata_schema,
        WAREHOUSE=options.warehouse,
        DELIVERY=options.delivery,
        VIRTUAL_BUCKET=virtual,
        CACHE_TABLE=TABLE,
        # No gateway limits how long a client may wait here.
        BUILD_SECONDS=os.environ.get("BUILD_SECONDS") or "3600",
        HIDDEN_TYPES=",".join(options.hidden_types),
        WRITES="yes" if options.writes else "no",
        POWERTOOLS_LOG_LEVEL="WARNING",
        **endpoints,
    )


def _read_lake(opened_lake: LocalLake, options: Options) -> Lake:
    """The lake of the catalog, if its data can be read.

    An encrypted lake is served, so that clients get the reason; it is also printed.

    Raises:
        PolynyaError: the version of the catalog is not known, or the data cannot be read.
    """
    database = Database(opened_lake.database, opened_lake.metadata_schema)
    with closing(database), database.transaction() as con:
        lake = queries.lake().run(con)
        check_version(lake.version)
        try:
            check_lake(lake.version, lake.encrypted)
            newest = newest_file(lake).run(con)
        except PolynyaError as error:
            say(f"every request will be refused: {error}")
            return lake
    if opened_lake.folder is None:
        _check_store(lake, newest, options)
    return lake


def _check_store(lake: Lake, newest: str | None, options: Options) -> None:
    """Raise if S3 does not give a file of the lake."""
    place = bucket_and_key(newest) if newest else None
    bucket, key = place or (_data_bucket(lake), None)
    if problem := reach.check_store(bucket, key, options.s3_endpoint):
        say(f"{problem}; `polynya doctor` names the tables")


def _uploads(lake: Lake, virtual_bucket: str, settings: Mapping[str, str]) -> UploadPaths:
    """Where clients may upload, by the settings that the functions have."""
    try:
        return UploadPaths.of(
            data_path=lake.data_path,
            staging_location=settings.get("STAGING_LOCATION", ""),
            virtual_location=f"s3://{virtual_bucket}/{virtual_prefix(settings)}",
            virtual_root=f"s3://{virtual_bucket}/{virtual_prefix(os.environ)}",
        )
    except ValueError as error:
        message = f"STAGING_LOCATION must be s3://bucket/prefix: {error}"
        raise Misconfigured(message) from None


def _confinements(lakes: Mapping[str, ServedLake]) -> Mapping[str, Confinement]:
    # Imported here: without --as-deployed no template is needed.
    from .build.template import as_deployed

    bucket, *buckets = dict.fromkeys(served.bucket for served in lakes.values())
    return as_deployed(os.environ, data_bucket=bucket, lake_buckets=buckets)


def _data_bucket(lake: Lake) -> str:
    place = bucket_and_key(lake.data_path)
    if place is None:
        raise Misconfigured(
            f"the lake's data is in {lake.data_path}, not in S3: Iceberg clients reach the files "
            "of a lake in S3 only"
        )
    return place[0]


def _ended() -> threading.Event:
    """An event that SIGTERM or Ctrl-C sets, from now on."""
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    return ended
