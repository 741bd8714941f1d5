"""What the functions read in AWS's Lambda events: fields, byte ranges and conditions (RFC 9110).

Powertools has classes for these events, but importing its `data_classes` takes 17 ms of a cold
start, and it knows only GetObject of S3 Object Lambda.

Sources:
    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

import json
import re
from typing import Any, TypedDict

from .errors import InvalidRange


class Http(TypedDict):
    """`requestContext.http` of an HTTP API's event."""

    method: str
    path: str


class JwtAuthorizer(TypedDict, total=False):
    """What a JWT authorizer has verified."""

    claims: dict[str, Any]


class IamAuthorizer(TypedDict, total=False):
    """What IAM authorization has verified."""

    userArn: str


class Authorizer(TypedDict, total=False):
    """`requestContext.authorizer`: one of the fields, by the kind of authorizer."""

    iam: IamAuthorizer | None
    jwt: JwtAuthorizer | None


class RequestContext(TypedDict, total=False):
    """`requestContext` of an HTTP API's event, or of a Function URL's."""

    authorizer: Authorizer | None
    domainName: str
    http: Http
    requestId: str


class HttpApiEvent(TypedDict):
    """An event of API Gateway, payload format 2.0; Mangum reads the other fields."""

    requestContext: RequestContext


class UserIdentity(TypedDict, total=False):
    """The caller of S3 Object Lambda."""

    arn: str


class UserRequest(TypedDict):
    """The caller's request to the S3 Object Lambda access point."""

    url: str
    """Decoded; AWS leaves out the parameters of the signature."""
    headers: dict[str, str]


class GetObjectContext(TypedDict):
    """Where the object can be read, and where the answer goes."""

    inputS3Url: str
    outputRoute: str
    outputToken: str


class InputContext(TypedDict):
    """Where the answer of the supporting access point can be read."""

    inputS3Url: str


class ObjectLambdaEvent(TypedDict, total=False):
    """An event of S3 Object Lambda; one of the contexts is there and names the operation."""

    xAmzRequestId: str
    getObjectContext: GetObjectContext
    headObjectContext: InputContext
    listObjectsContext: InputContext
    listObjectsV2Context: InputContext
    userIdentity: UserIdentity
    userRequest: UserRequest


RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")

ENTITY_TAG = re.compile(r'(?:W/)?(?:"([^"]*)"|([^\s,"]+))')
"""An entity tag; S3's clients may leave out the quotes."""


def matches_etag(header: str, etag: str) -> bool:
    """Whether If-Match or If-None-Match names an entity tag: in a list, or all of them by `*`.

    The comparison is the weak one (RFC 9110, section 8.8.3.2): `W/` makes no difference, because a
    name never changes its bytes.

    Args:
        header: the field's value.
        etag: the entity tag of what would be sent, with its quotes.
    """
    if header.strip() == "*":
        return True
    tags = (quoted or bare for quoted, bare in ENTITY_TAG.findall(header))
    return etag.strip('"') in tags


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """The first and the last byte of a requested range; None for the whole object.

    A header that is no single byte range is ignored, as in S3 and RFC 9110, section 14.2.

    Args:
        header: the value of Range; None if there is none.
        size: of the object, in bytes.

    Raises:
        InvalidRange: the range holds no byte of the object.
    """
    match = RANGE.fullmatch((header or "").strip())
    if match is None or not (match[1] or match[2]):
        return None
    start, end = _number(match[1]), _number(match[2])
    if start is None:
        first, last = max(0, size - (end or 0)), size - 1
    else:
        first, last = start, size - 1 if end is None else min(end, size - 1)
        if end is not None and end < start:
            return None  # "invalid if the last-pos value is less than the first-pos value"
    if first > last or not size:
        raise InvalidRange("the requested range is not satisfiable")
    return first, last


def _number(digits: str) -> int | None:
    """A number, cut to 18 digits: Python refuses to parse thousands of them."""
    return int(digits.lstrip("0")[:18] or "0") if digits else None


def asks_for_credentials(access_delegation: str) -> bool:
    """Whether a client wants credentials with a table.

    Args:
        access_delegation: the header `X-Iceberg-Access-Delegation`.
    """
    return "vended-credentials" in map(str.strip, access_delegation.split(","))


def is_commit(body: bytes) -> bool:
    """Whether a body is one of updateTable, and not of reportMetrics.

    API Gateway decodes the path: that of a commit to the table `a/metrics` is the path of a report
    about the table `a`.
    """
    try:
        document = json.loads(body or b"null")
    except (ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"requirements", "updates"} <= document.keys()
