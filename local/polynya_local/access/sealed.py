"""Texts that the server signs, gives away and accepts again: JWTs with a key of its own.

The server stores none of them: each process and server with the same secret accepts them.
"""

import hmac
import time
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from polynya.runtime.errors import NotAuthorized

ALGORITHM = "HS256"


class Seal:
    """Seals texts for one purpose: what was made for another one is not accepted."""

    def __init__(self, secret: bytes, purpose: str) -> None:
        """`secret`: as in `TableKeys`, which derives keys from texts that begin differently."""
        self._key = OctKey.import_key(hmac.digest(secret, f"page {purpose}".encode(), sha256))
        self._claims = jwt.JWTClaimsRegistry(exp={"essential": True})

    def sealed(self, content: Mapping[str, Any], seconds: float) -> str:
        """The content as an ASCII text that expires after this many seconds."""
        claims = {**content, "exp": int(time.time() + seconds)}
        return jwt.encode({"alg": ALGORITHM}, claims, self._key)

    def opened(self, text: str) -> dict[str, Any]:
        """The content of a sealed text.

        Raises:
            NotAuthorized: this server has not made the text, or it has expired.
        """
        try:
            claims = jwt.decode(text, self._key, algorithms=[ALGORITHM]).claims
            self._claims.validate(claims)
        except (JoseError, ValueError, TypeError):
            raise NotAuthorized("the session has ended: sign in again") from None
        return claims
