"""The client's address, scheme and host from a proxy's headers, if the user trusts the proxy.

Uvicorn reads X-Forwarded-For and X-Forwarded-Proto, from the right to the first address that is not
such a proxy's; X-Forwarded-Host is read here.
"""

from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware


class BehindProxies:
    """An application that gets the address, the scheme and the host of a client from proxies."""

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        """`proxies`: addresses and networks."""
        self._app = app
        # Uvicorn's types of ASGI are others than Starlette's.
        self._proxied: Any = ProxyHeadersMiddleware(app, [*proxies])  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        client = scope.get("client")
        if not client or client[0] not in self._proxied.trusted_hosts:
            await self._app(scope, receive, send)
            return
        await self._proxied(_with_host(scope), receive, send)


def _with_host(scope: Scope) -> Scope:
    """The scope with the host of the request to the proxy, if a header has it."""
    forwarded = dict(scope["headers"]).get(b"x-forwarded-host", b"")
    host = forwarded.rpartition(b",")[2].strip()
    if not host:
        return scope
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {**scope, "headers": [(b"host", host), *headers]}
