"""The settings of access, as the processes of a server get them."""

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
    """The client id of the page at the first issuer; None: people do not sign in there."""
    scope: str
    """The scopes that the page requests when they do."""
    request_rate: float | None
    """Requests a second of each caller; None: any number."""
    secret: bytes = field(repr=False)
    """What keys are made of: the same in all processes, and in all servers of a deployment."""

    def callers(self) -> Callers:
        """Who may call.

        Raises:
            Misconfigured: as `TokenFile` and `Issuer`.
        """
        tokens = TokenFile(self.tokens) if self.tokens else None
        return Callers(tokens, [Issuer(url, self.audiences) for url in self.issuers])

    def sign_in(self, callers: Callers) -> SignIn | None:
        """The sign-in with the first issuer at the page; None: tokens only."""
        if self.client is None:
            return None
        return SignIn(callers.issuers[0], self.client, self.scope, self.secret)
