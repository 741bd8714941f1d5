"""Sends requests exactly as written: no client here normalizes a path or adds a header."""

import http.client
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    """Headers by lower-case name."""
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def send(uri: str, method: str, target: str, headers: dict[str, str] | None = None) -> Answer:
    """Send one request for `target`, which begins with a slash and is already encoded."""
    connection = http.client.HTTPConnection(urlsplit(uri).netloc, timeout=60)
    try:
        connection.putrequest(method, target, skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value.encode())
        connection.endheaders()
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, response.read())
    finally:
        connection.close()
