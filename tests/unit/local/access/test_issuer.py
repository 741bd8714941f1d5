"""Tokens of an issuer on this machine, with keys of several kinds; and those that are no good.

The issuer signs as a program would that has its keys, or not: what a real identity provider sends
is in tests/e2e/access/test_keycloak.py.
"""

import base64
import hmac
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc import jws, jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey
from polynya.runtime.errors import Misconfigured, NotAuthorized, ServiceUnavailable
from polynya_local.access import issuer as module
from polynya_local.access.callers import Callers, token_of
from polynya_local.access.issuer import Issuer
from polynya_local.messages import Request

AUDIENCE = "lake"
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
OKP = OKPKey.generate_key("Ed25519", {"kid": "okp"})
OTHER = RSAKey.generate_key(2048, {"kid": "rsa"})
PUBLISHED = [RSA, EC, OKP]
ALGORITHMS = {"RS256": RSA, "RS512": RSA, "PS256": RSA, "ES256": EC, "Ed25519": OKP}
REGISTRY = jws.JWSRegistry(algorithms=[*ALGORITHMS, "HS256", "none"])


@dataclass
class Provider:
    """An identity provider on this machine."""

    keys: list[Any]
    url: str = ""
    asked: list[str] = field(default_factory=list)
    is_up: bool = True
    described: dict[str, Any] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    """What was asked for when somebody signed in, by the code that the client got; each holds
    once."""

    def signed_in(self, uri: str) -> dict[str, str]:
        """What the browser of somebody who signs in brings to the client, who has sent it here."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(uri).query).items()}
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked
        return {"code": code, "state": asked["state"]}

    def exchanged(self, form: dict[str, str]) -> dict[str, str] | None:
        """The tokens for a code; None: it is not for this client, or was used before."""
        asked = self.codes.pop(form["code"], {})
        digest = sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        same = all(asked.get(name) == form[name] for name in ("client_id", "redirect_uri"))
        if not same or asked["code_challenge"] != challenge:
            return None
        given = {"aud": asked["client_id"], "nonce": asked["nonce"], **self.id_claims}
        return {
            "access_token": self.token(preferred_username="ada"),
            "id_token": self.token(**given),
        }

    id_claims: dict[str, Any] = field(default_factory=dict)
    """Other claims of ID tokens."""

    def token(
        self,
        key: Any = RSA,
        algorithm: str = "RS256",
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A token with the usual claims, and others."""
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ada", "iat": now, "exp": now + 300}
        named = {name: claim for name, claim in {**usual, **claims}.items() if claim is not None}
        given = {"alg": algorithm, "kid": key.kid, **(header or {})}
        given = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(given, named, key, registry=REGISTRY)

    def document(self, path: str) -> Any:
        if path == "/.well-known/openid-configuration":
            usual = {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/keys",
                "token_endpoint": f"{self.url}/token",
                "authorization_endpoint": f"{self.url}/authorize",
            }
            return usual | self.described
        return {"keys": [key.as_dict(private=False) for key in self.keys]}


@contextmanager
def providing() -> Iterator[Provider]:
    provider = Provider([*PUBLISHED])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            provider.asked.append(self.path)
            body = json.dumps(provider.document(self.path)).encode()
            self.send_response(200 if provider.is_up else 500)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(text).items()}
            tokens = provider.exchanged(form)
            body = json.dumps(tokens or {"error": "invalid_grant"}).encode()
            self.send_response(200 if tokens else 400)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def provider() -> Iterator[Provider]:
    with providing() as one:
        yield one


@pytest.fixture
def clock(monkeypatch) -> Iterator[list[float]]:
    """The seconds of the clock by which keys are asked for again."""
    seconds = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: seconds[0])
    yield seconds


def claims(provider: Provider, token: str) -> dict[str, Any]:
    return dict(Issuer(provider.url, [AUDIENCE]).claims(token))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tokens_of_the_issuer_are_valid(provider, algorithm):
    token = provider.token(ALGORITHMS[algorithm], algorithm, groups=["a b", "c"], admin=True)
    found = claims(provider, token)
    assert found["sub"] == "ada" and found["groups"] == ["a b", "c"] and found["admin"] == "true"


def test_a_claim_in_a_claim_has_both_names_and_token_is_no_claim(provider):
    token = provider.token(realm_access={"roles": ["reader"]}, token="ada", n=None)
    found = claims(provider, token)
    assert found["realm_access.roles"] == ["reader"] and "token" not in found


def test_the_client_is_the_audience_of_a_token_without_one(provider):
    assert claims(provider, provider.token(aud=None, client_id=AUDIENCE))["sub"] == "ada"
    for wrong in ({"client_id": "other"}, {"client_id": [1]}, {"aud": "x", "client_id": AUDIENCE}):
        with pytest.raises(NotAuthorized):
            claims(provider, provider.token(**{"aud": None, **wrong}))


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def unsigned(provider: Provider) -> str:
    _, payload, _ = provider.token().split(".")
    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{payload}."


def signed_with_public_key(provider: Provider) -> str:
    """The key that everybody knows, as if it were a shared secret."""
    _, payload, _ = provider.token().split(".")
    text = f"{part({'alg': 'HS256', 'kid': 'rsa'})}.{payload}"
    signature = hmac.digest(RSA.as_pem(private=False), text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def with_own_key(provider: Provider) -> str:
    """The key is in the header."""
    return provider.token(OTHER, header={"jwk": OTHER.as_dict(private=False)})


def with_wrong_extension(provider: Provider) -> str:
    _, payload, signature = provider.token().split(".")
    return f"{part({'alg': 'RS256', 'kid': 'rsa', 'crit': 1})}.{payload}.{signature}"


def with_half_a_character(provider: Provider) -> str:
    payload = provider.token().split(".")[1]
    given = json.loads(base64.urlsafe_b64decode(f"{payload}=="))
    text = json.dumps({**given, "sub": "\ud800"})
    return jws.serialize_compact({"alg": "RS256", "kid": "rsa"}, text, RSA)


def with_other_payload(provider: Provider) -> str:
    header, _, signature = provider.token().split(".")
    _, payload, _ = provider.token(sub="root").split(".")
    return f"{header}.{payload}.{signature}"


WRONG = {
    "no signature": unsigned,
    "a public key as a secret": signed_with_public_key,
    "a key in the header": with_own_key,
    "another payload": with_other_payload,
    "another key of this name": lambda p: p.token(OTHER),
    "a key that is not published": lambda p: p.token(OTHER, header={"kid": "new"}),
    "no name of a key": lambda p: p.token(header={"kid": None}),
    "an address of keys in the header": lambda p: p.token(OTHER, header={"jku": f"{p.url}/mine"}),
    "an extension that has to be understood": lambda p: p.token(
        header={"crit": ["b64"], "b64": False}
    ),
    "an extension that is no list": with_wrong_extension,
    "half a character": with_half_a_character,
    "another kind of key": lambda p: p.token(EC, "ES256", header={"kid": "rsa"}),
    "a shared secret": lambda p: p.token(OctKey.import_key("x" * 32, {"kid": "rsa"}), "HS256"),
    "another audience": lambda p: p.token(aud="other"),
    "no audience": lambda p: p.token(aud=None),
    "an empty audience": lambda p: p.token(aud=[]),
    "expired": lambda p: p.token(exp=int(time.time()) - 3600),
    "never expires": lambda p: p.token(exp=None),
    "expires at a text": lambda p: p.token(exp="9999999999"),
    "not valid yet": lambda p: p.token(nbf=int(time.time()) + 3600),
    "of the future": lambda p: p.token(iat=int(time.time()) + 3600),
    "another issuer": lambda p: p.token(iss="https://other.example"),
    "no issuer": lambda p: p.token(iss=None),
    "an issuer with a slash": lambda p: p.token(iss=f"{p.url}/"),
    "no token": lambda p: "ada",
    "three empty parts": lambda p: "..",
    "a list": lambda p: f"{part({'alg': 'RS256'})}.{part([1])}.AAAA",
    "deeply nested": lambda p: (
        f"{part({'alg': 'RS256'})}.{base64.urlsafe_b64encode(b'[' * 9000).decode()}.AAAA"
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_other_tokens_are_not_valid(provider, what):
    token = WRONG[what](provider)
    with pytest.raises(NotAuthorized):
        claims(provider, token)
    callers = Callers(None, [Issuer(provider.url, [AUDIENCE])])
    request = Request("GET", "/", "", (("Authorization", f"Bearer {token}"),), None)
    with pytest.raises(NotAuthorized):
        callers.bearer(token_of(request))


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YWRhOng=", "x" * 20_000])
def test_a_request_without_a_token_has_no_caller(provider, header):
    callers = Callers(None, [Issuer(provider.url, [AUDIENCE])])
    with pytest.raises(NotAuthorized):
        callers.bearer(token_of(Request("GET", "/", "", (("Authorization", header),), None)))


def test_keys_are_asked_for_once_and_again_for_a_new_one(provider, clock):
    issuer, token = Issuer(provider.url, [AUDIENCE]), provider.token()
    for _ in range(3):
        issuer.claims(token)
    assert provider.asked == ["/.well-known/openid-configuration", "/keys"]
    new = RSAKey.generate_key(2048, {"kid": "new"})
    for seconds, requests in ((1, 2), (11, 4), (1, 4), (11, 6)):
        clock[0] += seconds
        with pytest.raises(NotAuthorized):
            issuer.claims(provider.token(new))
        # Whoever sends tokens with made-up keys causes no more than one request in ten seconds.
        assert len(provider.asked) == requests
    provider.keys = [new]
    clock[0] += 11
    assert issuer.claims(provider.token(new))["sub"] == "ada"
    # A key that the issuer has taken back is not used any more.
    with pytest.raises(NotAuthorized):
        issuer.claims(token)


def test_keys_hold_for_an_hour_if_the_issuer_does_not_answer(provider, clock):
    issuer, token = Issuer(provider.url, [AUDIENCE]), provider.token()
    issuer.claims(token)
    provider.is_up = False
    clock[0] += 3500
    assert issuer.claims(token)
    clock[0] += 200
    with pytest.raises(ServiceUnavailable):
        issuer.claims(token)
    provider.is_up = True
    clock[0] += 20
    assert issuer.claims(token)


def test_an_issuer_that_answers_slowly_keeps_nobody_waiting(provider, monkeypatch):
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.1)
    issuer, token = Issuer(provider.url, [AUDIENCE]), provider.token()
    is_asked, may_answer = threading.Event(), threading.Event()
    describe = issuer._describe

    def slowly() -> dict[str, Any]:
        is_asked.set()
        assert may_answer.wait(10)
        return describe()

    monkeypatch.setattr(issuer, "_describe", slowly)
    with ThreadPoolExecutor() as threads:
        first = threads.submit(issuer.claims, token)
        assert is_asked.wait(10)
        with pytest.raises(ServiceUnavailable):
            issuer.claims(token)
        may_answer.set()
        assert first.result()["sub"] == "ada"
        is_asked.clear(), may_answer.clear()
        monkeypatch.setattr(module, "FRESH_SECONDS", 0)
        monkeypatch.setattr(module, "PAUSE_SECONDS", 0)
        second = threads.submit(issuer.claims, token)
        assert is_asked.wait(10)
        assert issuer.claims(token)["sub"] == "ada"
        may_answer.set()
        assert second.result()["sub"] == "ada"


@pytest.mark.parametrize(
    "described",
    [
        {"issuer": "https://other.example"},
        {"jwks_uri": "http://other.example/keys"},
        {"jwks_uri": "file:///etc/passwd"},
        {"jwks_uri": None},
    ],
)
def test_a_wrong_description_gives_no_keys(provider, described):
    provider.described = described
    with pytest.raises(ServiceUnavailable):
        Issuer(provider.url, [AUDIENCE]).claims(provider.token())


@pytest.mark.parametrize("url", ["http://idp.example", "idp.example", "", "file:///x", "https://"])
def test_an_issuer_is_one_to_trust(url):
    with pytest.raises(Misconfigured, match="must be https"):
        Issuer(url, [AUDIENCE])


def test_two_issuers_do_not_speak_for_each_other(provider):
    with providing() as other:
        other.keys = [OTHER]
        callers = Callers(None, [Issuer(p.url, [AUDIENCE]) for p in (provider, other)])
        first, second = callers.bearer(provider.token()), callers.bearer(other.token(OTHER))
        assert (first.is_of_other_issuer, second.is_of_other_issuer) == (False, True)
        assert first.claims["sub"] == second.claims["sub"] == "ada"
        for token in (other.token(OTHER, iss=provider.url), provider.token(iss=other.url)):
            with pytest.raises(NotAuthorized):
                callers.bearer(token)
