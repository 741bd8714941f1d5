"""People sign in at the page with an identity provider: OpenID Connect's code flow with PKCE.

https://openid.net/specs/openid-connect-core-1_0.html#CodeFlowAuth; RFC 7636 specifies PKCE,
RFC 9700 the other duties of a client. The client is public: it has no secret.
"""

import base64
import hmac
import re
from collections.abc import Mapping
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import urlencode, urlsplit

from polynya.access.caller import Caller
from polynya.runtime.errors import NotAuthorized, ServiceUnavailable

from .issuer import Issuer, is_trusted
from .sealed import Seal

SECONDS = 600
"""How long a sign-in at the identity provider may take."""

OWN_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
"""A path of this server, never read by a browser as the address of another one."""

ERROR = re.compile(r"[a-z_]{1,50}")


class SignIn:
    """Signs people in with one issuer."""

    def __init__(self, issuer: Issuer, client_id: str, scope: str, secret: bytes) -> None:
        """Keep the settings; no request is sent until somebody signs in.

        Args:
            client_id: of the page, as the issuer knows it.
            scope: the scopes to request.
            secret: as `Sessions`.
        """
        self._issuer, self._client_id, self._scope = issuer, client_id, scope
        self._seal = Seal(secret, "sign-in")

    @property
    def name(self) -> str:
        """The name under which people know the identity provider."""
        return urlsplit(self._issuer.url).netloc

    def begin(self, redirect_uri: str, path: str) -> tuple[str, str]:
        """The address at the identity provider, and the text of a cookie for the way back.

        Args:
            path: the page to return to.

        Raises:
            ServiceUnavailable: the issuer cannot be asked now.
        """
        page = str(self._issuer.described().get("authorization_endpoint", ""))
        if not is_trusted(page):
            raise ServiceUnavailable("the identity provider names no page where people sign in")
        once = {name: token_urlsafe(32) for name in ("state", "nonce", "verifier")}
        digest = sha256(once["verifier"].encode()).digest()
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": redirect_uri,
            "scope": self._scope,
            "state": once["state"],
            "nonce": once["nonce"],
            "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
            "code_challenge_method": "S256",
        }
        mark = "&" if urlsplit(page).query else "?"
        cookie = self._seal.sealed({**once, "path": own_path(path)}, SECONDS)
        return f"{page}{mark}{urlencode(query)}", cookie

    def finish(
        self, query: Mapping[str, str], cookie: str, redirect_uri: str
    ) -> tuple[Caller, str]:
        """The caller who has signed in, and the page to return to.

        Args:
            query: what the identity provider has sent.
            cookie: the text of the cookie of `begin`.

        Raises:
            NotAuthorized: nobody signed in, or it was in another browser or for another program.
            ServiceUnavailable: the issuer cannot be asked now.
        """
        begun = self._seal.opened(cookie)
        if not hmac.compare_digest(query.get("state", "").encode(), begun["state"].encode()):
            raise NotAuthorized("this is not the answer to a request of this browser")
        if query.get("iss", self._issuer.url) != self._issuer.url:
            raise NotAuthorized("this is the answer of another identity provider: sign in again")
        if "code" not in query:
            error = query.get("error", "")
            word = f": {error}" if ERROR.fullmatch(error) else ""
            raise NotAuthorized(f"nobody signed in at the identity provider{word}")
        tokens = self._issuer.exchanged(
            {
                "grant_type": "authorization_code",
                "code": query["code"],
                "redirect_uri": redirect_uri,
                "client_id": self._client_id,
                "code_verifier": begun["verifier"],
            }
        )
        claims = self._issuer.claims(_text(tokens, "access_token"))
        subject = self._issuer.signed_in(_text(tokens, "id_token"), self._client_id, begun["nonce"])
        if claims.get("sub") != subject:
            raise NotAuthorized("the two tokens are about different people: sign in again")
        return Caller(claims=claims), own_path(begun["path"])


def own_path(text: str) -> str:
    """The text if it is a path of this server, else `/`."""
    return text if OWN_PATH.fullmatch(text) else "/"


def _text(tokens: Mapping[str, Any], name: str) -> str:
    token = tokens.get(name)
    if not isinstance(token, str):
        raise NotAuthorized(f"the identity provider gives no {name}")
    return token
