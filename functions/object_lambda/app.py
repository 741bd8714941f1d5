"""GetObject, HeadObject and ListObjects behind the S3 Object Lambda access point.

Virtual files are built, cut to the requested range, and written back; every other key is passed on
to the supporting access point under the caller's own permissions.
Events: https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3
from polynya.access.authorized_lake import AuthorizedFiles
from polynya.aws_lambda.events import ObjectLambdaEvent, s3_caller
from polynya.catalog.lakes import Lakes
from polynya.http.file_by_key import FileAnswer, FileRequest, open_files, read_file
from polynya.runtime import budget
from polynya.runtime.budget import budgeted
from polynya.runtime.errors import PolynyaError, ServiceUnavailable, log_fields
from polynya.runtime.metrics import (
    count,
    count_refusal,
    function_logger,
    published,
    traced,
    watched,
)
from polynya.runtime.settings import Config
from polynya.storage import aws
from polynya.storage.file_cache import resolve_bucket
from polynya.virtual_files.names import is_virtual

logger = function_logger("object-lambda")
http = urllib3.PoolManager(retries=False)

RESERVE_SECONDS = 5
"""The part of S3 Object Lambda's 60 s that is left to send what was built, or to answer 503."""

CONNECT_SECONDS, READ_SECONDS = 5, 50
"""The timeouts of a request for a real object."""

Answer = dict[str, Any]
"""The function's result, or the parameters of WriteGetObjectResponse."""

S3_CODE = re.compile(r"<Code>(\w+)</Code>")
S3_CODES = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 416: "InvalidRange"}
"""The error codes of answers without a body, such as those to HEAD, by their status."""

