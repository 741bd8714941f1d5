"""The objects that IAM lets a session read, from the text of its session policy."""

import json
import re


def resources(text: str) -> list[str]:
    statements = json.loads(text)["Statement"]
    return [one for s in statements if s["Action"] == "s3:GetObject" for one in s["Resource"]]


def allowed(text: str, location: str) -> bool:
    """Whether an object may be read: `*` and `?` are wildcards, `${*}` is a star."""
    name = location.partition("://")[2]
    for resource in resources(text):
        parts = re.split(r"(\$\{[*?$]\}|\*|\?)", resource.split(":", 5)[5])
        wild = {"*": ".*", "?": "."}
        pattern = "".join(
            wild.get(p) or re.escape(p[2] if re.fullmatch(r"\$\{.\}", p) else p) for p in parts
        )
        if re.fullmatch(pattern, name, re.DOTALL):
            return True
    return False
