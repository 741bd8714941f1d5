"""Composes a server of opened lakes: what each is, their settings, and what answers."""

import hmac
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from hashlib import sha256
from ipaddress import ip_address
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from typing import TextIO

from polynya.catalog.lakes_document import settings_of_lake, virtual_prefix
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya.ducklake.rows.objects import Lake
from polynya.mapping.properties import table_properties
from polynya.mapping.schemas import check_hidden_types
from polynya.mapping.tables import check_lake, check_version
from polynya.runtime.errors import Misconfigured, PolynyaError
from polynya.runtime.settings import NAMES_KEY, FileSettings, settings_in
from polynya.storage.aws import AwsSettings
from polynya.storage.s3_locations import bucket_and_key
from polynya_pipeline.common.errors import say
from polynya_pipeline.common.options import Delivery

from . import reach
from .access.options import s3_uri_beside
from .access.settings import AccessSettings
from .access.sts import StoreSessions
from .application import Served, ServedLake
from .lakes.lake_files import ALIAS
from .lakes.opened import (
    Failures,
    LocalLake,
    local_keys,
    report_not_served,
    translate_read_errors,
)
from .openmetrics import FOLDER_OF_WORKERS
from .queries.lake_checks import newest_file
from .s3.local_bucket import CatalogFiles
from .s3.uploads import UploadPaths
from .server.connections import MOST_CONNECTIONS
from .server.uvicorn_server import Certificate, port_of, run_here, run_workers, uri_of
from .writes import rule_for_everybody


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command, besides those that say which lake it is."""

    s3_endpoint: str | None
    host: str
    delivery: Delivery
    warehouse: str
    virtual_bucket: str | None
    hidden_types: tuple[str, ...]
    clients: str
    """As the setting CLIENTS."""
    copy_data_files: bool
    """Whether S3 copies the data files that are changed for these clients, with `materialize`."""
    writes: bool
    cache: Path
    """The folder of generated files, of all lakes."""
    workers: int
    page: bool = True
    """Whether people get a page at the address of the catalog."""
    allowed_hosts: tuple[str, ...] = ()
    """What the header Host may be, besides this machine's own names."""
    file_directories: tuple[str, ...] = ()
    """Directories from which everybody may add and register files, besides the data path."""
    access: AccessSettings | None = None
    """How callers are known; None: everybody may call."""
    authorization: str = ""
    """As the setting AUTHORIZATION."""
    sessions: StoreSessions | None = None
    """The store gives clients credentials; None: they use the S3 of the server."""
    certificate: Certificate | None = None
    """None: without TLS."""
    connections: int = MOST_CONNECTIONS
    """The most connections of a process at the same time."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies that say who the client is."""
    public_uris: tuple[str | None, str | None] = (None, None)
    """How clients reach the catalog and S3; None: by the addresses of the sockets."""

    @property
    def is_for_everybody(self) -> bool:
        """Whether others than this machine reach the server, and it knows no callers."""
        return self.access is None and not ip_address(self.host).is_loopback

    @property
    def is_object_lambda(self) -> bool:
        """Whether metadata files are generated when they are read."""
        return self.delivery == Delivery.OBJECT_LAMBDA

    @property
    def hides_columns(self) -> bool:
        """Whether the server can hide columns of a table: it knows callers, and their keys are
        only for files that it generates."""
        return self.access is not None and self.sessions is None and self.is_object_lambda

    def bucket_of_virtual_files(self, data_bucket: str) -> str:
        """The bucket that the locations of metadata files name."""
        return ALIAS if self.is_object_lambda else self.virtual_bucket or data_bucket


Sockets = tuple[socket, socket]
"""The listening sockets of the catalog and of S3."""


Settings = Mapping[str, Mapping[str, str]]
"""The settings of each of several lakes by its name, as in the document LAKES."""


def may_write(settings: Mapping[str, str], options: Options) -> bool:
    """Whether clients may write to a lake with these settings of its own."""
    return options.writes and settings.get("writes") != "no"


