"""GetObject, HeadObject and ListObjects behind the S3 Object Lambda access point.

Virtual files are made, cut to the range that is asked for, and written back; every other key is
passed through to the supporting access point under the caller's own permissions.
Events: https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import urllib3
from aws_lambda_powertools import Logger
from polynya import budget
from polynya.access.authorized_files import AuthorizedFiles
from polynya.budget import budgeted
from polynya.config import Config
from polynya.database import open_database
from polynya.errors import (
    NotModified,
    PolynyaError,
    PreconditionFailed,
    ServiceUnavailable,
    log_fields,
)
from polynya.files.names import is_virtual
from polynya.files.virtual_files import VirtualFiles
from polynya.metrics import count, count_refusal, published
from polynya.storage import aws
from polynya.storage.byte_range import byte_range
from polynya.storage.configured import file_cache
from polynya.storage.object_reader import object_reader
from polynya.tracing import traced

logger = Logger(service="object-lambda")
http = urllib3.PoolManager(retries=False)

RESERVE_SECONDS = 5
"""Of the 60 that S3 Object Lambda waits, to hand over what was made, or to say 503."""

PATIENCE_SECONDS = 25
"""For one statement to PostgreSQL: first builds take their time."""

CONNECT_SECONDS, READ_SECONDS = 5, 50
"""For a real object."""

Event = dict[str, Any]
Answer = dict[str, Any]

CONTENT_TYPES = {"json": "application/json", "avro": "avro/binary"}

S3_CODE = re.compile(r"<Code>(\w+)</Code>")
S3_CODES = {403: "AccessDenied", 404: "NoSuchKey", 412: "PreconditionFailed", 416: "InvalidRange"}
"""For answers without a body, such as those to HEAD."""

CONDITIONS = {"if-match", "if-none-match", "if-modified-since", "if-unmodified-since"}
"""Headers of the caller that S3 answers itself, besides those that the presigned URL signs."""

REAL_HEADERS = {
    "Accept-Ranges": "AcceptRanges",
    "Content-Encoding": "ContentEncoding",
    "Content-Range": "ContentRange",
    "Content-Type": "ContentType",
    "ETag": "ETag",
}
"""Headers of a real object, and how WriteGetObjectResponse calls them."""


@cache
def config() -> Config:
    """The settings, with the name of the virtual bucket resolved.

    The function serves the access point and the access point names the function, so the template
    cannot give it the alias: it leaves the name of an SSM parameter that holds it.
    """
    settings = Config.from_env()
    source, _, parameter = settings.virtual_bucket.partition(":")
    if source != "ssm":
        return settings
    answer = aws.call(
        "the name of the bucket", lambda: aws.client("ssm").get_parameter(Name=parameter)
    )
    return replace(settings, virtual_bucket=answer["Parameter"]["Value"])


@cache
def virtual_files() -> AuthorizedFiles:
    database = open_database(config(), PATIENCE_SECONDS)
    files = VirtualFiles(config(), database, file_cache(config()), object_reader())
    return AuthorizedFiles(config(), database, files)


@traced
@published
@budgeted(RESERVE_SECONDS)
@logger.inject_lambda_context(correlation_id_path="xAmzRequestId")
def handler(event: Event, context: Any) -> Answer:
    """Answer one event; to GetObject by WriteGetObjectResponse, not by what is returned."""
    kind = next(kind for kind in ANSWERS if kind in event)
    try:
        return ANSWERS[kind](event, event[kind]["inputS3Url"])
    except PolynyaError as error:
        failure = error
    except Exception as error:
        logger.error("unexpected error", path=_path(event), **log_fields(error))
        failure = PolynyaError("an unexpected error; see the log")
    if failure.status >= 400:
        count_refusal(failure.code)
    if failure.status >= 500:
        logger.error("refused", reason=str(failure), path=_path(event))
    return FAILURES[kind](event, failure)


def get_object(event: Event, input_s3_url: str) -> Answer:
    if not is_virtual(_key(event), config().virtual_prefix):
        return _write(event, _real_object(event, input_s3_url))
    body = _conditions_hold(event, _virtual_file(event))
    cut = byte_range(_range(event), len(body))
    first, last = cut or (0, len(body) - 1)
    count("BytesServed", last + 1 - first)
    part = {"ContentRange": f"bytes {first}-{last}/{len(body)}", "StatusCode": 206} if cut else {}
    return _write(
        event,
        {
            "StatusCode": 200,
            "Body": body[first : last + 1],
            "ContentLength": last + 1 - first,
            "ContentType": _content_type(event),
            "AcceptRanges": "bytes",
            "ETag": _etag(body),
            **part,
        },
    )


def head_object(event: Event, input_s3_url: str) -> Answer:
    if not is_virtual(_key(event), config().virtual_prefix):
        return _real_head(event, input_s3_url)
    body = _conditions_hold(event, _virtual_file(event))
    return {
        "statusCode": 200,
        "headers": {
            "Content-Length": len(body),
            "Content-Type": _content_type(event),
            "Accept-Ranges": "bytes",
            "ETag": _etag(body),
        },
    }


def list_objects(event: Event, input_s3_url: str) -> Answer:
    """Real objects only: virtual files are made when they are asked for by name."""
    response = _request("GET", event, input_s3_url)
    return {"statusCode": response.status, "listResultXml": response.read().decode()}


def _virtual_file(event: Event) -> bytes:
    return virtual_files().read(_key(event), event["userIdentity"])


def _write(event: Event, response: Mapping[str, Any]) -> Answer:
    route = event["getObjectContext"]
    aws.object_lambda_client(config().object_lambda_endpoint).write_get_object_response(
        RequestRoute=route["outputRoute"], RequestToken=route["outputToken"], **response
    )
    return {"statusCode": 200}


def _write_failure(event: Event, error: PolynyaError) -> Answer:
    # Not modified is no error, and must not be called one.
    said = {"ErrorCode": error.code, "ErrorMessage": str(error)} if error.status >= 400 else {}
    return _write(event, {"StatusCode": error.status, **said})


def _return_failure(event: Event, error: PolynyaError) -> Answer:
    return {"statusCode": error.status, "errorCode": error.code, "errorMessage": str(error)}


def _real_object(event: Event, input_s3_url: str) -> Answer:
    """A real object as WriteGetObjectResponse takes it, streamed: data files are large."""
    response = _request("GET", event, input_s3_url)
    if response.status >= 400:
        return {"StatusCode": response.status, "ErrorCode": _s3_code(response)}
    headers = {name: response.headers.get(header) for header, name in REAL_HEADERS.items()}
    return {
        "StatusCode": response.status,
        "Body": response,
        "ContentLength": int(response.headers.get("Content-Length", 0)),
        **{name: value for name, value in headers.items() if value is not None},
    }


def _real_head(event: Event, input_s3_url: str) -> Answer:
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


def _request(method: str, event: Event, input_s3_url: str) -> urllib3.BaseHTTPResponse:
    """Ask the supporting access point by the URL that is presigned for the caller."""
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
    budget.check()
    timeout = urllib3.Timeout(
        connect=min(CONNECT_SECONDS, budget.left()), read=min(READ_SECONDS, budget.left())
    )
    try:
        return http.request(
            method, input_s3_url, headers=headers, timeout=timeout, preload_content=False
        )
    except urllib3.exceptions.HTTPError:
        raise ServiceUnavailable("S3 does not answer") from None


def _s3_code(response: urllib3.BaseHTTPResponse) -> str:
    found = S3_CODE.search(response.read().decode(errors="replace"))
    return found[1] if found else S3_CODES.get(response.status, "InternalError")


def _conditions_hold(event: Event, body: bytes) -> bytes:
    """The body, where If-Match and If-None-Match allow it (RFC 9110, section 13)."""
    etag = _etag(body)
    if _matches(_header(event, "If-Match") or etag, etag):
        if not _matches(_header(event, "If-None-Match") or "", etag):
            return body
        raise NotModified("the file is the one that the caller has")
    raise PreconditionFailed("the file is not the one that If-Match names")


def _matches(header: str, etag: str) -> bool:
    names = {name.strip().removeprefix("W/").strip('"') for name in header.split(",")}
    return bool(names & {"*", etag.strip('"')})


def _key(event: Event) -> str:
    """The object's key. Who asks in path style (Spark, DuckDB with an endpoint) has the bucket's
    name before it, and AWS does not say that it takes that away."""
    return _path(event).removeprefix(f"{config().virtual_bucket}/")


def _path(event: Event) -> str:
    """The path of the URL, which S3 gives decoded already."""
    # Not urlsplit, which drops tabs, newlines and what follows a '#': they can stand in a key.
    url, _, _ = event["userRequest"]["url"].partition("?")
    # MiniStack gives the path alone.
    path: str = url if url.startswith("/") else url.partition("://")[2]
    return path.partition("/")[2]


def _range(event: Event) -> str | None:
    """The range that is asked for: a header, or a parameter of the URL."""
    query = parse_qs(event["userRequest"]["url"].partition("?")[2])
    return _header(event, "Range") or next(iter(query.get("Range", [])), None)


def _header(event: Event, name: str) -> str | None:
    headers = event["userRequest"]["headers"].items()
    return next((value for key, value in headers if key.lower() == name.lower()), None)


def _etag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:32]}"'


def _content_type(event: Event) -> str:
    suffix = _key(event).rpartition(".")[2]
    return CONTENT_TYPES.get(suffix, "application/octet-stream")


ANSWERS: dict[str, Callable[[Event, str], Answer]] = {
    "getObjectContext": get_object,
    "headObjectContext": head_object,
    "listObjectsContext": list_objects,
    "listObjectsV2Context": list_objects,
}
"""The answer to an event, by the key that says what is asked."""

FAILURES = dict.fromkeys(ANSWERS, _return_failure) | {"getObjectContext": _write_failure}
