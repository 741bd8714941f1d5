"""An S3 Object Lambda access point: a Lambda function answers reads of one bucket name.

The answer to HEAD and LIST is what the function returns. The answer to GET is what it sends
meanwhile in a request `POST /WriteGetObjectResponse`, which route and token pair with the GET. All
optional features of an access point (ranges and part numbers, for GET and HEAD) are allowed.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-writing-lambda.html
https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

import logging
import re
from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from polynya_local.messages import Headers, Request, Response, to_text
from polynya_local.s3.proxy import LakesInS3, S3Proxy, S3Upstream, own_credentials
from polynya_local.s3.requests import IncompleteBody, S3Address, decoded_body, operation, s3_error

from .http_server import from_text
from .lambda_function import ACCOUNT, FunctionError, LambdaFunction

# On AWS part of WriteGetObjectResponse's host name; here a header, by `inject_host_prefix=False`.
ROUTE = "io-local-001"
URL_EXPIRES_S = 900
AUTHORIZATION_HEADERS = frozenset(("authorization", "x-amz-date", "x-amz-security-token"))

CONTEXTS = {
    "GetObject": "getObjectContext",
    "HeadObject": "headObjectContext",
    "ListObjectsV2": "listObjectsV2Context",
}


def _user_headers(request: Request) -> dict[str, str]:
    """The headers with the names as sent, repeated ones joined by commas, without credentials."""
    headers: dict[str, str] = {}
    for name, value in request.headers:
        if name.lower() not in AUTHORIZATION_HEADERS:
            value = to_text(value)
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    return headers


logger = logging.getLogger(__name__)

# Query parameters with which a GET on a key is another operation than GetObject.
# The values that WriteGetObjectResponse allows.
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_WriteGetObjectResponse.html
STATUSES = frozenset((200, 206, 304, 400, 401, 403, 404, 405, 409, 411, 412, 416, 500, 503))
ERROR_CODE = re.compile(r"[A-Z][a-zA-Z]+")
FORWARDED_HEADER = "x-amz-fwd-header-"


class InvalidResponse(Exception):
    """S3 Object Lambda does not accept the function's answer."""


