"""How a server knows callers, as its processes get it."""

from dataclasses import dataclass, field
from pathlib import Path

from .callers import Callers
from .issuer import Issuer
from .sign_in import SignIn
from .token_file import TokenFile


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Where tokens come from, what keys for S3 are made of, and where requests are recorded."""

    tokens: Path | None
    """The file of tokens."""
    issuers: tuple[str, ...]
    """The URLs of issuers; the policy is about the first one."""
    audiences: tuple[str, ...]
    """One of them has to be in the token of an issuer."""
    audit_log: str | None
    """The file of the audit log; None: stderr."""
    client: str | None
    """The page as the first issuer knows it; None: people do not sign in there."""
    scope: str
    """What the page asks for when they do."""
    request_rate: float | None
    """Requests a second of each caller; None: any number."""
    secret: bytes = field(repr=False)
    """What keys are made of: the same in all processes, and in all servers of a deployment."""

    def callers(self) -> Callers:
        """Who may call.

        Raises:
            Misconfigured: the file of tokens cannot be read, or a URL is not one to trust.
        """
        tokens = TokenFile(self.tokens) if self.tokens else None
        return Callers(tokens, [Issuer(url, self.audiences) for url in self.issuers])

    def sign_in(self, callers: Callers) -> SignIn | None:
        """What people sign in with at the page, besides a token."""
        if self.client is None:
            return None
        return SignIn(callers.issuers[0], self.client, self.scope, self.secret)
