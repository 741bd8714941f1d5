"""Which requests a server answers: not those of other sites' pages, nor those for other servers."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from ..messages import Request, Response, to_text

MISDIRECTED = 421
"""The status of requests for another server (RFC 9110, section 15.5.20)."""
HTTP_PORT = 80
LOOPBACK = re.compile(r"(?:[a-z0-9._-]+\.)?(?:localhost\.?|127(?:\.[0-9]{1,3}){3})|\[::1\]")
"""Names of this machine, also after a bucket: `<bucket>.localhost` (RFC 6761), as S3 clients do."""
HOST_HEADER = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")

SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
OTHER_SITES = frozenset(("cross-site", "same-site"))
"""Values of Sec-Fetch-Site for pages of another origin."""
OPAQUE = "null"
"""The header Origin of a page without an origin; also of our own page, which sends no referrer."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts that the servers of this process are known by."""

    allowed: frozenset[str]
    """`name` or `name:port` in lower case, besides loopback names and addresses."""

    @classmethod
    def from_names(cls, allowed: Iterable[str]) -> "Hosts":
        """The hosts that the user allows."""
        return cls(frozenset(host.strip().lower() for host in allowed))

    def refusal(self, request: Request, port: int, *, is_s3: bool = False) -> str | None:
        """Why a request is not answered, in a sentence; None: it is.

        Args:
            port: the port that the request has come to.
            is_s3: the request is for S3, which is for programs: no page may read from it.
        """
        host = to_text(request.header("host")).strip().lower()
        # A page of any site can name this machine as its own address (DNS rebinding): the browser
        # then sends requests here, and gives the page the rows in the answers. Such a request has
        # the site's name in its header Host, which no browser leaves out. A name below `localhost`,
        # or an address, is none that a site can have.
        if host and not self._is_known(host, port):
            return (
                f"This server is not known as {host[:200]}. It answers to 127.0.0.1:{port} and "
                f"localhost:{port}; polynya serve --allow-host {host[:200]} adds this one."
            )
        if is_s3 and request.header("sec-fetch-mode") == "navigate":
            return "This is S3, for clients of the catalog: a browser shows nothing from here."
        # A page can also send requests to this machine's own names. It cannot read the answers, but
        # it could change something. Browsers say in Sec-Fetch-Site and Origin where a request comes
        # from (older ones, and requests to a name without TLS, have only Origin); other clients
        # send neither. A link of another site may lead to our page: it sends no Origin.
        changes = is_s3 or request.method not in SAFE_METHODS
        is_of_another = changes and request.header("sec-fetch-site") in OTHER_SITES
        if is_of_another or self._has_other_origin(request, host):
            return "A page of another site may neither read nor change anything here."
        return None

    def _has_other_origin(self, request: Request, host: str) -> bool:
        """Whether the header Origin names another site than the header Host."""
        origin = request.header("origin").strip().lower()
        is_own = origin == OPAQUE and request.header("sec-fetch-site") == "same-origin"
        # Behind a proxy that gives this server another name, the user allows that of the page.
        hosts = {"", host, *self.allowed}
        return not is_own and (origin == OPAQUE or origin.rpartition("://")[2] not in hosts)

    def _is_known(self, host: str, port: int) -> bool:
        match = HOST_HEADER.fullmatch(host)
        if match is None:
            return False
        is_own_port = int(match["port"] or HTTP_PORT) == port
        is_loopback = LOOPBACK.fullmatch(match["name"]) is not None and is_own_port
        return is_loopback or host in self.allowed or match["name"] in self.allowed


CATALOG_PATH = "/v1/"
"""The beginning of the catalog's paths; other paths are the page's, if there is one."""

HEALTH_PATH = "/health"
"""The only path of the catalog with another beginning."""


def refused(request: Request, reason: str) -> Response:
    """The answer to a request that is for another server, in the form that its client reads."""
    if is_for_catalog(request):
        error = {"message": reason, "type": "ForbiddenException", "code": MISDIRECTED}
        body, type_ = json.dumps({"error": error}), "application/json"
    else:
        title = "<title>Polynya</title>"
        body = f'<!doctype html><html lang="en">{title}<p>{escape(reason)}</p></html>'
        type_ = "text/html; charset=utf-8"
    policy = ("Content-Security-Policy", "default-src 'none'")
    return Response(MISDIRECTED, (("Content-Type", type_), policy), body.encode())


def is_for_catalog(request: Request) -> bool:
    return request.path.startswith(CATALOG_PATH) or request.path == HEALTH_PATH
