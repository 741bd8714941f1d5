"""`polynya serve`: a server for a DuckLake that already exists."""

import errno
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO

import typer
from polynya.mapping.schemas import check_hidden_types
from polynya.runtime.errors import Misconfigured, PolynyaError
from polynya.runtime.settings import clients_of
from polynya_pipeline.common import options as lake_options
from polynya_pipeline.common.errors import say

from .access import options as access_options
from .access.sts import StoreSessions, StsEndpoint, StsRole
from .lakes.address import lake_name, parse
from .lakes.catalog_file import checked
from .processes.cores import cores
from .server.connections import MOST_CONNECTIONS
from .server.logs import log_to_stderr
from .server.uvicorn_server import HOST, bound_socket, certificate_of

if TYPE_CHECKING:
    from .access.settings import AccessSettings
    from .served_lake import Options, Settings, Sockets


def _ipv4(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not an IPv4 address") from None


def _knows_visitors(access: "AccessSettings | None", authorization: str) -> bool:
    """Whether the page can show everybody what they may read."""
    if access is None and authorization:
        say("no page: with --policy, only known callers may see it: give --tokens or --oidc-issuer")
        return False
    return True


LakeAddresses = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ADDRESS",
        show_default=False,
        help="The lake: metadata.ducklake (a file of DuckDB), sqlite:lake.sqlite, "
        "postgresql://user:password@host:port/database, the string after ATTACH: "
        "'ducklake:postgres:dbname=lake host=…', or lakes.toml#NAME, one lake of a file for "
        "--lakes. "
        "Several are served together, each under the name of its file or database.",
        callback=lake_options.one_of_file,
        is_eager=True,
    ),
]


CACHE_FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "polynya"

PORTS = range(8181, 8201, 2)
"""Where the catalog listens if the user names no port; S3 has the next one."""


@contextmanager
def bound_sockets(port: int | None, host: str) -> "Iterator[Sockets]":
    """Sockets that listen, before the lake is opened: copying may take a while.

    Args:
        port: of the catalog; None: the first of PORTS that is free, like the one after it.

    Raises:
        Misconfigured: a port is taken, or this machine does not have the address.
    """
    sockets = _first_free(host) if port is None else _bound_at(port, host)
    try:
        yield sockets
    finally:
        for listening in sockets:
            listening.close()


def _first_free(host: str) -> "Sockets":
    for port in PORTS[:-1]:
        try:
            sockets = _bound(port, host)
        except OSError as error:
            # Another port would not help: it is tried once more for the message.
            if error.errno != errno.EADDRINUSE:
                return _bound_at(port, host)
            continue
        if port != PORTS[0]:
            words = f"port {PORTS[0]} or {PORTS[0] + 1} is taken; the catalog is at port {port}"
            say(words)
        return sockets
    return _bound_at(PORTS[-1], host)


def _bound_at(port: int, host: str) -> "Sockets":
    try:
        return _bound(port, host)
    except OSError as error:
        raise Misconfigured(_cannot_listen(error, port)) from None


def _bound(port: int, host: str) -> "Sockets":
    """The sockets of the catalog and of S3: `port` and the next one, or any two if it is 0."""
    catalog = bound_socket(port, host)
    try:
        return catalog, bound_socket(port + 1 if port else 0, host)
    except OSError:
        catalog.close()
        raise


def _cannot_listen(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} or {port + 1} is taken ({error}); try --port 0"
    return f"{error}; --host takes an address of this machine, --port one that you may listen on"


def named_lakes(addresses: Sequence[str], metadata_schema: str) -> "Settings":
    """The settings of several lakes by the names that their addresses give; empty for one lake."""
    if len(addresses) < 2:
        return {}
    lakes: dict[str, dict[str, str]] = {}
    for address in addresses:
        name = lake_name(parse(address))
        if name in lakes:
            raise typer.BadParameter(f"two lakes would be called {name}: give --lakes FILE")
        lakes[name] = {"database_url": address, "metadata_schema": metadata_schema}
    return lakes


def serve_several(
    settings: "Settings", options: "Options", sockets: "Sockets", stdout: TextIO
) -> None:
    """Serve the lakes of these settings that can be opened."""
    from .lakes.opened import DEFAULT_SCHEMA, Failures, opened_lakes, report_not_served
    from .served_lake import may_write, serve_lakes
    from .writes import check_writes

    servable: dict[str, Mapping[str, str]] = {}
    failures: Failures = {}
    for name, lake in settings.items():
        try:
            if may_write(lake, options):
                schema = lake.get("metadata_schema", DEFAULT_SCHEMA)
                is_for_everybody = options.is_for_everybody
                check_writes(lake["database_url"], schema, None, is_for_everybody=is_for_everybody)
            servable[name] = lake
        except PolynyaError as error:
            report_not_served(name, error, failures)
    with opened_lakes(servable, failures) as lakes:
        serve_lakes(lakes, settings, options, sockets, stdout, failures)