def serve_lakes(
    opened: Mapping[str, LocalLake],
    settings: Settings | None,
    options: Options,
    sockets: Sockets,
    stdout: TextIO,
    failures: Failures | None = None,
) -> None:
    """Serve lakes until a signal arrives; print one line of JSON when they are ready.

    Args:
        opened: the lakes by their names.
        settings: of several lakes; None: there is one.
        failures: those that could not be opened.

    Raises:
        PolynyaError: none of them can be served with these options.
    """
    failures = {} if failures is None else failures
    lakes = _served_lakes(opened, settings, options, failures)
    served = replace(_composed(lakes, settings, options, sockets), failures=failures)

    def ready() -> None:
        if options.page:
            say(f"a page about the lake: {served.catalog_uri}/")
        print(json.dumps(_ready(served, options)), file=stdout, flush=True)

    if options.workers == 1 or any(lake.opened.mirror for lake in lakes.values()):
        # A lake in a file has one process, which owns the copy.
        run_here(served, sockets, ready, options.certificate, options.connections)
        return
    with TemporaryDirectory(prefix="polynya-metrics-") as folder:
        os.environ[FOLDER_OF_WORKERS] = folder
        run_workers(
            served, sockets, options.workers, ready, options.certificate, options.connections
        )


def _served_lakes(
    opened: Mapping[str, LocalLake],
    settings: Settings | None,
    options: Options,
    failures: Failures,
) -> dict[str, ServedLake]:
    """The lakes that can be served; the others are named on stderr."""
    catalogs = CatalogFiles.from_paths([lake.file for lake in opened.values() if lake.file])
    lakes: dict[str, ServedLake] = {}
    for name, lake in opened.items():
        try:
            first_bucket = next(iter(lakes.values())).bucket if lakes else None
            own = settings and settings.get(name, {})
            of_lake = replace(options, writes=may_write(own or {}, options))
            environ = {} if own is None else settings_of_lake(name, own, os.environ)
            environ = {**os.environ, **environ}
            lakes[name] = _served(lake, catalogs, first_bucket, of_lake, environ)
        except PolynyaError as error:
            if not lakes and name == [*opened][-1]:
                raise
            report_not_served(name, error, failures)
    return lakes


def _served(
    opened: LocalLake,
    catalogs: CatalogFiles,
    first_bucket: str | None,
    options: Options,
    settings: Mapping[str, str],
) -> ServedLake:
    """A lake that can be served.

    Args:
        catalogs: the files of all of them.
        first_bucket: of the data of the first of several lakes; None: it is this lake.
        settings: of the lake.

    Raises:
        PolynyaError: it cannot be served, or one of its settings is wrong.
    """
    of_files = FileSettings.from_env(settings)
    table_properties(of_files.custom_properties)
    check_hidden_types(of_files.hidden_types)
    _check_delivery(opened, options)
    lake = _read_lake(opened, options)
    bucket = _data_bucket(lake)
    if not options.writes:
        return ServedLake(opened, lake.data_path, bucket, None, catalogs)
    virtual = options.bucket_of_virtual_files(first_bucket or bucket)
    uploads = _uploads(lake, virtual, settings)
    if mirror := opened.mirror:
        with translate_read_errors(mirror.name):
            is_new = mirror.set_up_commits()
        if is_new:
            say(f"{mirror.name} has the table polynya_commits now")
    return ServedLake(opened, lake.data_path, bucket, uploads, catalogs)


def _composed(
    lakes: Mapping[str, ServedLake],
    settings: Settings | None,
    options: Options,
    sockets: Sockets,
) -> Served:
    first = next(iter(lakes.values()))
    virtual = options.bucket_of_virtual_files(first.bucket)
    scheme = "https" if options.certificate else "http"
    own = [uri_of(listening, scheme) for listening in sockets]
    public, public_s3 = options.public_uris
    catalog = public or own[0]
    keys = local_keys() if all(served.opened.folder for served in lakes.values()) else None
    aws = AwsSettings.from_s3_endpoint(options.s3_endpoint, keys)
    if options.sessions:
        s3 = public_s3 or options.sessions.s3_endpoint
        aws = replace(aws, endpoints={**aws.endpoints, "sts": options.sessions.sts_endpoint})
    else:
        s3 = public_s3 or (s3_uri_beside(public, port_of(sockets[1])) if public else own[1])
    all_settings = _settings(lakes, settings, options, virtual, s3)
    return Served(
        settings=all_settings,
        lakes=lakes,
        are_several=settings is not None,
        catalog_uri=catalog,
        s3_uri=s3,
        s3_port=port_of(sockets[1]),
        aws=aws,
        supporting_bucket=options.virtual_bucket or first.bucket,
        virtual_root=f"s3://{virtual}/{virtual_prefix(os.environ)}/",
        cache_folder=options.cache,
        has_page=options.page,
        host=options.host,
        allowed_hosts=options.allowed_hosts,
        access=options.access,
        trusted_proxies=options.trusted_proxies,
    )


