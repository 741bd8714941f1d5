"""What IAM lets a session do with objects in S3, from the text of its session policy."""

import json
import re


def resources(text: str) -> list[str]:
    """The resources of the statement that only permits to read."""
    statements = json.loads(text)["Statement"]
    return [one for s in statements if s["Action"] == "s3:GetObject" for one in s["Resource"]]


def allowed(text: str, location: str, action: str = "s3:GetObject") -> bool:
    """Whether an action on an object is permitted, and not denied.

    Of a pattern `*` and `?` are wildcards, and `${*}` is a star. An object behind an access point
    is at `s3://accesspoint/<name>/object/<key>`.
    """
    arn = arn_of(location)
    effects = {
        statement["Effect"]
        for statement in json.loads(text)["Statement"]
        if action in as_list(statement["Action"])
        and any(_is_like(arn, one) for one in as_list(statement["Resource"]))
    }
    return effects == {"Allow"}


def arn_of(location: str) -> str:
    """The ARN of an object."""
    name = location.partition("://")[2]
    of_account = "us-east-1:111122223333" if name.startswith("accesspoint/") else ":"
    return f"arn:aws:s3:{of_account}:{name}"


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _is_like(arn: str, pattern: str) -> bool:
    if pattern == "*":
        return True
    segments, of_pattern = arn.split(":", 5), pattern.split(":", 5)
    # Whatever the partition is.
    if any(b not in {"*", a} for a, b in zip(segments[2:5], of_pattern[2:5], strict=True)):
        return False
    name, parts = segments[5], re.split(r"(\$\{[*?$]\}|\*|\?)", of_pattern[5])
    wild = {"*": ".*", "?": "."}
    regex = "".join(
        wild.get(p) or re.escape(p[2] if re.fullmatch(r"\$\{.\}", p) else p) for p in parts
    )
    return re.fullmatch(regex, name, re.DOTALL) is not None
