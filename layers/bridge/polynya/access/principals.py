"""The names of a caller: what AWS has verified, in the spelling of the authorization policy."""

import re
from collections.abc import Container, Iterator
from urllib.parse import quote

from ..runtime.events import RequestContext, UserIdentity

ASSUMED_ROLE = re.compile(
    r"arn:(?P<partition>[^:]+):sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)/(?P<session>.+)"
)

IDENTITY = ("iss", "sub", "client_id")
"""The claims that say who a caller is (RFC 9068, section 2.2)."""

PRINTABLE = "".join(set(map(chr, range(0x21, 0x7F))) - {"%"})
"""What a claim's value keeps in an identity: no value looks like the next claim."""

SCOPES = {"scope", "scp"}
"""The claims of scopes that API Gateway knows; they are separated by spaces (RFC 8693, 4.2)."""


def principals_of_api_caller(
    request_context: RequestContext, list_claims: Container[str] = ()
) -> list[str]:
    """The principals of a caller of the HTTP API; none without an authorizer.

    Args:
        list_claims: the claims that are lists. The text of other claims may be chosen by the
            caller, and can look like a list.
    """
    authorizer = request_context.get("authorizer") or {}
    arn = (authorizer.get("iam") or {}).get("userArn")
    claims = (authorizer.get("jwt") or {}).get("claims") or {}
    names = [
        f"{claim}={value}"
        for claim, text in claims.items()
        if "=" not in claim  # otherwise it could look like another claim
        for value in _values(str(text), claim in list_claims, claim in SCOPES)
    ]
    # A claim whose name looks like an ARN is left out.
    return [*([principal_arn(arn)] if arn else []), *(n for n in names if n[:4] != "arn:")]


def api_caller(request_context: RequestContext) -> str:
    """Who calls the HTTP API, the same in each request: empty without an authorizer.

    A token with neither `sub` nor `client_id` names nobody but its issuer.
    """
    authorizer = request_context.get("authorizer") or {}
    if arn := (authorizer.get("iam") or {}).get("userArn"):
        return principal_arn(arn)
    claims = (authorizer.get("jwt") or {}).get("claims") or {}
    # Not all claims: those of a renewed token differ. Not the first: it may be that of everybody
    # (`aud`).
    return " ".join(
        f"{name}={quote(str(claims[name]), safe=PRINTABLE)}"
        for name in IDENTITY
        if claims.get(name)
    )


def principals_of_s3_caller(user_identity: UserIdentity) -> list[str]:
    """The principals of a caller of S3 Object Lambda."""
    arn = user_identity.get("arn")
    return [principal_arn(arn)] if arn else []


def principal_arn(arn: str) -> str:
    """The ARN of an assumed role, without its path; any other ARN as it is."""
    if (match := ASSUMED_ROLE.fullmatch(arn)) is None:
        return arn
    # Without the name of the session, because whoever assumes the role chooses it.
    return f"arn:{match['partition']}:iam::{match['account']}:role/{match['role']}"


def session_name(arn: str, role_arn: str) -> str | None:
    """The name of the session, if `arn` is a session of this role; else None."""
    match = ASSUMED_ROLE.fullmatch(arn)
    if match is None or principal_arn(arn) != _without_path(role_arn):
        return None
    return match["session"]


def _without_path(role_arn: str) -> str:
    return re.sub(":role/.*/", ":role/", role_arn)


def _values(text: str, is_list: bool, has_scopes: bool) -> Iterator[str]:
    """The values of a claim."""
    # An HTTP API writes a list as `[a b]` and escapes nothing: a value with a space counts as two,
    # one with a comma as one.
    if is_list and text.startswith("[") and text.endswith("]"):
        yield from filter(None, text[1:-1].split(" "))
        return
    yield text
    if has_scopes and " " in text:
        yield from filter(None, text.split(" "))
