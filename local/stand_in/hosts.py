"""The names under which clients may reach the servers.

A page in a browser can give its own name the address of this machine (DNS rebinding), and then read
all that is served here as if it were its own. Its requests have that name in the header Host.
"""

import json
from dataclasses import dataclass
from ipaddress import ip_address

from .http_message import Answer, Request, Response
from .s3.address import HOSTS
from .s3.error import s3_error


@dataclass(frozen=True, slots=True)
class Hosts:
    """Addresses and `localhost`, whose meaning no page can change, and some names."""

    names: frozenset[str] = frozenset()
    """In lower case, without a port."""

    def accept(self, header: str) -> bool:
        """Whether a request with this header Host is answered; browsers always send one."""
        name = _name(header.strip().lower())
        return name in {"", "localhost", *self.names} or name.endswith(HOSTS) or _is_address(name)

    def guard_catalog(self, answer: Answer) -> Answer:
        """`answer` for names that are accepted, and else an error of Iceberg's REST catalog."""
        return self._guarded(answer, _catalog_error)

    def guard_s3(self, answer: Answer) -> Answer:
        """`answer` for names that are accepted, and else an error of S3."""
        return self._guarded(answer, _s3_error)

    def _guarded(self, answer: Answer, refuse: Answer) -> Answer:
        def guarded(request: Request) -> Response:
            return (answer if self.accept(request.header("host")) else refuse)(request)

        return guarded


def _name(header: str) -> str:
    """The host of a header, without its port and the brackets of IPv6."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


MESSAGE = (
    "this name of the server is not known to it, so that no page of another site can read it: use "
    "the server's address, or start polynya serve with --allowed-host and the name"
)


def _catalog_error(request: Request) -> Response:
    error = {"message": MESSAGE, "type": "ForbiddenException", "code": 403}
    body = json.dumps({"error": error}).encode()
    return Response(403, (("Content-Type", "application/json"),), body)


def _s3_error(request: Request) -> Response:
    return s3_error(403, "AccessDenied", MESSAGE)
