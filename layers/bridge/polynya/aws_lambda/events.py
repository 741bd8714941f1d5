"""The fields of AWS's Lambda events that the functions read, and the callers in them.

Powertools has classes for these events, but importing its `data_classes` takes 17 ms of a cold
start, and it knows only GetObject of S3 Object Lambda.

Sources:
    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

from typing import Any, TypedDict
from urllib.parse import parse_qs

from ..access.caller import Caller


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


def api_caller(request_context: RequestContext) -> Caller:
    """The caller of an HTTP API or a Function URL; `ANYBODY` without an authorizer."""
    authorizer = request_context.get("authorizer") or {}
    arn = (authorizer.get("iam") or {}).get("userArn")
    return Caller(arn or "", (authorizer.get("jwt") or {}).get("claims") or {})


def s3_caller(user_identity: UserIdentity) -> Caller:
    """The caller of S3 Object Lambda."""
    return Caller(user_identity.get("arn", ""))


def key_of(event: ObjectLambdaEvent, virtual_bucket: str) -> str:
    """The object's key."""
    # A request in path style (Spark, DuckDB with an endpoint) has the bucket's name before it, and
    # AWS does not say whether it removes that.
    return path_of(event).removeprefix(f"{virtual_bucket}/")


def path_of(event: ObjectLambdaEvent) -> str:
    """The path of the URL, which S3 has already decoded."""
    # Not urlsplit, which drops tabs, newlines and the text after a '#': keys may contain these.
    url, _, _ = event["userRequest"]["url"].partition("?")
    # MiniStack sends the path alone.
    path: str = url if url.startswith("/") else url.partition("://")[2]
    return path.partition("/")[2]


def range_of(event: ObjectLambdaEvent) -> str | None:
    """The requested range: a header, or a parameter of the URL."""
    query = parse_qs(event["userRequest"]["url"].partition("?")[2])
    return header_of(event, "Range") or next(iter(query.get("Range", [])), None)


def header_of(event: ObjectLambdaEvent, name: str) -> str | None:
    """The value of a header of the request; None if it is missing."""
    # AWS keeps the letter case in which the client wrote the names.
    headers = event["userRequest"]["headers"].items()
    return next((value for key, value in headers if key.lower() == name.lower()), None)