CONDITIONS = {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since"}
"""Headers of the caller that S3 answers itself, besides those that the presigned URL signs."""

REAL_HEADERS = {
    "Accept-Ranges": "AcceptRanges",
    "Content-Encoding": "ContentEncoding",
    "Content-Range": "ContentRange",
    "Content-Type": "ContentType",
    "ETag": "ETag",
}
"""Headers of a real object, with their names in WriteGetObjectResponse."""


@cache
def config() -> Config:
    """The settings, with the name of the virtual bucket read from SSM.

    Raises:
        Misconfigured: a setting is missing or not usable, or the parameter cannot be read.
        ServiceUnavailable: SSM does not answer.
    """
    settings = Config.from_env(os.environ)
    return replace(settings, storage=resolve_bucket(settings.storage))


@cache
def lakes() -> Lakes[AuthorizedFiles]:
    """The lakes of the settings; no database is connected yet.

    Raises:
        Misconfigured, ServiceUnavailable: as `config`.
    """
    return Lakes(config(), open_files, environ=os.environ)


@traced
@published
@budgeted(RESERVE_SECONDS)
@logger.inject_lambda_context(correlation_id_path="xAmzRequestId")
def handler(event: ObjectLambdaEvent, context: Any) -> Answer:
    """Answer one event; GetObject is answered by WriteGetObjectResponse, not by the result."""
    operation, started = next(name for name in ANSWERS if name in event), perf_counter()
    failure: PolynyaError | None = None
    try:
        return ANSWERS[operation](event, event[operation]["inputS3Url"])  # type: ignore[literal-required]
    except PolynyaError as error:
        failure = error
    except Exception as error:
        logger.error("unexpected error", path=_path(event), **log_fields(error))
        failure = PolynyaError("an unexpected error; see the log")
    finally:
        status = str(failure.status if failure else 200)
        seconds = perf_counter() - started
        watched("Requests", seconds, operation=operation.removesuffix("Context"), status=status)
    # NotModified is raised, too, and is no refusal.
    if failure.status >= 400:
        count_refusal(failure.code)
    if failure.status >= 500:
        logger.error("refused", reason=str(failure), path=_path(event))
    return FAILURES[operation](event, failure)


def get_object(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """Answer GetObject.

    Args:
        input_s3_url: of the object behind the supporting access point, presigned for the caller.

    Raises:
        PolynyaError: NoSuchKey, NotModified, PreconditionFailed, InvalidRange and others.
    """
    if not is_virtual(_key(event), config().files.virtual_prefix):
        return _write(event, _real_object(event, input_s3_url))
    file = _virtual_file(event)
    count("BytesServed", len(file.body))
    answer = {
        "StatusCode": file.status,
        "Body": file.body,
        "ContentLength": len(file.body),
        "ContentType": file.content_type,
        "AcceptRanges": "bytes",
        "ETag": file.etag,
    }
    if file.status == 206:
        answer["ContentRange"] = file.content_range
    return _write(event, answer)


def head_object(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """Answer HeadObject. Arguments and errors: as `get_object`."""
    if not is_virtual(_key(event), config().files.virtual_prefix):
        return _real_head(event, input_s3_url)
    file = _virtual_file(event)
    headers: dict[str, Any] = {**file.headers, "Content-Length": len(file.body)}
    return {"statusCode": 200, "headers": headers}


def list_objects(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """Answer ListObjects with real objects only: virtual files exist only by name.

    Raises:
        ServiceUnavailable: S3 does not answer.
    """
    # S3's own answer, unchanged: nothing is added for the virtual files.
    response = _request("GET", event, input_s3_url)
    return {"statusCode": response.status, "listResultXml": response.read().decode()}


def _virtual_file(event: ObjectLambdaEvent) -> FileAnswer:
    is_head = "headObjectContext" in event
    request = FileRequest(
        _key(event),
        s3_caller(event["userIdentity"]),
        range=None if is_head else _range(event),
        if_match=_header(event, "If-Match"),
        if_none_match=_header(event, "If-None-Match"),
    )
    return read_file(lakes(), request)


def _write(event: ObjectLambdaEvent, response: Mapping[str, Any]) -> Answer:
    route = event["getObjectContext"]
    aws.object_lambda_client(config().object_lambda_endpoint).write_get_object_response(
        RequestRoute=route["outputRoute"], RequestToken=route["outputToken"], **response
    )
    return {"statusCode": 200}


def _write_failure(event: ObjectLambdaEvent, error: PolynyaError) -> Answer:
    # 304 is no error, and WriteGetObjectResponse takes no error code with it.
    fields = {"ErrorCode": error.code, "ErrorMessage": str(error)} if error.status >= 400 else {}
    return _write(event, {"StatusCode": error.status, **fields})


def _return_failure(event: ObjectLambdaEvent, error: PolynyaError) -> Answer:
    return {"statusCode": error.status, "errorCode": error.code, "errorMessage": str(error)}


def _real_object(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """A real object for WriteGetObjectResponse."""
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


def _real_head(event: ObjectLambdaEvent, input_s3_url: str) -> Answer:
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
    if (range_ := _range(event)) is not None:
        headers["Range"] = range_
    # Without time left the answer is 503: urllib3 takes no timeout of 0.
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


def _key(event: ObjectLambdaEvent) -> str:
    """The object's key."""
    # A request in path style (Spark, DuckDB with an endpoint) has the bucket's name before it, and
    # AWS does not say whether it removes that.
    return _path(event).removeprefix(f"{config().storage.virtual_bucket}/")


def _path(event: ObjectLambdaEvent) -> str:
    """The path of the URL, which S3 has already decoded."""
    # Not urlsplit, which drops tabs, newlines and what follows a '#': a key may hold them.
    url, _, _ = event["userRequest"]["url"].partition("?")
    # MiniStack sends the path alone.
    path: str = url if url.startswith("/") else url.partition("://")[2]
    return path.partition("/")[2]


def _range(event: ObjectLambdaEvent) -> str | None:
    """The requested range: a header, or a parameter of the URL."""
    query = parse_qs(event["userRequest"]["url"].partition("?")[2])
    return _header(event, "Range") or next(iter(query.get("Range", [])), None)


def _header(event: ObjectLambdaEvent, name: str) -> str | None:
    # AWS passes the names on in the case in which the client wrote them.
    headers = event["userRequest"]["headers"].items()
    return next((value for key, value in headers if key.lower() == name.lower()), None)


ANSWERS: dict[str, Callable[[ObjectLambdaEvent, str], Answer]] = {
    "getObjectContext": get_object,
    "headObjectContext": head_object,
    "listObjectsContext": list_objects,
    "listObjectsV2Context": list_objects,
}
"""The function that answers an event, by the field that names the operation."""

FAILURES: dict[str, Callable[[ObjectLambdaEvent, PolynyaError], Answer]] = {
    **dict.fromkeys(ANSWERS, _return_failure),
    "getObjectContext": _write_failure,
}
"""The function that answers an event with an error, by the same field."""

# Not `lakes`: they ask SSM.
aws.prepare_snapshots()
