"""Sessions of people at the page: a sealed text in a cookie says who the caller is.

A session of a token of the file ends when the token is removed: each request looks for its line. A
session of an identity provider has the claims of the token that was verified when it began, and
ends after an hour at most.
"""

import time

from polynya.access.caller import TOKEN, Caller
from polynya.runtime.errors import BadRequest

from .callers import Callers
from .sealed import Seal
from .token_file import hashed

TOKEN_SECONDS = 12 * 3600
"""How long a session of a token of the file may last."""
CLAIMS_SECONDS = 3600
"""How long a session of an identity provider may last."""
READER_SECONDS = 300
"""How long the process that reads rows for the page may act as a caller."""

READER = "page."
"""The beginning of the tokens of that process, and of no others."""

LONGEST = 3800
"""The longest text of a session: browsers limit a cookie, with its name, to about 4,096 bytes."""

PASSING = frozenset(
    ("at_hash", "auth_time", "exp", "iat", "jti", "nbf", "nonce", "session_state", "sid")
)
"""Claims about a token, which differ each time: no policy names them."""


class Sessions:
    """Begins sessions, and knows whose they are."""

    def __init__(self, secret: bytes, callers: Callers) -> None:
        """`secret`: as `TableKeys`."""
        self._callers = callers
        self._seal, self._readers = Seal(secret, "session"), Seal(secret, "reader")

    def begin_with_token(self, token: str) -> tuple[Caller, str, int]:
        """The bearer of a token, the text of a session, and how many seconds it lasts.

        Raises: as `Callers.bearer`.
        """
        caller = self._callers.bearer(token)
        if TOKEN in caller.claims:
            return self._begun(caller, TOKEN_SECONDS, hashed(token))
        left = int(float(caller.claims["exp"]) - time.time())
        return self._begun(caller, min(CLAIMS_SECONDS, left))

    def begin_with_claims(self, caller: Caller) -> tuple[Caller, str, int]:
        """Begin a session for a person whom an identity provider has signed in."""
        return self._begun(caller, CLAIMS_SECONDS)

    def caller(self, text: str) -> Caller:
        """The caller of a session.

        Raises:
            NotAuthorized: this server has not begun it, or it has expired.
            Misconfigured: as `Callers.recheck`.
        """
        content = self._seal.opened(text)
        return self._callers.recheck(content["who"], content["token"])

    def reader_token(self, caller: Caller) -> str:
        """A token with which the process that reads rows for the page acts as a caller."""
        content = {"who": dict(caller.claims), "other": caller.is_of_other_issuer}
        return READER + self._readers.sealed(content, READER_SECONDS)

    def reader(self, token: str) -> Caller:
        """The caller for whom such a token was made. Raises: as `Seal.opened`."""
        content = self._readers.opened(token.removeprefix(READER))
        return Caller(claims=content["who"], is_of_other_issuer=content["other"])

    def _begun(self, caller: Caller, seconds: int, token: str = "") -> tuple[Caller, str, int]:
        who = {name: claim for name, claim in caller.claims.items() if name not in PASSING}
        text = self._seal.sealed({"who": who, "token": token}, seconds)
        if len(text) > LONGEST:
            raise BadRequest(
                f"the claims of this token do not fit into a cookie ({len(text)} bytes): let the "
                "identity provider put fewer of them into tokens for this audience"
            )
        return Caller(claims=who, is_of_other_issuer=caller.is_of_other_issuer), text, seconds


def is_of_reader(token: str) -> bool:
    """Whether a token is one of `Sessions.reader_token`."""
    return token.startswith(READER)
