"""Sockets to PostgreSQL whose waits end with their limit and with the budget of the request.

pg8000 has one timeout for each read: a server that answers each message just in time would block a
request for as long as it sends messages.
"""

import socket
import ssl
from collections.abc import Mapping
from typing import Any

from ... import budget


class _Limited:
    """A mixin for classes of sockets."""

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
        seconds = min(self.longest_wait, budget.seconds_left())
        if seconds <= 0:
            raise TimeoutError("the time of the request is over")
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
