"""Who sends a request: the bearer of a token from the server's file, or from an issuer."""

import base64
import binascii
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, unquote_plus

from polynya.access.caller import TOKEN, Caller
from polynya.runtime.errors import Misconfigured, NotAuthorized, PolynyaError

from ..messages import Request, Response
from .issuer import Issuer
from .token_file import TokenFile

logger = logging.getLogger(__name__)

OAUTH_PATH = "/v1/oauth/tokens"
"""Where clients with a `credential` get a token (the REST document's getToken)."""

LONGEST_TOKEN = 16 * 1024

NO_STORE = (("Cache-Control", "no-store"), ("Content-Type", "application/json"))


class Callers:
    """Knows callers by their tokens."""

    def __init__(self, tokens: TokenFile | None, issuers: Sequence[Issuer]) -> None:
        """The policy is about the first issuer, unless a rule names others."""
        self._tokens, self.issuers = tokens, issuers

    def bearer(self, token: str) -> Caller:
        """The bearer of a token.

        Raises:
            NotAuthorized: this server does not know it, or it is not valid now.
            Misconfigured, ServiceUnavailable: it cannot be verified now.
        """
        if len(token) > LONGEST_TOKEN:
            raise NotAuthorized("the token is too long")
        if self._tokens and (name := self._tokens.name_of(token)) is not None:
            return Caller(claims={TOKEN: name})
        if (issuer := self._issuer(_named_issuer(token))) is not None:
            return self._issuer_caller(issuer, issuer.claims(token))
        raise NotAuthorized("this server knows neither the token nor its issuer: get a new token")

    def recheck(self, claims: Mapping[str, Any], token_hash: str) -> Caller:
        """Check that a caller who was known before is known now.

        Args:
            claims: those of the caller.
            token_hash: the hash of the token, if it was one of the file.

        Raises:
            NotAuthorized: the token is no longer in the file, or this server does not know the
                issuer.
            Misconfigured: as `TokenFile.name_of_hash`.
        """
        if TOKEN in claims:
            if self._tokens and self._tokens.name_of_hash(token_hash) == claims[TOKEN]:
                return Caller(claims=claims)
        elif (issuer := self._issuer(claims.get("iss"))) is not None:
            return self._issuer_caller(issuer, claims)
        raise NotAuthorized("the session has ended: sign in again")

    def _issuer(self, url: str | None) -> Issuer | None:
        return next((issuer for issuer in self.issuers if issuer.url == url), None)

    def _issuer_caller(self, issuer: Issuer, claims: Mapping[str, Any]) -> Caller:
        return Caller(claims=claims, is_of_other_issuer=issuer is not self.issuers[0])

    def token_uri(self, catalog_uri: str) -> str:
        """Where clients get tokens for an id and a secret; empty: it is not known now."""
        if self._tokens is not None:
            return catalog_uri + OAUTH_PATH
        try:
            return str(self.issuers[0].described().get("token_endpoint", ""))
        except PolynyaError:
            return ""

    def token_answer(self, request: Request, catalog_uri: str) -> Response:
        """The answer to a client that sends an id and a secret: those of the file of tokens.

        https://datatracker.ietf.org/doc/html/rfc6749#section-4.4
        """
        try:
            form = parse_qs(request.body.read().decode("utf-8", "replace"), max_num_fields=20)
        except ValueError:
            return _oauth_error("invalid_request", "the body is not a token request")
        secret = form.get("client_secret", [""])[0]
        id_ = form.get("client_id", [""])[0]
        scheme, _, basic = request.header("authorization").partition(" ")
        if scheme.lower() == "basic":
            id_, secret = _basic(basic)
        if form.get("grant_type") != ["client_credentials"]:
            return _oauth_error("unsupported_grant_type", "grant_type must be client_credentials")
        if self._tokens is None:
            where = self.token_uri(catalog_uri) or "the identity provider"
            words = f"tokens come from {where}: set oauth2-server-uri in the client to that address"
            return _oauth_error("invalid_request", words)
        try:
            name = self._tokens.name_of(secret)
        except PolynyaError:
            return _oauth_error("server_error", "the file of tokens cannot be read", 503)
        if not secret or name is None or id_ not in {"", name}:
            return _oauth_error("invalid_client", "unknown client id, or wrong secret", 401)
        answer = {
            "access_token": secret,
            "token_type": "bearer",
            "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
        }
        return Response(200, NO_STORE, json.dumps(answer).encode())


def token_of(request: Request) -> str:
    """The token of a request.

    Raises:
        NotAuthorized: it has none.
    """
    scheme, _, token = request.header("authorization").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAuthorized("send a token: the header Authorization: Bearer …")
    return token.strip()


def refusal(error: PolynyaError) -> Response:
    """The answer to a request whose caller is not known, or cannot be known now."""
    if isinstance(error, Misconfigured):
        logger.error("all requests are refused: %s", error)
        # Strangers need not know where files of the server are.
        error = Misconfigured("the server cannot identify callers; its log says why")
    headers = [("Content-Type", "application/json")]
    if isinstance(error, NotAuthorized):
        headers.append(("WWW-Authenticate", "Bearer"))
    if error.retry_after:
        headers.append(("Retry-After", str(error.retry_after)))
    return Response(
        error.status, tuple(headers), json.dumps({"error": error.rest_model()}).encode()
    )


def _named_issuer(token: str) -> str | None:
    """The issuer that a token names; it is not verified."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
    except (ValueError, RecursionError):
        return None
    issuer = claims.get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else None


def _basic(text: str) -> tuple[str, str]:
    """Id and secret of the header Authorization (RFC 6749, section 2.3.1); empty: it is wrong."""
    try:
        id_, _, secret = base64.b64decode(text.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return unquote_plus(id_), unquote_plus(secret)


def _oauth_error(error: str, words: str, status: int = 400) -> Response:
    """An error of RFC 6749, section 5.2."""
    body = {"error": error, "error_description": words}
    return Response(status, NO_STORE, json.dumps(body).encode())
