"""DATABASE_URL as arguments of pg8000, and the sockets of a connection."""

import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ...runtime import budget
from ...runtime.errors import Misconfigured

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


class _Limited:
    """Ends each wait on a socket with its own limit, or with the budget of the request."""

    longest_wait: float
    """Seconds of one wait."""

    def connect(self, *args: Any) -> Any:
        return self._limited().connect(*args)

    def recv(self, *args: Any) -> Any:
        return self._limited().recv(*args)

    def recv_into(self, *args: Any) -> Any:
        return self._limited().recv_into(*args)

    def send(self, *args: Any) -> Any:
        return self._limited().send(*args)

    def sendall(self, *args: Any) -> Any:
        return self._limited().sendall(*args)

    def _limited(self) -> Any:
        # Before each wait: with pg8000's one timeout for each read, a server that answers every
        # message just in time would block a request for as long as it sends messages.
        seconds = min(self.longest_wait, budget.seconds_left())
        if seconds <= 0:
            raise TimeoutError("the time limit of the request has passed")
        self.settimeout(seconds)  # type: ignore[attr-defined]
        return super()


def _limited_class(base: type, longest_wait: float) -> Any:
    return type(f"Limited{base.__name__}", (_Limited, base), {"longest_wait": longest_wait})


def limit_tls(context: ssl.SSLContext, longest_wait: float) -> None:
    """Limit the sockets that a TLS context makes."""
    context.sslsocket_class = _limited_class(ssl.SSLSocket, longest_wait)


def connect(arguments: Mapping[str, Any], longest_wait: float) -> socket.socket:
    """A socket to pg8000's arguments `host` and `port`, or to its `unix_sock`.

    Raises:
        OSError, UnicodeError: nothing answers there; the host has no such name.
    """
    if path := arguments.get("unix_sock"):
        addresses: list[Any] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", path)]
    else:
        host, port = arguments["host"], arguments["port"]
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure = OSError("the host has no address")
    for family, kind, protocol, _, address in addresses:
        sock: socket.socket = _limited_class(socket.socket, longest_wait)(family, kind, protocol)
        try:
            sock.connect(address)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure
