"""Signing in at the page, and what thieves and forgers of sessions get: nothing.

The identity provider is one of this machine (`test_issuer`), which checks what a real one checks;
Keycloak is in tests/e2e/access/test_keycloak.py.
"""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey
from polynya.access.caller import TOKEN, Caller
from polynya_local.access import request_rate, sealed
from polynya_local.access.access import Access
from polynya_local.access.sealed import Seal
from polynya_local.access.settings import AccessSettings
from polynya_local.access.sign_in import own_path
from polynya_local.access.token_file import new_line
from polynya_local.messages import Request, Response
from polynya_local.page.login import ATTEMPTS_AT_ONCE, Login

from tests.unit.local.access.test_issuer import AUDIENCE, Provider, part, providing

URI = "http://127.0.0.1:8181"
SECRET = b"s" * 32


class Form:
    def __init__(self, fields: dict[str, str]) -> None:
        self._text = urlencode(fields)

    def read(self) -> bytes:
        return self._text.encode()


@dataclass
class Browser:
    """A browser, which keeps cookies, and the page of a server."""

    login: Login
    cookies: dict[str, str]
    scheme: str = "http"
    address: str = "10.0.0.7"

    def asked(
        self, path: str, form: dict[str, str] | None = None, **headers: str
    ) -> Caller | Response:
        path, _, query = path.partition("?")
        sent = {"host": "127.0.0.1:8181", **headers}
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        method, body = ("GET", None) if form is None else ("POST", Form(form))
        request = Request(method, path, query, tuple(sent.items()), body, self.address, self.scheme)
        answer = self.login.admit(request)
        for name, value in answer.headers if isinstance(answer, Response) else ():
            if name == "Set-Cookie":
                cookie, _, attributes = value.partition(";")
                name, _, text = cookie.partition("=")
                assert "HttpOnly" in attributes and "SameSite=Lax" in attributes
                assert ("Secure" in attributes) == name.startswith("__Host-")
                self.cookies.pop(name, None)
                if "Max-Age=0" not in attributes:
                    self.cookies[name] = text
        return answer

    def sign_in(self, token: str, path: str = "/") -> Response:
        answer = self.asked("/login", {"token": token, "next": path})
        assert isinstance(answer, Response)
        return answer

    @property
    def who(self) -> str:
        """Who the server takes it for; empty: nobody."""
        answer = self.asked("/")
        return answer.identity if isinstance(answer, Caller) else ""


@dataclass
class Server:
    """What a test needs of a server."""

    settings: AccessSettings
    tokens: Path
    audit: Path
    token: str
    provider: Provider

    def browser(self, **given: Any) -> Browser:
        access = Access(replace(self.settings, **given), URI)
        return Browser(Login(access, URI), {})

    def recorded(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@pytest.fixture
def server(tmp_path) -> Iterator[Server]:
    token, line = new_line("ada")
    (tmp_path / "tokens").write_text(f"{line}\n")
    audit = tmp_path / "audit.log"
    with providing() as provider:
        settings = AccessSettings(
            tokens=tmp_path / "tokens",
            issuers=(provider.url,),
            audiences=(AUDIENCE,),
            audit_log=str(audit),
            client="page",
            scope="openid",
            request_rate=None,
            secret=SECRET,
        )
        yield Server(settings, tmp_path / "tokens", audit, token, provider)


def location(answer: Caller | Response) -> str:
    assert isinstance(answer, Response) and answer.status == 303, answer
    return answer.header("location") or ""


# With a token


def test_a_token_of_the_file_begins_a_session_and_signing_out_ends_it(server):
    browser = server.browser()
    assert location(browser.asked("/tables/a/b?x=1")) == "/login?next=%2Ftables%2Fa%2Fb%3Fx%3D1"
    assert location(browser.sign_in(server.token, "/tables/a/b?x=1")) == "/tables/a/b?x=1"
    assert browser.who == "token=ada"
    assert location(browser.asked("/logout", {})) == "/login"
    assert browser.cookies == {} and browser.who == ""
    lines = [(line["operation"], line.get("who"), line["status"]) for line in server.recorded()]
    assert ("login", "token=ada", 303) in lines and ("logout", "token=ada", 303) in lines
    assert server.token not in server.audit.read_text()


def test_another_token_begins_none(server):
    browser = server.browser()
    for token in ("", "x", server.token[:-1], "page.x", "a.b.c", server.tokens.read_text()):
        answer = browser.sign_in(token, "/changes")
        assert answer.status == 401 and browser.cookies == {}
        assert b"Sign in" in answer.body and server.token.encode() not in answer.body
        assert b'name="next" value="/changes"' in answer.body
    refused = [line for line in server.recorded() if line["operation"] == "login"]
    assert len(refused) == 6 and {line["status"] for line in refused} == {401}


def test_a_program_gets_401_and_may_send_a_token_instead(server):
    browser = server.browser()
    answer = browser.asked("/changes?format=json")
    assert answer.status == 401 and json.loads(answer.body)["error"]["code"] == 401
    caller = browser.asked("/changes", authorization=f"Bearer {server.token}")
    assert isinstance(caller, Caller) and caller.identity == "token=ada"
    assert browser.asked("/changes", authorization="Bearer x").status == 401


def test_a_session_ends_when_its_token_is_taken_back(server, monkeypatch):
    browser = server.browser()
    browser.sign_in(server.token)
    monkeypatch.setattr("polynya_local.access.token_file.LOOK_SECONDS", -1)
    before = server.tokens.read_text()
    for others in (new_line("bob")[1], new_line("ada")[1], f"eve {before.split()[1]}", ""):
        server.tokens.write_text(f"{others}\n")
        assert browser.who == "", others
    server.tokens.write_text(before)
    assert browser.who == "token=ada"


def test_a_file_that_cannot_be_read_lets_nobody_in(server, monkeypatch):
    browser = server.browser()
    browser.sign_in(server.token)
    monkeypatch.setattr("polynya_local.access.token_file.LOOK_SECONDS", -1)
    server.tokens.write_text("broken")
    answer = browser.asked("/")
    assert answer.status == 500 and str(server.tokens).encode() not in answer.body


SESSION = "polynya-session"
NOW = {"who": {TOKEN: "ada"}, "exp": 2**40}


def forged(server: Server, browser: Browser) -> dict[str, str]:
    """Texts of cookies that this server has not made as sessions."""
    own = browser.cookies[SESSION]
    head, body, seal = own.split(".")
    of_token = sealed.jwt.decode(own, Seal(SECRET, "session")._key, algorithms=["HS256"]).claims
    everything = {**NOW, "token": of_token["token"]}
    key = OctKey.import_key(SECRET)
    signed_in = Seal(SECRET, "sign-in").sealed({"who": {TOKEN: "ada"}, "token": "x"}, 60)
    return {
        "empty": "",
        "a word": "x",
        "another body": f"{head}.{body[:-4]}AAAA.{seal}",
        "another seal": f"{head}.{body}.{seal[:-4]}AAAA",
        "no seal": f"{head}.{body}.",
        "the algorithm none": f"{part({'alg': 'none'})}.{part(everything)}.",
        "the secret itself as the key": jwt.encode({"alg": "HS256"}, everything, key),
        "another secret": Seal(b"t" * 32, "session").sealed(everything, 60),
        "another purpose": signed_in,
        "the token of the process that reads rows": Seal(SECRET, "reader").sealed(everything, 60),
        "over": Seal(SECRET, "session").sealed(everything, -1),
        "the token": server.token,
    }


def test_no_forged_session_is_one(server):
    browser = server.browser()
    browser.sign_in(server.token)
    own = browser.cookies[SESSION]
    for what, text in forged(server, browser).items():
        browser.cookies = {SESSION: text}
        assert browser.who == "", what
    browser.cookies = {SESSION: own}
    assert browser.who == "token=ada"
    assert server.browser(secret=b"u" * 32).who == ""


def test_a_session_is_no_token_for_the_catalog(server):
    browser = server.browser()
    browser.sign_in(server.token)
    texts = forged(server, browser) | {"the session": browser.cookies[SESSION]}
    del texts["the token"], texts["the token of the process that reads rows"]
    for what, text in texts.items():
        for token in (text, f"page.{text}"):
            headers = (("authorization", f"Bearer {token}"),)
            answer = browser.login._access.admit(Request("GET", "/v1/config", "", headers, None))
            assert isinstance(answer, Response), what


def test_the_process_that_reads_rows_acts_as_the_caller(server):
    access = Access(server.settings, URI)
    caller = Caller(claims={"iss": "x", "sub": "ada"}, is_of_other_issuer=True)
    token = access.sessions.reader_token(caller)
    request = Request("GET", "/v1/config", "", (("authorization", f"Bearer {token}"),), None)
    assert access.admit(request) == caller
    browser = server.browser()
    assert browser.sign_in(token).status == 401


def test_a_session_that_somebody_brings_along_is_not_taken_over(server):
    """Fixation: signing in always makes a new text, and no cookie without a seal is accepted."""
    browser = server.browser()
    browser.cookies = {SESSION: "chosen by somebody else"}
    browser.sign_in(server.token)
    first = browser.cookies[SESSION]
    assert first != "chosen by somebody else" and browser.who == "token=ada"


def test_over_tls_cookies_are_for_this_host_alone(server):
    browser = server.browser()
    browser.scheme = "https"
    browser.sign_in(server.token)
    assert list(browser.cookies) == [f"__Host-{SESSION}"] and browser.who == "token=ada"
    # One without TLS, which others on the way could have set, is none there.
    browser.cookies = {SESSION: browser.cookies[f"__Host-{SESSION}"]}
    assert browser.who == ""


ELSEWHERE = [
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "\\\\evil.example",
    "/a\\..\\..\\b",
    "javascript:alert(1)",
    "/x\r\nSet-Cookie: a=b",
    "/x y",
    "evil.example",
    "",
]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_nobody_is_sent_elsewhere_after_signing_in(server, path):
    assert own_path(path) == "/"
    browser = server.browser()
    answer = browser.sign_in(server.token, path)
    assert location(answer) == "/"
    assert all("\n" not in value and "\r" not in value for _, value in answer.headers)


def test_attempts_are_limited_by_address_in_each_spelling(server, monkeypatch):
    browser = server.browser()
    addresses = ["10.0.0.9", "::ffff:10.0.0.9", "::FFFF:0a00:0009", "0:0:0:0:0:ffff:a00:9"]
    statuses = []
    for attempt in range(ATTEMPTS_AT_ONCE + 3):
        browser.address = addresses[attempt % len(addresses)]
        statuses.append(browser.sign_in("x").status)
    assert statuses == [401] * ATTEMPTS_AT_ONCE + [429] * 3
    answer = browser.sign_in(server.token)
    assert answer.status == 429 and int(answer.header("retry-after") or 0) >= 1
    browser.address = "2001:db8::1"
    assert browser.sign_in(server.token).status == 303


# With an identity provider


def callback(browser: Browser, answer: dict[str, str]) -> Caller | Response:
    return browser.asked(f"/login/callback?{urlencode(answer)}")


def test_an_identity_provider_signs_somebody_in(server):
    browser = server.browser()
    page = browser.asked("/login?next=%2Fchanges")
    assert b'href="/login/begin?next=%2Fchanges"' in page.body
    uri = location(browser.asked("/login/begin?next=%2Fchanges"))
    asked = parse_qs(urlsplit(uri).query)
    assert uri.startswith(f"{server.provider.url}/authorize?")
    assert asked["client_id"] == ["page"] and asked["scope"] == ["openid"]
    assert asked["redirect_uri"] == [f"{URI}/login/callback"]
    assert location(callback(browser, server.provider.signed_in(uri))) == "/changes"
    assert browser.who == f"iss={server.provider.url} sub=ada"
    assert list(browser.cookies) == [SESSION]  # the one of the way is gone
    # The browser gets none of the tokens.
    held = base64.urlsafe_b64decode(browser.cookies[SESSION].split(".")[1] + "==")
    assert json.loads(held).keys() == {"who", "token", "exp"} and b"eyJ" not in held


def begun(server: Server) -> tuple[Browser, dict[str, str]]:
    browser = server.browser()
    uri = location(browser.asked("/login/begin?next=/"))
    return browser, server.provider.signed_in(uri)


def test_without_the_cookie_of_the_beginning_nobody_is_signed_in(server):
    """Somebody else's answer in a link: the visitor would work under another's name."""
    _, answer = begun(server)
    victim = server.browser()
    assert callback(victim, answer).status == 401 and victim.who == ""
    uri = location(victim.asked("/login/begin?next=/"))
    server.provider.signed_in(uri)
    assert callback(victim, answer).status == 401 and victim.who == ""


@pytest.mark.parametrize(
    "change",
    [
        {"state": ""},
        {"state": "x"},
        {"state": None},
        {"code": "of another client"},
        {"code": None},
        {"code": None, "error": "access_denied"},
        {"code": None, "error": "<script>alert(1)</script>"},
        {"iss": "https://evil.example"},
    ],
)
def test_another_answer_signs_nobody_in(server, change):
    browser, answer = begun(server)
    changed = {n: v for n, v in {**answer, **change}.items() if v is not None}
    refused = callback(browser, changed)
    assert refused.status == 401 and browser.who == "" and b"<script>" not in refused.body
    # Once refused, the right answer does not help either.
    assert callback(browser, answer).status == 401


def test_an_answer_holds_once(server):
    browser, answer = begun(server)
    way = dict(browser.cookies)
    assert callback(browser, answer).status == 303
    browser.cookies = way
    assert callback(browser, answer).status == 401 and browser.who == ""


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": None},
        {"nonce": "of before"},
        {"aud": "another client"},
        {"aud": ["page", "x"], "azp": "x"},
        {"iss": "https://evil.example"},
        {"exp": 1},
        {"sub": "eve"},
        {"sub": None},
    ],
)
def test_an_id_token_that_is_not_for_this_request_signs_nobody_in(server, claims):
    browser, answer = begun(server)
    server.provider.id_claims = claims
    assert callback(browser, answer).status == 401 and browser.who == ""


def test_the_code_of_another_client_signs_nobody_in(server):
    """It was made for another client of the provider, or for another verifier."""
    browser, answer = begun(server)
    other = server.browser(client="another")
    uri = location(other.asked("/login/begin?next=/"))
    stolen = server.provider.signed_in(uri)["code"]
    assert callback(browser, {**answer, "code": stolen}).status == 401 and browser.who == ""
    again = server.browser()
    uri = location(again.asked("/login/begin?next=/"))
    own = server.provider.signed_in(uri)
    _, of_another_browser = begun(server)
    assert callback(again, {**own, "code": of_another_browser["code"]}).status == 401


def test_the_provider_cannot_send_people_to_a_page_that_is_not_safe(server):
    server.provider.described = {"authorization_endpoint": "http://evil.example/authorize"}
    assert server.browser().asked("/login/begin?next=/").status == 503


def test_a_host_that_is_not_public_is_in_no_redirect(server):
    """What `Host` names is checked before; behind a proxy with TLS it is the public one."""
    access = Access(server.settings, "https://lake.example")
    browser = Browser(Login(access, "https://lake.example"), {})
    uri = location(browser.asked("/login/begin?next=/", host="lake.example"))
    assert "redirect_uri=https%3A%2F%2Flake.example%2Flogin%2Fcallback" in uri
    assert list(browser.cookies) == ["__Host-polynya-sign-in"]