def serve(
    addresses: LakeAddresses = None,
    database: lake_options.AnyDatabase = None,
    lakes: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Serve the lakes of this file (TOML): a table for each, with its settings.",
        ),
    ] = None,
    metadata_schema: lake_options.LakeSchema = "public",
    data_path: lake_options.DataPath = None,
    s3_endpoint: lake_options.S3Endpoint = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65534,
            show_default=False,
            help="The port of the catalog; S3 is on the next one. Default: 8181, or the next one "
            "from there on if it is taken. 0 picks any two free ports.",
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            parser=_ipv4,
            help="Listen on this address of the machine; 0.0.0.0: on all, as a container must. "
            "Whoever reaches it can read the whole lake, unless --tokens or --oidc-issuer says who "
            "may call; without --tls-cert, whoever sees the traffic can too.",
        ),
    ] = HOST,
    delivery: lake_options.DeliveryOption = lake_options.Delivery.OBJECT_LAMBDA,
    warehouse: Annotated[
        str, typer.Option(metavar="NAME", help="The warehouse that clients ask for.")
    ] = "lake",
    virtual_bucket: Annotated[
        str | None,
        typer.Option(
            metavar="BUCKET",
            help="The bucket of the metadata files under materialize. Default: the data bucket.",
        ),
    ] = None,
    hide_type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Hide columns of this DuckLake type; may be repeated. Spark cannot read a table "
            "that has `time`.",
        ),
    ] = None,
    clients: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            show_default="all",
            help="Work around the faults of these clients, such as spark,trino; all; or none: data "
            "files that they misread, or on which they fail, get another footer when they are "
            "read. With materialize, only if --copy-data-files is given.",
        ),
    ] = None,
    copy_data_files: Annotated[
        bool,
        typer.Option(
            "--copy-data-files",
            help="With materialize, let S3 copy the data files that --clients changes when a table "
            "is loaded: it stores them twice.",
        ),
    ] = False,
    writes: Annotated[
        bool,
        typer.Option(
            "--writes",
            help="Let Iceberg clients write; without --policy, all callers may. "
            "The role must be a member of the owner of DuckLake's tables, who gets the tables "
            "polynya_commits and polynya_changed_uploads where they are missing; "
            "`polynya writes` checks it.",
        ),
    ] = False,
    files_from: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIRECTORY",
            show_default=False,
            help="Let clients add files and register tables that are below this directory of S3 "
            "(s3://bucket/warehouse/), besides the lake's data path; may be repeated. All "
            "callers can then read them, and the lake deletes those that it no longer needs. "
            "With --policy, its add_files name the directories.",
        ),
    ] = None,
    page: Annotated[
        bool,
        typer.Option(
            "--page/--no-page",
            help="Show a page about the lake at the catalog's address, for a browser: "
            "http://127.0.0.1:8181/",
        ),
    ] = True,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="Also answer requests whose header Host is this name, or name:port; may be "
            "repeated. By default only the names of this machine are answered, because otherwise "
            "the page of any site could read rows.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            show_default="the cores that it may use",
            help="The number of processes that answer. A lake in a file, or with its data in a "
            "folder, has one.",
        ),
    ] = cores(),
    max_connections: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="How many connections each of these processes has at the same time; new ones "
            "beyond that are answered 503.",
        ),
    ] = MOST_CONNECTIONS,
    cache: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            show_default="~/.cache/polynya",
            help="Keep generated files here, 10 GB at most; it may be deleted.",
        ),
    ] = CACHE_FOLDER,
    tokens: access_options.Tokens = None,
    oidc_issuer: access_options.OidcIssuer = None,
    oidc_audience: access_options.OidcAudience = None,
    oidc_client: access_options.OidcClient = None,
    oidc_scope: access_options.OidcScope = "openid",
    policy: access_options.PolicyFile = None,
    secret_file: access_options.SecretFile = None,
    audit_log: access_options.AuditFile = None,
    request_rate: access_options.RequestRate = None,
    trust_proxy: access_options.TrustProxy = None,
    tls_cert: access_options.TlsCertificate = None,
    tls_key: access_options.TlsKey = None,
    public_uri: access_options.PublicUri = None,
    public_s3_uri: access_options.PublicS3Uri = None,
    sts_role: StsRole = None,
    sts_endpoint: StsEndpoint = None,
) -> None:
    """Serve a DuckLake to Iceberg clients on this machine.

    Prints one line of JSON when it is ready. A browser gets a page at the catalog's address that
    explains the lake: what is in it, what changed, what Iceberg clients get.
    Logs go to stderr; Ctrl-C or SIGTERM ends it.
    Clients use its s3_endpoint for everything in S3, with any credentials, unless --tokens or
    --oidc-issuer says who may call. The credentials for the S3 behind it come from the usual AWS
    variables.
    """
    if lakes and addresses:
        raise typer.BadParameter("give either --lakes or addresses")
    # The functions' loggers write to stdout, as Lambda expects; here stdout is for one line only.
    stdout, sys.stdout = sys.stdout, sys.stderr
    log_to_stderr()
    of_environment = os.environ.get("HIDDEN_TYPES", "").split(",")
    hidden_types = tuple(hide_type or filter(None, of_environment))
    try:
        check_hidden_types(hidden_types)
    except PolynyaError as error:
        raise typer.BadParameter(str(error), param_hint="--hide-type") from None
    if copy_data_files and delivery != lake_options.Delivery.MATERIALIZE:
        message = "data files are changed when they are read, unless --delivery is materialize"
        raise typer.BadParameter(message, param_hint="--copy-data-files")
    copies = copy_data_files or os.environ.get("COPY_DATA_FILES") == "yes"
    named_clients = clients or os.environ.get("CLIENTS") or "all"
    try:
        can_adapt = copies or delivery == lake_options.Delivery.OBJECT_LAMBDA
        clients_of(named_clients, can_adapt=can_adapt)
    except PolynyaError as error:
        raise typer.BadParameter(str(error), param_hint="--clients") from None
    try:
        named = addresses or ([database] if database and not lakes else [])
        if len(named) == 1:  # of several, the others are served
            checked(parse(named[0]))
        access = access_options.access_settings(
            tokens,
            oidc_issuer or (),
            oidc_audience or (),
            secret_file,
            audit_log,
            oidc_client,
            oidc_scope,
            request_rate,
        )
        proxies = access_options.trusted_proxies(trust_proxy or ())
        sessions = StoreSessions.from_options(
            sts_role,
            sts_endpoint,
            s3_endpoint,
            is_materialized=delivery == lake_options.Delivery.MATERIALIZE,
            has_callers=access is not None,
        )
        certificate = certificate_of(tls_cert, tls_key)
        hosts = access_options.public_hosts([public_uri, public_s3_uri])
        authorization = os.environ.get("AUTHORIZATION", "")
        if policy is not None:
            authorization = access_options.policy_setting(policy)
        is_generated = delivery == lake_options.Delivery.OBJECT_LAMBDA
        if access is None or sessions is not None or not is_generated:
            access_options.check_hidden_columns(authorization)
    except PolynyaError as error:
        say(str(error))
        raise typer.Exit(1) from None
    # Imported here: a server and DuckDB take a second or two to load; a wrong name is reported
    # before that.
    from polynya.access.policy import is_directory

    from .lakes.opened import opened
    from .served_lake import Options, serve_lakes
    from .writes import check_writes

    for directory in files_from or ():
        if not is_directory(directory):
            message = f"{directory!r} is not a directory in S3, such as s3://bucket/exports/"
            raise typer.BadParameter(message, param_hint="--files-from")
    options = Options(
        s3_endpoint=s3_endpoint,
        host=host,
        delivery=delivery,
        warehouse=warehouse,
        virtual_bucket=virtual_bucket,
        hidden_types=hidden_types,
        clients=named_clients,
        copy_data_files=copies,
        writes=writes,
        cache=cache,
        workers=workers,
        connections=max_connections,
        page=page and _knows_visitors(access, authorization),
        allowed_hosts=(*(allow_host or ()), *hosts),
        access=access,
        authorization=authorization,
        sessions=sessions,
        certificate=certificate,
        trusted_proxies=proxies,
        public_uris=(public_uri, public_s3_uri),
        file_directories=tuple(files_from or ()),
    )
    try:
        settings = (
            lake_options.lakes_file(lakes)
            if lakes
            else named_lakes(addresses or [], metadata_schema)
        )
        with bound_sockets(port, host) as sockets:
            if settings:
                serve_several(settings, options, sockets, stdout)
                return
            address = lake_options.address_of(addresses[0] if addresses else None, database)
            if writes:
                is_for_everybody = options.is_for_everybody
                check_writes(address, metadata_schema, data_path, is_for_everybody=is_for_everybody)
            with opened(address, metadata_schema, data_path) as lake:
                serve_lakes({warehouse: lake}, None, options, sockets, stdout)
    except PolynyaError as error:
        say(str(error))
        raise typer.Exit(1) from None
