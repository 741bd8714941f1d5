"""The options of `polynya serve` that say who may call."""

from collections.abc import Sequence
from pathlib import Path
from secrets import token_bytes
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from polynya.runtime.errors import Misconfigured

from .addresses import network

if TYPE_CHECKING:
    from .settings import AccessSettings

SHORTEST_SECRET = 32
"""Bytes of the file of a secret."""


Tokens = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="Answer only callers with a token of this file, which `polynya token` makes and which "
        "is read again when it changes. Clients get keys for each table that they load, and S3 "
        "accepts no others. The page asks for a token too.",
    ),
]
OidcIssuer = Annotated[
    list[str] | None,
    typer.Option(
        metavar="URL",
        show_default=False,
        help="The same for callers with a token of this identity provider (OpenID Connect); may be "
        "repeated, and given with --tokens.",
    ),
]
OidcAudience = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="The audience (`aud`) that these tokens must have; may be repeated.",
    ),
]
OidcClient = Annotated[
    str | None,
    typer.Option(
        metavar="ID",
        show_default=False,
        help="Let people sign in at the page with the first --oidc-issuer, which knows the page as "
        "this public client, with PKCE and the redirect URI <address of the page>/login/callback.",
    ),
]
OidcScope = Annotated[
    str,
    typer.Option(
        metavar="SCOPES",
        help="The scopes that the page requests from that issuer, so that the access token has "
        "the audience of --oidc-audience.",
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="The policy (docs/security.md) of who may read and write which tables, read again "
        "every minute. Without it, all callers may read everything, and write it with --writes. "
        "A caller of --tokens is the principal `token=NAME`.",
    ),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="At least 32 random bytes from which the keys for tables are derived: servers with "
        "the same file accept each other's keys. Without it, keys end with the server.",
    ),
]
AuditFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="Append a line of JSON for each request: who, what, which table, how it ended. "
        "Without it, with --tokens or --oidc-issuer, these lines go to stderr.",
    ),
]
RequestRate = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        min=0.1,
        show_default=False,
        help="Answer at most N requests a second of each caller, in a burst ten times as many, and "
        "as many of each address without a valid token; further ones get 429, or S3's SlowDown. "
        "Each of --workers counts separately. Without it, callers are not limited.",
    ),
]
TrustProxy = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ADDRESS[/NET]",
        show_default=False,
        help="Trust the headers X-Forwarded-For, -Proto and -Host of the proxy at this address, "
        "or of those in this network; may be repeated.",
    ),
]
TlsCertificate = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="Answer with TLS: the certificate and those above it (PEM), read again when it is "
        "renewed.",
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(metavar="FILE", show_default=False, help="The key of the certificate (PEM)."),
]
PublicUri = Annotated[
    str | None,
    typer.Option(
        metavar="URI",
        show_default=False,
        help="How clients reach the catalog, if not by the address of this machine: "
        "https://lake.example:8181. Requests for this name are answered.",
    ),
]
PublicS3Uri = Annotated[
    str | None,
    typer.Option(
        metavar="URI",
        show_default=False,
        help="The same for S3. Default: the name of --public-uri with the port of S3.",
    ),
]


def access_settings(
    tokens: Path | None,
    issuers: Sequence[str],
    audiences: Sequence[str],
    secret_file: Path | None,
    audit_file: Path | None,
    client: str | None,
    scope: str,
    request_rate: float | None,
) -> "AccessSettings | None":
    """The settings of access; None: everybody may call.

    Raises:
        Misconfigured: an option needs another one, or a file is malformed.
    """
    if not tokens and not issuers:
        alone = {
            "--oidc-audience": audiences,
            "--secret-file": secret_file,
            "--audit-log": audit_file,
            "--oidc-client": client,
            "--request-rate": request_rate,
        }
        for option, value in alone.items():
            if value:
                raise Misconfigured(f"{option} is for --tokens or --oidc-issuer: give one of them")
        return None
    if bool(issuers) != bool(audiences):
        raise Misconfigured(
            "--oidc-issuer and --oidc-audience need each other: without an audience, a token that "
            "was made for another program would be accepted here"
        )
    if client and not issuers:
        raise Misconfigured("--oidc-client is for --oidc-issuer: give the issuer that knows it")
    # Imported here: it takes a part of a second to load cryptography.
    from .settings import AccessSettings

    settings = AccessSettings(
        tokens=tokens.absolute() if tokens else None,
        issuers=tuple(issuers),
        audiences=tuple(audiences),
        audit_log=str(audit_file.absolute()) if audit_file else None,
        client=client,
        scope=scope,
        request_rate=request_rate,
        secret=_secret(secret_file) if secret_file else token_bytes(SHORTEST_SECRET),
    )
    settings.callers()  # raises before a lake is opened
    return settings


def policy_setting(path: Path) -> str:
    """The value of the setting AUTHORIZATION for a policy in a file.

    Raises:
        Misconfigured: the policy cannot be read, or is invalid.
    """
    from polynya.access.policy import Policy

    try:
        text = path.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise Misconfigured(f"the policy {path} cannot be read: {error}") from None
    Policy.parse(text)
    return f"file:{path.absolute()}"


def check_hidden_columns(authorization: str) -> None:
    """Check that a policy hides no columns, for a server that cannot hide them from callers.

    Only policies in texts and files are checked. Others are read later, and the server then refuses
    tables with hidden columns.

    Raises:
        Misconfigured: the policy hides columns, or cannot be read.
    """
    from polynya.access.policy import Policy

    text = authorization
    if text.startswith("file:"):
        try:
            text = Path(text.removeprefix("file:")).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise Misconfigured(f"the policy cannot be read: {error}") from None
    if text.lstrip().startswith("{") and Policy.parse(text).hides_columns:
        raise Misconfigured(
            "the policy hides columns, which needs --tokens or --oidc-issuer, the delivery "
            "object-lambda, and no --sts-role: otherwise callers read files as they are"
        )


def trusted_proxies(networks: Sequence[str]) -> tuple[str, ...]:
    """The proxies that say who the client is.

    Raises:
        Misconfigured: one of them is neither an address nor a network.
    """
    try:
        return tuple(map(network, networks))
    except ValueError as error:
        raise Misconfigured(f"--trust-proxy: {error}") from None


def public_hosts(uris: Sequence[str | None]) -> tuple[str, ...]:
    """The hosts of the addresses that clients use.

    Raises:
        Misconfigured: one of them does not have the form https://name:port.
    """
    hosts = []
    for uri in filter(None, uris):
        parts = urlsplit(uri)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path or parts.query:
            raise Misconfigured(f"{uri} must have the form https://name:port")
        hosts.append(parts.netloc)
    return tuple(hosts)


def s3_uri_beside(catalog_uri: str, s3_port: int) -> str:
    """The address of S3: the host of the catalog, with the port of S3."""
    parts = urlsplit(catalog_uri)
    name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{name}:{s3_port}"


def _secret(path: Path) -> bytes:
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise Misconfigured(f"the secret {path} cannot be read: {error.strerror}") from None
    if len(secret) < SHORTEST_SECRET:
        raise Misconfigured(
            f"the secret {path} has fewer than {SHORTEST_SECRET} bytes; "
            "`openssl rand -hex 32` makes one"
        )
    return secret
