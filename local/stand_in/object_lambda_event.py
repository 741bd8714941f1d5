"""The events that S3 Object Lambda sends to its function.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from .http_message import Request, to_text
from .s3.address import S3Address
from .s3.upstream import S3Upstream

ACCOUNT = "123456789012"
# On AWS part of WriteGetObjectResponse's host name; here a header, by `inject_host_prefix=False`.
ROUTE = "io-local-001"
AUTHORIZATION_HEADERS = frozenset(("authorization", "x-amz-date", "x-amz-security-token"))

CONTEXTS = {
    "GetObject": "getObjectContext",
    "HeadObject": "headObjectContext",
    "ListObjectsV2": "listObjectsV2Context",
}


class EventSource:
    """Makes the events of one Object Lambda access point."""

    def __init__(self, upstream: S3Upstream, *, alias: str, bucket: str, region: str) -> None:
        self._upstream = upstream
        self._alias = alias
        self._bucket = bucket
        self._region = region

    def event(
        self, operation: str, request: Request, address: S3Address, token: str = ""
    ) -> dict[str, Any]:
        """The event for a request; `token` identifies the answer to a GetObject."""
        context = {"inputS3Url": self._input_url(request, address)}
        if operation == "GetObject":
            context |= {"outputRoute": ROUTE, "outputToken": token}
        return {
            "xAmzRequestId": str(uuid4()),
            CONTEXTS[operation]: context,
            "configuration": {
                "accessPointArn": self._arn("s3-object-lambda", self._alias),
                "supportingAccessPointArn": self._arn("s3", self._bucket),
                "payload": "{}",
            },
            "userRequest": {
                "url": self._user_url(address),
                "headers": _user_headers(request),
            },
            "userIdentity": {
                "type": "AssumedRole",
                "principalId": "principalId",
                "arn": f"arn:aws:sts::{ACCOUNT}:assumed-role/local/local",
                "accountId": ACCOUNT,
                "accessKeyId": "accessKeyId",
                "sessionContext": {
                    "attributes": {
                        "mfaAuthenticated": "false",
                        "creationDate": "2026-01-01T00:00:00Z",
                    },
                    "sessionIssuer": {
                        "type": "Role",
                        "principalId": "principalId",
                        "arn": f"arn:aws:iam::{ACCOUNT}:role/local",
                        "accountId": ACCOUNT,
                        "userName": "local",
                    },
                },
            },
            "protocolVersion": "1.00",
        }

    def _arn(self, service: str, name: str) -> str:
        return f"arn:aws:{service}:{self._region}:{ACCOUNT}:accesspoint/{name}"

    def _user_url(self, address: S3Address) -> str:
        """The URL, decoded as documented: a `?` in a key looks like a query."""
        host = f"{self._alias}.s3-object-lambda.{self._region}.amazonaws.com"
        query = unquote(address.unsigned().query)
        return f"https://{host}/{address.key_text}" + (f"?{query}" if query else "")

    def _input_url(self, request: Request, address: S3Address) -> str:
        """The presigned URL of the real object, without a range or a part number."""
        # S3 also signs the x-amz-* headers of the caller, so the function has to send them: boto3
        # and other SDKs send x-amz-checksum-mode, so X-Amz-SignedHeaders becomes
        # `host;x-amz-checksum-mode` (github.com/aws/aws-sdk-js-v3/issues/7147).
        signed = {
            name.lower(): value
            for name, value in request.headers
            if name.lower().startswith("x-amz-")
            and name.lower() not in AUTHORIZATION_HEADERS | {"x-amz-content-sha256"}
        }
        address = address.unsigned().without("range", "partnumber").in_bucket(self._bucket)
        return self._upstream.presigned_url(request.method, address, signed)


def _user_headers(request: Request) -> dict[str, str]:
    """The headers with the names as sent, repeated ones joined by commas, without credentials."""
    headers: dict[str, str] = {}
    for name, value in request.headers:
        if name.lower() not in AUTHORIZATION_HEADERS:
            value = to_text(value)
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers
