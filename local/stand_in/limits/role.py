"""The S3 permissions of a function's role, by its policies in template.yaml."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PERMISSIONS = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "UploadPartCopy": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "DeleteObject": "s3:DeleteObject",
    "DeleteObjects": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
    "ListObjects": "s3:ListBucket",
    "HeadBucket": "s3:ListBucket",
    "WriteGetObjectResponse": "s3-object-lambda:WriteGetObjectResponse",
}
"""The action that an operation of S3 needs; other operations are always refused.
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html"""


@dataclass(frozen=True)
class Role:
    """The policy statements of a role."""

    statements: Iterable[Mapping[str, Any]]

    def may(self, operation: str, parameters: Mapping[str, Any]) -> bool:
        """Whether the role may call an operation of S3 with these parameters."""
        effects = {
            statement["Effect"]
            for statement in self.statements
            if _is_about(statement, PERMISSIONS.get(operation), parameters)
        }
        return effects == {"Allow"}  # a Deny wins

    def may_list(self, bucket: str) -> bool:
        """Whether S3 answers a request for a missing object with 404, not 403.

        A request for an object does not fulfil a condition on s3:prefix.
        """
        return self.may("HeadBucket", {"Bucket": bucket})


def _is_about(
    statement: Mapping[str, Any], action: str | None, parameters: Mapping[str, Any]
) -> bool:
    resource = _resource(parameters)
    return (
        action in _list(statement["Action"])
        # WriteGetObjectResponse names no resource; the access point is in the route.
        and (resource is None or any(_is_like(resource, r) for r in _list(statement["Resource"])))
        and _holds(statement.get("Condition", {}), parameters)
    )


def _resource(parameters: Mapping[str, Any]) -> str | None:
    if "Bucket" not in parameters:
        return None
    key = f"/{parameters['Key']}" if "Key" in parameters else ""
    return f"arn:aws:s3:::{parameters['Bucket']}{key}"


def _holds(condition: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    for operator, keys in condition.items():
        if operator != "StringLike" or set(keys) != {"s3:prefix"}:
            raise ValueError(f"the stand-in does not know the condition {condition}")
        prefix = parameters.get("Prefix")
        if prefix is None or not any(_is_like(prefix, one) for one in _list(keys["s3:prefix"])):
            return False
    return True


def _is_like(text: str, pattern: str) -> bool:
    """Whether a text matches IAM's wildcards: `*` for any text, `?` for one character."""
    parts = (re.escape(part).replace(r"\?", ".") for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
