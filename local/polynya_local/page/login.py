"""People sign in with a token or with an identity provider; a cookie identifies them afterwards.

`Login` is asked about each request to the page before anything else answers it.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlencode, urlsplit

from polynya.access.caller import ANYBODY, Caller
from polynya.runtime.errors import Misconfigured, NotAuthorized, PolynyaError
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from ..access.access import Access
from ..access.addresses import address_key
from ..access.request_rate import TokenBuckets
from ..access.sign_in import own_path
from ..messages import Headers, Request, Response
from .links import LOGIN_PATH, LOGOUT_PATH
from .request import HEADERS, HTML, JSON, is_static, static_file, templates

BEGIN_PATH = f"{LOGIN_PATH}/begin"
CALLBACK_PATH = f"{LOGIN_PATH}/callback"

ATTEMPTS_PER_SECOND, ATTEMPTS_AT_ONCE = 1 / 6, 10
"""How often an address may try to sign in."""

LONGEST_PATH = 2000
"""The longest path to return to after signing in, in characters."""

NO_STORE = ("Cache-Control", "no-store")
SESSION, UNDER_WAY = "polynya-session", "polynya-sign-in"
"""The names of the cookies."""


class Login:
    """Lets people into the page of a server that knows callers."""

    def __init__(self, access: Access, public_uri: str) -> None:
        """`public_uri`: how people reach the server, if their requests name its host."""
        self._access, self._public = access, urlsplit(public_uri)
        self._attempts = TokenBuckets(ATTEMPTS_PER_SECOND, ATTEMPTS_AT_ONCE)
        self._answers: Mapping[tuple[str, str], tuple[str, Callable[[Request], Response]]] = {
            ("GET", LOGIN_PATH): ("", self._form),
            ("POST", LOGIN_PATH): ("login", self._with_token),
            ("GET", BEGIN_PATH): ("begin_login", self._begin),
            ("GET", CALLBACK_PATH): ("login", self._finish),
            ("POST", LOGOUT_PATH): ("logout", self._end),
        }

    def admit(self, request: Request) -> Caller | Response:
        """The caller of a page, or the answer: to a stranger, to a sign-in or to a sign-out."""
        if is_static(request.path):
            return self._static(request)
        answer = self._answers.get((request.method, request.path))
        if answer is None and request.header("authorization"):
            return self._access.admit(request)
        operation, make = answer or ("", None)
        try:
            self._access.rate.check(request.client)
            if make is not None:
                return make(request)
            caller = self._access.sessions.caller(self._cookie(request, SESSION))
            return self._access.counted(request, caller)
        except PolynyaError as error:
            self._access.refused(request, error, operation)
            return self._refusal(request, error, is_sign_in=make is not None)

    def _static(self, request: Request) -> Response:
        name = request.path.rpartition("/")[2]
        file = static_file("icon.svg" if name == "favicon.ico" else name)
        if file is None:
            return Response(404)
        return Response(200, tuple(file.headers.items()), bytes(file.body))

    def _refusal(self, request: Request, error: PolynyaError, *, is_sign_in: bool) -> Response:
        if isinstance(error, Misconfigured):
            # Strangers need not know where files of the server are.
            error = Misconfigured("The server cannot identify callers; its log says why.")
        retry = (("Retry-After", str(error.retry_after)),) if error.retry_after else ()
        if "format=json" in request.query.split("&"):
            body = json.dumps({"error": {"message": str(error), "code": error.status}})
            return Response(error.status, (*_headers(JSON), *retry), body.encode())
        if isinstance(error, NotAuthorized) and not is_sign_in and request.method != "POST":
            query = urlencode({"next": _wanted(request)})
            return Response(303, (*_headers(HTML), ("Location", f"{LOGIN_PATH}?{query}")))
        path = _fields(request).get("next", "")
        ended = self._set(request, UNDER_WAY, "", 0) if request.path == CALLBACK_PATH else ()
        return self._page(error.status, str(error), path, (*retry, *ended))

    # Signing in

    def _form(self, request: Request) -> Response:
        return self._page(200, "", _fields(request).get("next", ""))

    def _page(self, status: int, sentence: str, path: str, headers: Headers = ()) -> Response:
        begin = ""
        if self._access.sign_in is not None:
            begin = f"{BEGIN_PATH}?{urlencode({'next': own_path(path)})}"
        text = (
            templates()
            .get_template("login.html")
            .render(
                sentence=sentence,
                path=own_path(path),
                begin=begin,
                provider=self._access.sign_in.name if self._access.sign_in else "",
                notices=[],
            )
        )
        return Response(status, (*_headers(HTML), *headers), text.encode())

    def _with_token(self, request: Request) -> Response:
        self._attempts.take(address_key(request.client))
        form = _fields(request)
        token = form.get("token", "").strip()
        caller, session, seconds = self._access.sessions.begin_with_token(token)
        return self._signed_in(request, caller, session, seconds, own_path(form.get("next", "")))

    def _begin(self, request: Request) -> Response:
        if self._access.sign_in is None:
            raise NotAuthorized("this server has no identity provider for people: use a token")
        path = _fields(request).get("next", "")
        uri, cookie = self._access.sign_in.begin(self._callback(request), path)
        headers = ("Location", uri), *self._set(request, UNDER_WAY, cookie, 600)
        return Response(303, (*_headers(HTML), *headers))

    def _finish(self, request: Request) -> Response:
        self._attempts.take(address_key(request.client))
        if self._access.sign_in is None:
            raise NotAuthorized("this server has no identity provider for people: use a token")
        caller, path = self._access.sign_in.finish(
            _fields(request), self._cookie(request, UNDER_WAY), self._callback(request)
        )
        caller, session, seconds = self._access.sessions.begin_with_claims(caller)
        response = self._signed_in(request, caller, session, seconds, path)
        ended = self._set(request, UNDER_WAY, "", 0)
        return Response(response.status, (*response.headers, *ended))

    def _signed_in(
        self, request: Request, caller: Caller, session: str, seconds: int, path: str
    ) -> Response:
        self._access.write(request, "login", caller.identity, 303)
        headers = ("Location", path), *self._set(request, SESSION, session, seconds)
        return Response(303, (*_headers(HTML), *headers))

    def _end(self, request: Request) -> Response:
        caller = ANYBODY
        with suppress(NotAuthorized):
            caller = self._access.sessions.caller(self._cookie(request, SESSION))
        self._access.write(request, "logout", caller.identity, 303)
        headers = ("Location", LOGIN_PATH), *self._set(request, SESSION, "", 0)
        return Response(303, (*_headers(HTML), *headers))

    # Cookies

    def _is_secure(self, request: Request) -> bool:
        is_public = request.header("host").lower() == self._public.netloc.lower()
        return request.scheme == "https" or (is_public and self._public.scheme == "https")

    def _callback(self, request: Request) -> str:
        """Where the identity provider sends people: the host is one that the server is known by."""
        scheme = "https" if self._is_secure(request) else "http"
        return f"{scheme}://{request.header('host')}{CALLBACK_PATH}"

    def _set(self, request: Request, name: str, value: str, seconds: int) -> Headers:
        # Lax: a link from elsewhere to a page of ours works, and so does the way back from an
        # identity provider; nothing that changes anything is a GET.
        attributes = f"Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax"
        if self._is_secure(request):
            # No other host below the same domain can set a cookie of such a name.
            name, attributes = f"__Host-{name}", f"{attributes}; Secure"
        return (("Set-Cookie", f"{name}={value}; {attributes}"),)

    def _cookie(self, request: Request, name: str) -> str:
        """The text of a cookie.

        Raises:
            NotAuthorized: there is none.
        """
        name = f"__Host-{name}" if self._is_secure(request) else name
        cookies = SimpleCookie()
        for header, value in request.headers:
            if header.lower() == "cookie":
                try:
                    cookies.load(value)
                except CookieError:
                    continue
        if name not in cookies:
            raise NotAuthorized("sign in first")
        return str(cookies[name].value)


def prevent_caching(send: Send) -> Send:
    """`send` for pages that no browser and no proxy may keep: others may use them next."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["Cache-Control"] = "no-store"
        await send(message)

    return sent


def _headers(type_: str) -> Headers:
    return (*{**HEADERS, "Content-Type": type_}.items(), NO_STORE)


def _fields(request: Request) -> dict[str, str]:
    """The fields of a form, or of the query of a GET; empty: there are none."""
    try:
        is_form = request.method == "POST"
        text = request.body.read().decode("utf-8", "replace") if is_form else request.query
        fields = parse_qs(text, keep_blank_values=True, max_num_fields=50)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}


def _wanted(request: Request) -> str:
    path = f"{request.path}?{request.query}" if request.query else request.path
    return path if len(path) <= LONGEST_PATH else "/"
