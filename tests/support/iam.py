"""What IAM lets a session do with objects in S3, from the text of its session policy."""

import json
import re


def resources(text: str) -> list[str]:
    """The resources of the statement that only permits to read."""
    statements = json.loads(text)["Statement"]
    return [one for s in statements if s["Action"] == "s3:GetObject" for one in s["Resource"]]


def allowed(text: str, location: str, action: str = "s3:GetObject") -> bool:
    """Whether an action on an object is permitted, and not denied.

    Of a pattern `*` and `?` are wildcards, and `${*}` is a star.
    """
    arn = f"arn:aws:s3:::{location.partition('://')[2]}"
    effects = {
        statement["Effect"]
        for statement in json.loads(text)["Statement"]
        if action in as_list(statement["Action"])
        and any(_is_like(arn, one) for one in as_list(statement["Resource"]))
    }
    return effects == {"Allow"}


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def _is_like(arn: str, pattern: str) -> bool:
    if pattern == "*":
        return True
    names = (one.split(":", 5)[5] for one in (arn, pattern))  # whatever the partition is
    name, parts = next(names), re.split(r"(\$\{[*?$]\}|\*|\?)", next(names))
    wild = {"*": ".*", "?": "."}
    regex = "".join(
        wild.get(p) or re.escape(p[2] if re.fullmatch(r"\$\{.\}", p) else p) for p in parts
    )
    return re.fullmatch(regex, name, re.DOTALL) is not None
