"""DATABASE_URL as arguments of pg8000."""

import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ...errors import Misconfigured

TLS_MODES = ("disable", "require", "verify-ca", "verify-full")

LOCAL = {"", "localhost", "127.0.0.1", "::1"}

RDS_CERTIFICATES = Path(__file__).with_name("rds-certificates.pem")
"""The certificates of `sslrootcert=rds`, in addition to the system's, which RDS Proxy uses."""


def connection_arguments(url: str) -> dict[str, Any]:
    """Arguments of pg8000 for a URL in libpq's form (PostgreSQL manual, 34.1.1.2).

    Raises:
        Misconfigured: it is no PostgreSQL URL, or TLS cannot be set up. The message never holds the
            URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        raise Misconfigured("DATABASE_URL is not a URL") from None
    if parts.scheme not in {"postgresql", "postgres"} or not parts.path.strip("/"):
        raise Misconfigured("DATABASE_URL must read postgresql://user:password@host:port/database")
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    host = query.get("host") or parts.hostname or ""
    arguments: dict[str, Any] = {
        "user": unquote(parts.username or "postgres"),
        # Not None: pg8000 fails on None if SCRAM asks for a password.
        "password": unquote(parts.password or ""),
        "database": unquote(parts.path.strip("/")),
    }
    if host.startswith("/"):
        return arguments | {"unix_sock": f"{host}/.s.PGSQL.{port}"}
    return arguments | {"host": host or "localhost", "port": port, "ssl_context": _tls(host, query)}


def _tls(host: str, query: dict[str, str]) -> ssl.SSLContext | bool:
    mode = query.get("sslmode") or ("disable" if host in LOCAL else "verify-full")
    if mode == "disable":
        return False  # None would mean: if the server offers TLS, with any certificate
    root = query.get("sslrootcert")
    try:
        context = ssl.create_default_context(cafile=None if root == "rds" else root)
        if root == "rds":
            context.load_verify_locations(RDS_CERTIFICATES)
    except OSError:
        raise Misconfigured(
            "sslrootcert in DATABASE_URL does not name a file with certificates"
        ) from None
    if mode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif mode == "verify-ca":
        context.check_hostname = False
    elif mode not in TLS_MODES:
        raise Misconfigured(f"sslmode {mode!r} is not one of {', '.join(TLS_MODES)}")
    return context
