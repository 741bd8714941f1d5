"""The caller of a request, as the host of the application has verified it."""

import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import quote

ASSUMED_ROLE = re.compile(
    r"arn:(?P<partition>[^:]+):sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)/(?P<session>.+)"
)

TOKEN = "token"
"""The claim of a caller whom a host knows by a token of its own; no issuer's token has it."""

IDENTITY = (TOKEN, "iss", "sub", "client_id")
"""The claims that say who a caller is (RFC 9068, section 2.2)."""

PRINTABLE = "".join(set(map(chr, range(0x21, 0x7F))) - {"%"})
"""The characters that a claim's value keeps in an identity, so that no value looks like another
claim."""

SCOPES = {"scope", "scp"}
"""The claims of scopes that API Gateway knows; they are separated by spaces (RFC 8693, 4.2)."""


class VendedTable(NamedTuple):
    """The table that credentials were vended for."""

    lake: str
    """As `Config.lake`."""
    table_uuid: str
    hidden_ids: tuple[int, ...] = ()
    """The columns that they do not reach, by column_id, ascending."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An AWS role or user, the bearer of a token, or an unknown caller."""

    arn: str = ""
    """The ARN of a role or user, or of a session of a role."""
    claims: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """The claims of a token that the host has verified, by their names: texts, or lists of them.
    A host that gets lists as texts has their names in the policy."""
    is_of_other_issuer: bool = False
    """Whether the token is from another issuer than the host's first one, which may give the same
    names to other people."""
    vended_for: VendedTable | None = None
    """The table that the caller's credentials were vended for, if the host has vended them
    itself."""

    @property
    def identity(self) -> str:
        """The identity of the caller, the same in each request; empty if it is unknown.

        A token with neither `sub` nor `client_id` names only its issuer.
        """
        if self.arn:
            return principal_arn(self.arn)
        # Not all claims, because those of a renewed token differ. Not the first one, which may be
        # the same for all callers (`aud`).
        return " ".join(
            f"{name}={quote(str(self.claims[name]), safe=PRINTABLE)}"
            for name in IDENTITY
            if self.claims.get(name)
        )

    def principals(self, list_claims: Container[str] = ()) -> list[str]:
        """The principals of the caller, in the spelling of the policy.

        Args:
            list_claims: the claims that are lists. The text of other claims may be chosen by the
                caller, and can look like a list.
        """
        names = [
            f"{claim}={value}"
            for claim, text in self.claims.items()
            if "=" not in claim  # otherwise it could look like another claim
            for value in _claim_values(text, claim in list_claims, claim in SCOPES)
        ]
        # A claim whose name looks like an ARN is left out.
        own = [principal_arn(self.arn)] if self.arn else []
        return [*own, *(name for name in names if name[:4] != "arn:")]


ANYBODY = Caller()
"""The caller on a host that does not verify callers."""


def principal_arn(arn: str) -> str:
    """The ARN of an assumed role, without its path; any other ARN as it is."""
    if (match := ASSUMED_ROLE.fullmatch(arn)) is None:
        return arn
    # Without the name of the session, which the one who assumes the role chooses.
    return f"arn:{match['partition']}:iam::{match['account']}:role/{match['role']}"


def session_name(arn: str, role_arn: str) -> str | None:
    """The name of the session, if `arn` is a session of this role; else None."""
    match = ASSUMED_ROLE.fullmatch(arn)
    without_path = re.sub(":role/.*/", ":role/", role_arn)
    return match["session"] if match and principal_arn(arn) == without_path else None


def _claim_values(claim: Any, is_list: bool, has_scopes: bool) -> Iterator[str]:
    """The values of a claim."""
    if isinstance(claim, list):
        yield from map(str, claim)
        return
    text = str(claim)
    # An HTTP API writes a list as `[a b]` and escapes nothing: a value with a space counts as two,
    # one with a comma as one.
    if is_list and text.startswith("[") and text.endswith("]"):
        yield from filter(None, text[1:-1].split(" "))
        return
    yield text
    if has_scopes and " " in text:
        yield from filter(None, text.split(" "))