def test_without_a_client_there_is_a_form_alone(server):
    browser = server.browser(client=None)
    page = browser.asked("/login")
    assert b"/login/begin" not in page.body and b'name="token"' in page.body
    assert browser.asked("/login/begin").status == 401
    assert browser.asked("/login/callback?code=x&state=y").status == 401


def test_claims_that_fit_in_no_cookie_are_refused_in_words(server):
    many = server.provider.token(groups=[os.urandom(30).hex() for _ in range(100)])
    answer = server.browser().sign_in(many)
    assert answer.status == 400 and b"fewer of them" in answer.body


def test_a_session_of_claims_ends_with_them_and_with_their_issuer(server):
    browser = server.browser()
    assert browser.sign_in(server.provider.token()).status == 303
    assert browser.who == f"iss={server.provider.url} sub=ada"
    other = server.browser(issuers=("https://other.example",))
    other.cookies = browser.cookies
    assert other.who == ""
    first = server.browser(issuers=("https://other.example", server.provider.url))
    first.cookies = browser.cookies
    caller = first.asked("/")
    assert isinstance(caller, Caller) and caller.is_of_other_issuer


def test_pages_have_the_headers_of_pages_and_are_kept_by_nobody(server):
    browser = server.browser()
    for answer in (browser.asked("/"), browser.asked("/login"), browser.sign_in("x")):
        headers = {name.lower(): value for name, value in answer.headers}
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "form-action 'self'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert [v for n, v in answer.headers if n.lower() == "cache-control"][-1] == "no-store"


# Requests


def test_requests_are_limited_by_caller_and_by_address(server):
    browser = server.browser(request_rate=1.0)
    access = browser.login._access

    def status(token: str, address: str = "10.0.0.7") -> int:
        headers = (("authorization", f"Bearer {token}"),)
        answer = access.admit(Request("GET", "/v1/config", "", headers, None, address))
        return answer.status if isinstance(answer, Response) else 200

    burst = request_rate.BURST_SECONDS
    assert [status(server.token) for _ in range(burst + 1)] == [200] * burst + [429]
    # Not by another address: it is the caller who counts.
    assert status(server.token, "10.0.0.8") == 429
    assert [status("x", "10.0.0.9") for _ in range(burst + 1)] == [401] * burst + [429]
    assert status(server.provider.token(), "10.0.0.9") == 429
    assert status(server.provider.token(), "10.0.0.10") == 200
    answer = access.admit(Request("GET", "/v1/config", "", (), None, "10.0.0.9"))
    assert isinstance(answer, Response) and int(answer.header("retry-after") or 0) >= 1
    error = json.loads(answer.body)["error"]
    assert (error["type"], error["code"]) == ("TooManyRequestsException", 429)
    assert server.recorded()[-1]["refused"] == "TooManyRequestsException"
