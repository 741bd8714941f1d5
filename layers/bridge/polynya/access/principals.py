"""The names that a caller goes by: what AWS has checked, as the authorization policy spells it."""

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any

ASSUMED_ROLE = re.compile(
    r"arn:(?P<partition>[^:]+):sts::(?P<account>\d+):assumed-role/(?P<role>[^/]+)/(?P<session>.+)"
)


SCOPES = {"scope", "scp"}
"""API Gateway takes the scopes from either; OAuth writes them with a space between (RFC 8693)."""


def principals_of_api_caller(
    request_context: Mapping[str, Any], list_claims: Container[str] = ()
) -> list[str]:
    """By the event of an HTTP API; none where nobody was asked who they are.

    Args:
        list_claims: the claims that are lists. Of others the caller may have chosen the text, which
            can look like a list.
    """
    authorizer = request_context.get("authorizer") or {}
    arn = (authorizer.get("iam") or {}).get("userArn")
    claims = (authorizer.get("jwt") or {}).get("claims") or {}
    names = [
        f"{claim}={value}"
        for claim, text in claims.items()
        if "=" not in claim  # else its name and value could be those of another claim
        for value in _values(str(text), claim in list_claims, claim in SCOPES)
    ]
    # A claim that is called like an ARN is none.
    return [*([principal_arn(arn)] if arn else []), *(n for n in names if n[:4] != "arn:")]


def principals_of_s3_caller(user_identity: Mapping[str, Any]) -> list[str]:
    """By the event of S3 Object Lambda."""
    arn = user_identity.get("arn")
    return [principal_arn(arn)] if arn else []


def principal_arn(arn: str) -> str:
    """The ARN of the role that is assumed, without its path; of others, the ARN as it is.

    Whoever assumes a role chooses the name of the session: nothing may hang on that.
    """
    if (match := ASSUMED_ROLE.fullmatch(arn)) is None:
        return arn
    return f"arn:{match['partition']}:iam::{match['account']}:role/{match['role']}"


def session_name(arn: str, role_arn: str) -> str | None:
    """The name of the session, if somebody has assumed this role."""
    match = ASSUMED_ROLE.fullmatch(arn)
    if match is None or principal_arn(arn) != _without_path(role_arn):
        return None
    return match["session"]


def _without_path(role_arn: str) -> str:
    return re.sub(":role/.*/", ":role/", role_arn)


def _values(text: str, is_list: bool, has_scopes: bool) -> Iterator[str]:
    """The values of a claim. An HTTP API writes a list as `[a b]`, whatever its values hold: one
    with a space counts as two, one with a comma as one."""
    if is_list and text.startswith("[") and text.endswith("]"):
        yield from filter(None, text[1:-1].split(" "))
        return
    yield text
    if has_scopes and " " in text:
        yield from filter(None, text.split(" "))