class ObjectLambda:
    """Answers the three operations of template.yaml; others go to the real bucket, uploads too."""

    def __init__(
        self,
        function: LambdaFunction,
        upstream: S3Upstream,
        buckets: S3Proxy | LakesInS3,
        *,
        alias: str,
        bucket: str,
        region: str,
    ) -> None:
        """Make the access point `alias` before a bucket."""
        self._function, self._upstream, self._buckets = function, upstream, buckets
        self._alias, self._bucket, self._region = alias, bucket, region
        # Looking for them takes 10 ms.
        self._credentials = own_credentials()
        self._lock = Lock()
        # The GETs under way by token; None until the function has sent the answer.
        self._written: dict[str, Response | None] = {}

    def answer(self, request: Request, address: S3Address) -> Response:
        """The answer to a request whose bucket is the access point."""
        called = operation(request, address)
        if called is None:
            return self._buckets.answer(request, address, behind=self._bucket)
        if called == "GetObject":
            return self._get_object(request, address)
        try:
            answer = self._function.invoke(self._event(called, request, address))
            return returned_response(called, answer, address)
        except FunctionError as error:
            return s3_error(400, "LambdaRuntimeError", str(error), resource=address.path)
        except InvalidResponse as error:
            logger.error("the function's answer to %s: %s", called, error)
            return s3_error(400, "LambdaInvalidResponse", str(error), resource=address.path)

    def write_response(self, request: Request) -> Response:
        """Accept the function's WriteGetObjectResponse, and answer it."""
        token = request.header("x-amz-request-token")
        try:
            response = written_response(request)
        except InvalidResponse as error:
            logger.error("WriteGetObjectResponse: %s", error)
            return s3_error(400, "ValidationError", str(error))
        with self._lock:
            waits = token in self._written and self._written[token] is None
            if request.header("x-amz-request-route") == ROUTE and waits:
                self._written[token] = response
                return Response(200)
        return s3_error(400, "InvalidToken", "the token is unknown, or was used before")

    def _get_object(self, request: Request, address: S3Address) -> Response:
        token = uuid4().hex
        with self._lock:
            self._written[token] = None
        try:
            self._function.invoke(self._event("GetObject", request, address, token))
        except FunctionError:
            pass  # LambdaFunction has logged it; an answer sent before counts
        finally:
            with self._lock:
                response = self._written.pop(token)
        if response is None:
            message = "The Lambda exited without successfully calling WriteGetObjectResponse."
            return s3_error(500, "LambdaResponseNotReceived", message, resource=address.path)
        return response

    def _event(
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
        address = (
            address.unsigned().without_parameters("range", "partnumber").with_bucket(self._bucket)
        )
        url = self._upstream.endpoint + address.canonical_target
        return self._presigned(request.method, url, signed)

    def _presigned(self, method: str, url: str, headers: Mapping[str, str]) -> str:
        """The URL, which needs no credentials if `headers` are sent with it."""
        if self._credentials is None:
            return url
        request = AWSRequest(method, url, dict(headers))
        keys = self._credentials.get_frozen_credentials()
        S3SigV4QueryAuth(keys, "s3", self._region, expires=URL_EXPIRES_S).add_auth(request)
        return str(request.url)


def written_response(request: Request) -> Response:
    """The answer to GetObject that a WriteGetObjectResponse contains.

    Raises:
        InvalidResponse: S3 Object Lambda does not accept it.
    """
    status = request.header("x-amz-fwd-status") or "200"
    if status not in map(str, STATUSES):
        raise InvalidResponse(f"{status} is not a status of GetObject")
    headers = tuple(_forwarded_headers(request))
    try:
        data, _ = decoded_body(request)
    except IncompleteBody as error:
        raise InvalidResponse(str(error)) from None
    with data:
        body = data.read()
    code = to_text(request.header("x-amz-fwd-error-code"))
    message = to_text(request.header("x-amz-fwd-error-message"))
    if not code and not message:
        return Response(int(status), headers, body)
    if int(status) < 400 or body:
        raise InvalidResponse("an error goes neither with a successful status nor with a body")
    if not ERROR_CODE.fullmatch(code):
        raise InvalidResponse(f"{code!r} is not an error code")
    headers = tuple(header for header in headers if header[0].lower() != "content-type")
    return s3_error(int(status), code, message, headers=headers)


def _forwarded_headers(request: Request) -> Iterator[tuple[str, str]]:
    for name, value in request.headers:
        if name.lower().startswith(FORWARDED_HEADER):
            yield name[len(FORWARDED_HEADER) :], value
        elif name.lower().startswith("x-amz-meta-"):
            yield name, value


def returned_response(called: str, answer: Any, address: S3Address) -> Response:
    """The answer to HeadObject or ListObjectsV2 in a function's return value.

    Raises:
        InvalidResponse: S3 Object Lambda does not accept it.
    """
    status = answer.get("statusCode") if isinstance(answer, dict) else None
    if not isinstance(status, int) or isinstance(status, bool):
        raise InvalidResponse("no statusCode")
    if status >= 400:
        code = answer.get("errorCode") or "InternalError"
        message = answer.get("errorMessage") or ""
        headers = _returned_headers(answer, but=("content-type", "content-length"))
        return s3_error(status, code, message, resource=address.path, headers=headers)
    if called == "ListObjectsV2":
        if not isinstance(xml := answer.get("listResultXml"), str):
            raise InvalidResponse("no listResultXml")
        return Response(status, (("Content-Type", "application/xml"),), xml.encode())
    headers = _returned_headers(answer)
    length = next((value for name, value in headers if name.lower() == "content-length"), "")
    if status != 304 and not length.isdecimal():
        raise InvalidResponse("no Content-Length in the headers")
    return Response(status, headers)


def _returned_headers(answer: dict[str, Any], but: tuple[str, ...] = ()) -> Headers:
    headers = answer.get("headers") or {}
    return tuple((k, from_text(str(v))) for k, v in headers.items() if k.lower() not in but)
