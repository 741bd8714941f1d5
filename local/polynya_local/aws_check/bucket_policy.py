"""What a bucket's policy denies to the functions, whose roles do not exist yet."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:ListBucket")
"""What the functions do in the bucket of the data."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where the requests of the functions come from."""

    account: str
    vpc: str | None
    """None: from outside a VPC, or from one that has no endpoint for S3."""
    endpoints: frozenset[str] | None
    """The VPC's endpoints for S3 that they use; None: this and `vpc` are not known."""


def denials(text: str, origin: Origin) -> Iterator[tuple[str, bool | None]]:
    """The statements that deny everybody something that the functions do.

    Returns:
        The name of each, and whether it applies to the functions; None: it is not known.

    Raises:
        ValueError: the text is not a policy.
    """
    statements = json.loads(text)["Statement"]
    for number, statement in enumerate(_list(statements), 1):
        if statement.get("Effect") != "Deny" or not _concerns(statement):
            continue
        applies = None if "NotPrincipal" in statement else _applies(statement, origin)
        if applies is not False:
            yield str(statement.get("Sid") or f"number {number}"), applies


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _concerns(statement: dict[str, Any]) -> bool:
    """Whether it is for everybody, and about what the functions do."""
    principal = statement.get("Principal")
    is_open = "NotPrincipal" in statement or "*" in _list(principal)
    if isinstance(principal, dict):
        is_open = "*" in _list(principal.get("AWS"))
    if "NotAction" in statement:
        return is_open and not all(_names(statement["NotAction"], action) for action in ACTIONS)
    return is_open and any(_names(statement.get("Action", []), action) for action in ACTIONS)


def _names(patterns: Any, action: str) -> bool:
    return any(fnmatchcase(action.lower(), str(part).lower()) for part in _list(patterns))


def _applies(statement: dict[str, Any], origin: Origin) -> bool | None:
    """Whether all conditions hold."""
    answers = [
        _holds(operator, key.lower(), [str(value) for value in _list(values)], origin)
        for operator, pairs in statement.get("Condition", {}).items()
        for key, values in pairs.items()
    ]
    if False in answers:
        return False
    return None if None in answers else True


def _holds(operator: str, key: str, values: list[str], origin: Origin) -> bool | None:
    operator = operator.removesuffix("IfExists")
    if (operator, key) == ("Bool", "aws:securetransport"):
        return values != ["false"]  # the functions use TLS
    if (operator, key) == ("NumericLessThan", "s3:tlsversion"):
        return None if any(value not in {"1.1", "1.2"} for value in values) else False
    if origin.endpoints is None and key in {"aws:sourcevpc", "aws:sourcevpce"}:
        return None
    if operator in {"StringNotEquals", "StringNotLike"}:
        own = {
            "aws:sourcevpc": {origin.vpc} if origin.vpc else set(),
            "aws:sourcevpce": origin.endpoints,
            "aws:principalaccount": {origin.account},
        }.get(key)
        if own is not None:
            return not any(fnmatchcase(name, value) for name in own for value in values)
    return None
