"""Admits callers: checks tokens, vends keys for S3, and writes the audit log."""

from collections.abc import Mapping

from polynya.access.caller import ANYBODY, Caller
from polynya.access.vended_credentials import CredentialVending, vending_of_settings
from polynya.runtime.errors import NotAuthorized, PolynyaError
from polynya.runtime.metrics import count_refusal
from polynya.runtime.settings import Config
from polynya.storage.aws import Clients
from starlette.types import Message, Scope, Send

from ..messages import Request, Response
from .audit_log import ROUTED, AuditLog
from .callers import OAUTH_PATH, refusal, token_of
from .request_rate import RequestRate, TooManyRequests
from .sessions import Sessions, is_of_reader
from .settings import AccessSettings
from .table_keys import KeyVending, TableKeys

HEALTH_PATH = "/health"
"""The path of a load balancer's health check, which needs no token."""

DELEGATION = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
"""Java's clients ask for keys only if a header says so."""


class Access:
    """Decides who may call a server; each of its processes has one."""

    def __init__(self, settings: AccessSettings, catalog_uri: str) -> None:
        """Read the file of tokens.

        Args:
            catalog_uri: the address that clients use.

        Raises:
            Misconfigured: as `AccessSettings.callers`, and `AuditLog`.
        """
        self._callers = settings.callers()
        self._catalog_uri = catalog_uri
        self.sessions = Sessions(settings.secret, self._callers)
        self.sign_in = settings.sign_in(self._callers)
        self.rate = RequestRate(settings.request_rate)
        self.keys = TableKeys(settings.secret)
        self.audit = AuditLog(settings.audit_log)

    def vending(self, config: Config, aws: Clients) -> CredentialVending:
        """What vends keys for the tables of a lake: the server's own keys, or the store's."""
        return vending_of_settings(config, aws) or KeyVending(config, aws, self.keys)

    def client_properties(self) -> Mapping[str, str]:
        """What getConfig tells clients: to ask for keys, and where tokens come from."""
        uri = self._callers.token_uri(self._catalog_uri)
        return {**DELEGATION, **({"oauth2-server-uri": uri} if uri else {})}

    def admit(self, request: Request) -> Caller | Response:
        """The caller of a request; or the answer, if it is refused or asks for a token."""
        if request.path == HEALTH_PATH:
            return ANYBODY
        try:
            self.rate.check(request.client)
            if is_for_token(request):
                self.rate.take(request.client)
                response = self._callers.token_answer(request, self._catalog_uri)
                self.write(request, "getToken", "", response.status)
                return response
            return self.counted(request, self._caller(request))
        except PolynyaError as error:
            self.refused(request, error)
            return refusal(error)

    def counted(self, request: Request, caller: Caller) -> Caller:
        """Count a request of a caller; returns the caller.

        Raises:
            TooManyRequests: the caller has sent too many.
        """
        self.rate.take(request.client, caller.identity)
        return caller

    def refused(self, request: Request, error: PolynyaError, operation: str = "") -> None:
        """Record and count a request that is refused."""
        if isinstance(error, TooManyRequests):
            count_refusal(error.type)
        else:
            self.rate.miss(request.client)
        code = "no valid token" if isinstance(error, NotAuthorized) else error.type
        self.write(request, operation or request.method, "", error.status, refused=code)

    def _caller(self, request: Request) -> Caller:
        token = token_of(request)
        return self.sessions.reader(token) if is_of_reader(token) else self._callers.bearer(token)

    def recording(self, request: Request, scope: Scope, caller: Caller, send: Send) -> Send:
        """`send`, which writes a line of the audit log when the answer to a request begins."""

        async def recorded(message: Message) -> None:
            if message["type"] == "http.response.start" and request.path != HEALTH_PATH:
                # The router has added the function of the route, and the parameters in the path.
                routed = scope.get(ROUTED, scope)
                operation = getattr(routed.get("endpoint"), "__name__", request.method)
                names = routed.get("path_params", {})
                self.write(request, operation, caller.identity, message["status"], names)
            await send(message)

        return recorded

    def write(
        self,
        request: Request,
        operation: str,
        who: str,
        status: int,
        names: Mapping[str, str] | None = None,
        refused: str = "",
    ) -> None:
        """Write a line of the audit log."""
        names = names or {}
        self.audit.write(
            who=who,
            address=request.client,
            operation=operation,
            lake=names.get("prefix", ""),
            namespace=names.get("namespace", ""),
            table=names.get("table") or names.get("view") or names.get("name", ""),
            status=status,
            refused=refused,
        )


def is_for_token(request: Request) -> bool:
    """Whether a request asks for a token, which anybody may do."""
    return (request.method, request.path) == ("POST", OAUTH_PATH)