def _settings(
    lakes: Mapping[str, ServedLake],
    settings: Settings | None,
    options: Options,
    virtual: str,
    s3_uri: str,
) -> dict[str, str]:
    """The settings of the application: those of the environment, and of the command."""
    first = next(iter(lakes.values())).opened
    environ = settings_in(os.environ)
    for name in ("LAKES", "VENDING_ROLE", "WRITER_ROLE"):  # the command has arguments for them
        environ.pop(name, None)
    all_settings = environ | {
        "DATABASE_URL": first.database,
        "METADATA_SCHEMA": first.metadata_schema,
        "WAREHOUSE": options.warehouse,
        "DELIVERY": options.delivery.value,
        "VIRTUAL_BUCKET": virtual,
        # No gateway limits how long a client may wait here.
        "BUILD_SECONDS": environ.get("BUILD_SECONDS") or "3600",
        "HIDDEN_TYPES": ",".join(options.hidden_types),
        "CLIENTS": options.clients,
        "COPY_DATA_FILES": "yes" if options.copy_data_files else "no",
        "WRITES": "yes" if options.writes else "no",
        "OBJECT_LAMBDA_ENDPOINT": s3_uri,
    }
    if options.hides_columns:
        assert options.access is not None
        secret = options.access.secret
        all_settings[NAMES_KEY] = hmac.digest(secret, b"names of files", sha256).hex()
    if options.sessions:
        all_settings |= options.sessions.settings()
    if settings is not None:
        for name in ("DATABASE_URL", "DATABASE_CREDENTIALS"):
            all_settings.pop(name, None)
        all_settings["LAKES"] = _document(lakes, settings)
    all_settings["AUTHORIZATION"] = options.authorization
    if options.writes and not options.authorization:
        all_settings["AUTHORIZATION"] = _policy_of_writes(
            lakes, options.file_directories, are_several=settings is not None
        )
    return all_settings


def _policy_of_writes(
    lakes: Mapping[str, ServedLake], directories: Sequence[str], *, are_several: bool
) -> str:
    """The policy that permits everything in each lake."""
    # Not everything that this process may read in S3: all callers could then read it.
    rules = [
        rule_for_everybody([served.uploads.data, *directories] if served.uploads else [])
        | ({"lakes": [name]} if are_several else {})
        for name, served in lakes.items()
    ]
    return json.dumps({"rules": rules})


def _document(lakes: Mapping[str, ServedLake], settings: Settings) -> str:
    """The document of several lakes."""
    document = {
        name: {
            **settings[name],
            "database_url": served.opened.database,
            "metadata_schema": served.opened.metadata_schema,
            # A mirror has the data elsewhere than its catalog says.
            "data_path": served.data_path
            if served.opened.is_mirror
            else settings[name].get("data_path", served.data_path),
        }
        for name, served in lakes.items()
    }
    return json.dumps(document)


def _ready(served: Served, options: Options) -> dict[str, object]:
    """The line of JSON."""
    names = [*served.lakes]
    line: dict[str, object] = {
        "catalog_uri": served.catalog_uri,
        "warehouse": names[0],
        "s3_endpoint": served.s3_uri,
        "delivery": options.delivery.value,
        "writes": options.writes,
        "page": f"{served.catalog_uri}/" if options.page else None,
    }
    return line | ({"warehouses": names} if served.are_several else {})


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
            check_lake(lake)
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
        key = None
    if options.sessions:
        options.sessions.check(bucket, key)


def _uploads(lake: Lake, virtual_bucket: str, settings: Mapping[str, str]) -> UploadPaths:
    """Where clients may upload, by the settings that the functions have."""
    try:
        return UploadPaths.from_locations(
            data_path=lake.data_path,
            staging_location=settings.get("STAGING_LOCATION", ""),
            virtual_location=f"s3://{virtual_bucket}/{virtual_prefix(settings)}",
            virtual_root=f"s3://{virtual_bucket}/{virtual_prefix(os.environ)}",
        )
    except ValueError as error:
        message = f"STAGING_LOCATION must be s3://bucket/prefix: {error}"
        raise Misconfigured(message) from None


def _data_bucket(lake: Lake) -> str:
    place = bucket_and_key(lake.data_path)
    if place is None:
        raise Misconfigured(
            f"the lake's data is in {lake.data_path}, not in S3: Iceberg clients reach the files "
            "of a lake in S3 only"
        )
    return place[0]
