"""The lake's own objects behind an S3 Object Lambda access point.

Requests are passed on to the supporting access point by the presigned URL of the event, under the
caller's own permissions.
"""

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3

from ..runtime import budget
from ..runtime.errors import ServiceUnavailable
from .events import ObjectLambdaEvent, range_of

http = urllib3.PoolManager(retries=False)

CONNECT_SECONDS, READ_SECONDS = 5, 50
"""The timeouts of a request for a real object."""

Answer = dict[str, Any]
"""The function's result, or the parameters of WriteGetObjectResponse."""

S3_CODE = re.compile(r"<Code>(\w+)</Code>")
S3_CODES = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 416: "InvalidRange"}
"""The error codes of answers without a body, such as those to HEAD, by their status."""

CONDITIONS = {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since"}
"""Conditions in the caller's headers that S3 itself evaluates, besides signed headers."""

REAL_HEADERS = {
    "Accept-Ranges": "AcceptRanges",
    "Content-Encoding": "ContentEncoding",
    "Content-Range": "ContentRange",
    "Content-Type": "ContentType",
    "ETag": "ETag",
}
"""Headers of a real object, with their names in WriteGetObjectResponse."""


def get(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """An object, for WriteGetObjectResponse.

    Raises:
        ServiceUnavailable: S3 does not answer.
    """
    response = _request("GET", event, input_s3_url)
    if response.status >= 400:
        return {"StatusCode": response.status, "ErrorCode": _s3_code(response)}
    headers = {name: response.headers.get(header) for header, name in REAL_HEADERS.items()}
    return {
        "StatusCode": response.status,
        "Body": response,  # a stream: data files are large
        "ContentLength": int(response.headers.get("Content-Length", 0)),
        **{name: value for name, value in headers.items() if value is not None},
    }


def head(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """The answer to HeadObject: the headers of an object, or S3's error. Raises: as `get`."""
    response = _request("HEAD", event, input_s3_url)
    if response.status >= 400:
        return {"statusCode": response.status, "errorCode": _s3_code(response)}
    headers: dict[str, Any] = {
        name: response.headers[name]
        for name in (*REAL_HEADERS, "Last-Modified")
        if name in response.headers
    }
    headers["Content-Length"] = int(response.headers.get("Content-Length", 0))
    return {"statusCode": response.status, "headers": headers}


def list_objects(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """S3's own answer, unchanged: virtual files exist only by name. Raises: as `get`."""
    response = _request("GET", event, input_s3_url)
    return {"statusCode": response.status, "listResultXml": response.read().decode()}


def _request(method: str, event: ObjectLambdaEvent, input_s3_url: str) -> urllib3.BaseHTTPResponse:
    """Send the caller's request to the supporting access point, by the presigned URL."""
    # "If the signed headers hold more than host, the function must send those": AWS, "inputS3Url".
    query = parse_qs(urlsplit(input_s3_url).query)
    signed = set(query.get("X-Amz-SignedHeaders", [""])[0].split(";")) - {"host"}
    headers = {
        name: value
        for name, value in event["userRequest"]["headers"].items()
        if name.lower() in signed | CONDITIONS
    }
    if (range_ := range_of(event)) is not None:
        headers["Range"] = range_
    # If no time is left the answer is 503: urllib3 accepts no timeout of 0.
    budget.check()
    seconds = budget.seconds_left()
    timeout = urllib3.Timeout(
        connect=min(CONNECT_SECONDS, seconds), read=min(READ_SECONDS, seconds)
    )
    try:
        return http.request(
            method, input_s3_url, headers=headers, timeout=timeout, preload_content=False
        )
    except urllib3.exceptions.HTTPError:
        raise ServiceUnavailable("S3 does not answer") from None


def _s3_code(response: urllib3.BaseHTTPResponse) -> str:
    match = S3_CODE.search(response.read().decode(errors="replace"))
    return match[1] if match else S3_CODES.get(response.status, "InternalError")
