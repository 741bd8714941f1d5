"""An issuer of tokens: an identity provider with OpenID Connect, whose keys are discovered.

https://openid.net/specs/openid-connect-discovery-1_0.html; RFC 7519 specifies the tokens (JWT).
"""

import json
import time
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from joserfc import jwt
from joserfc.errors import ExpiredTokenError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from polynya.access.caller import TOKEN
from polynya.runtime.errors import Misconfigured, NotAuthorized, ServiceUnavailable
from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
)
"""The signature algorithms that are accepted: none with a shared secret."""

LEEWAY_SECONDS = 60
"""The greatest difference between the clocks of the issuer and of this machine."""

FRESH_SECONDS = 600
"""The age at which the keys are read again."""
STALE_SECONDS = 3600
"""How long the keys are used while the issuer does not answer."""
PAUSE_SECONDS = 10
"""The shortest time between two requests for keys, whatever causes them."""

WAIT_SECONDS = 1
"""How long a request waits while another one reads the keys."""

LONGEST_DOCUMENT = 1024 * 1024
LOOPBACK = {"localhost", "127.0.0.1", "::1"}


class Issuer:
    """Verifies the tokens of one issuer."""

    def __init__(self, url: str, audiences: Collection[str]) -> None:
        """Keep the settings; no request is sent yet.

        Args:
            url: the claim `iss` of its tokens; the discovery document is below it.
            audiences: a token has to name one of them as `aud`.

        Raises:
            Misconfigured: the URL is neither https nor on this machine.
        """
        if not is_trusted(url):
            raise Misconfigured(f"an issuer must be https://…, and {url} is not")
        self.url = url
        self._claims = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": url},
            aud={"essential": True, "values": [*audiences]},
            exp={"essential": True},
        )
        self._http = PoolManager(timeout=Timeout(connect=3, read=5), retries=Retry(1, redirect=0))
        self._lock = Lock()
        self._keys: KeySet | None = None
        self._description: Mapping[str, Any] = {}
        self._read = self._tried = float("-inf")

    def claims(self, token: str) -> Mapping[str, Any]:
        """The claims of a token, if this issuer has signed it for this server, and it is valid now.

        Raises:
            NotAuthorized: it is not.
            ServiceUnavailable: the keys of the issuer cannot be read now.
        """
        return flat(self._verified(token, self._claims))

    def signed_in(self, id_token: str, client_id: str, nonce: str) -> str:
        """The subject of an ID token, if it was made for this client and this request.

        https://openid.net/specs/openid-connect-core-1_0.html#IDTokenValidation

        Raises: as `claims`.
        """
        registry = jwt.JWTClaimsRegistry(
            leeway=LEEWAY_SECONDS,
            iss={"essential": True, "value": self.url},
            aud={"essential": True, "values": [client_id]},
            azp={"value": client_id},
            exp={"essential": True},
            sub={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        return str(self._verified(id_token, registry)["sub"])

    def exchanged(self, form: Mapping[str, str]) -> dict[str, Any]:
        """The tokens that the issuer gives for a code (RFC 6749, section 4.1.3).

        Raises:
            NotAuthorized: it gives none.
            ServiceUnavailable: it does not answer.
        """
        try:
            uri = str(self.described()["token_endpoint"])
            return self._answer("POST", uri, fields=form, encode_multipart=False)
        except HTTPError:
            raise ServiceUnavailable("the identity provider does not answer now") from None
        except (ValueError, KeyError):
            raise NotAuthorized("the identity provider does not accept this code") from None

    def _verified(self, token: str, registry: jwt.JWTClaimsRegistry) -> dict[str, Any]:
        try:
            try:
                decoded = jwt.decode(token, self._current_keys(), algorithms=ALGORITHMS)
            except InvalidKeyIdError:
                # The issuer may have a new key.
                decoded = jwt.decode(token, self._current_keys(again=True), algorithms=ALGORITHMS)
            registry.validate(_add_audience(decoded.claims))
            json.dumps(decoded.claims, ensure_ascii=False).encode()  # a lone surrogate raises
        except ExpiredTokenError:
            raise NotAuthorized("the token has expired: get a new one") from None
        except (JoseError, ValueError, TypeError) as error:
            # The library's messages name claims and algorithms, but no values.
            raise NotAuthorized(f"the token is not valid here: {error}") from None
        return decoded.claims

    def described(self) -> Mapping[str, Any]:
        """The issuer's discovery document, which has `token_endpoint`, for example.

        Raises:
            ServiceUnavailable: it cannot be read now.
        """
        self._current_keys()
        return self._description

    def _current_keys(self, *, again: bool = False) -> KeySet:
        # Anybody may cause a request to the issuer, and a slow one must not block the threads of
        # other requests: they go on with the keys that were read before.
        if self._lock.acquire(timeout=WAIT_SECONDS if again or self._are_stale() else 0):
            try:
                self._read_if_due(again)
            finally:
                self._lock.release()
        if self._keys is None or self._are_stale():
            raise ServiceUnavailable(f"the keys of the issuer {self.url} cannot be read now")
        return self._keys

    def _are_stale(self) -> bool:
        return time.monotonic() - self._read > STALE_SECONDS

    def _read_if_due(self, again: bool) -> None:
        now = time.monotonic()
        is_due = again or now - self._read > FRESH_SECONDS
        if is_due and now - self._tried > PAUSE_SECONDS:
            self._tried = now
            try:
                self._description = self._describe()
                self._keys = self._read_keys(self._description)
                self._read = now
            except (HTTPError, JoseError, ValueError, KeyError, TypeError):
                pass  # the old keys are used until they are stale

    def _describe(self) -> Mapping[str, Any]:
        uri = f"{self.url.rstrip('/')}/.well-known/openid-configuration"
        description = self._answer("GET", uri)
        if description["issuer"] != self.url:
            raise ValueError("the description is that of another issuer")
        return description

    def _read_keys(self, description: Mapping[str, Any]) -> KeySet:
        keys = self._answer("GET", description["jwks_uri"])["keys"]
        return KeySet.import_key_set({"keys": [key for key in keys if key.get("kty") != "oct"]})

    def _answer(self, method: str, url: str, **options: Any) -> dict[str, Any]:
        if not is_trusted(url):
            raise ValueError("the address is not https://…")
        answer = self._http.request(method, url, preload_content=False, **options)
        try:
            body = answer.read(LONGEST_DOCUMENT)
        finally:
            answer.release_conn()
        if answer.status != 200:
            raise ValueError(f"status {answer.status}")
        document = json.loads(body)
        if not isinstance(document, dict):
            raise ValueError("not an object")
        return document


def _add_audience(claims: Mapping[str, Any]) -> dict[str, Any]:
    """The claims, with `client_id` as the audience of a token that has none.

    Cognito's access tokens have none; API Gateway accepts them in the same way.
    """
    client = claims.get("client_id")
    return dict(claims) if "aud" in claims or client is None else {**claims, "aud": client}


def is_trusted(url: str) -> bool:
    """Whether what comes from an address can be trusted: by TLS, or from this machine."""
    try:
        parts = urlsplit(url)
        name = parts.hostname
    except ValueError:
        return False
    return bool(name) and (parts.scheme == "https" or (parts.scheme == "http" and name in LOOPBACK))


def flat(claims: Mapping[str, Any]) -> dict[str, Any]:
    """The claims as texts and lists of texts; a claim `b` in an object `a` gets the name `a.b`."""
    texts: dict[str, Any] = {}
    for name, value in claims.items():
        inner = {f"{name}.{key}": v for key, v in value.items()} if isinstance(value, dict) else {}
        for key, claim in (inner or {name: value}).items():
            if isinstance(claim, list):
                texts.setdefault(key, [_text(v) for v in claim if not isinstance(v, dict | list)])
            elif not isinstance(claim, dict) and claim is not None:
                texts.setdefault(key, _text(claim))
    # Only the file of tokens gives this claim; an issuer must not.
    texts.pop(TOKEN, None)
    return texts


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
