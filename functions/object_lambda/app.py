"""GetObject, HeadObject and ListObjects behind the S3 Object Lambda access point.

Virtual files are built, cut to the requested range, and written back; every other key is passed on
to the supporting access point under the caller's own permissions.
Events: https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from io import BufferedReader
from time import perf_counter
from typing import Any

from polynya.access.authorized_lake import AuthorizedFiles
from polynya.aws_lambda import events, real_objects
from polynya.aws_lambda.pieces import Pieces
from polynya.aws_lambda.real_objects import Answer
from polynya.catalog.lakes import Lakes
from polynya.http.file_by_key import FileAnswer, FileRequest, open_files, read_file
from polynya.runtime.budget import budgeted
from polynya.runtime.errors import PolynyaError, log_fields
from polynya.runtime.metrics import (
    count,
    count_refusal,
    function_logger,
    observe,
    published,
    traced,
)
from polynya.runtime.settings import Config
from polynya.storage import aws
from polynya.storage.file_cache import resolve_bucket
from polynya.virtual_files.names import is_virtual

logger = function_logger("object-lambda")

RESERVE_SECONDS = 5
"""The part of S3 Object Lambda's 60 s that is left to send what was built, or to answer 503."""


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
def handler(event: events.ObjectLambdaEvent, context: Any) -> Answer:
    """Answer one event; GetObject is answered by WriteGetObjectResponse, not by the result."""
    operation, started = next(name for name in ANSWERS if name in event), perf_counter()
    failure: PolynyaError | None = None
    try:
        return ANSWERS[operation](event, event[operation]["inputS3Url"])  # type: ignore[literal-required]
    except PolynyaError as error:
        failure = error
    except Exception as error:
        logger.error("unexpected error", path=events.path_of(event), **log_fields(error))
        failure = PolynyaError("an unexpected error; see the log")
    finally:
        status = str(failure.status if failure else 200)
        seconds = perf_counter() - started
        observe("Requests", seconds, operation=operation.removesuffix("Context"), status=status)
    # NotModified is raised, too, and is no refusal.
    if failure.status >= 400:
        count_refusal(failure.code)
    if failure.status >= 500:
        logger.error("refused", reason=str(failure), path=events.path_of(event))
    return FAILURES[operation](event, failure)


def get_object(event: events.ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """Answer GetObject.

    Args:
        input_s3_url: of the object behind the supporting access point, presigned for the caller.

    Raises:
        PolynyaError: NoSuchKey, NotModified, PreconditionFailed, InvalidRange and others.
    """
    if not is_virtual(_key(event), config().files.virtual_prefix):
        return _write(event, real_objects.get(event, input_s3_url))
    file = _virtual_file(event)
    count("BytesServed", file.length)
    answer = {
        "StatusCode": file.status,
        "Body": file.body if isinstance(file.body, bytes) else BufferedReader(Pieces(file.body)),
        "ContentLength": file.length,
        "ContentType": file.content_type,
        "AcceptRanges": "bytes",
        "ETag": file.etag,
    }
    if file.status == 206:
        answer["ContentRange"] = file.content_range
    return _write(event, answer)


def head_object(event: events.ObjectLambdaEvent, input_s3_url: str) -> Answer:
    """Answer HeadObject. Arguments and errors: as `get_object`."""
    if not is_virtual(_key(event), config().files.virtual_prefix):
        return real_objects.head(event, input_s3_url)
    file = _virtual_file(event)
    headers: dict[str, Any] = {**file.headers, "Content-Length": file.length}
    return {"statusCode": 200, "headers": headers}


def _key(event: events.ObjectLambdaEvent) -> str:
    return events.key_of(event, config().storage.virtual_bucket)


def _virtual_file(event: events.ObjectLambdaEvent) -> FileAnswer:
    is_head = "headObjectContext" in event
    request = FileRequest(
        _key(event),
        events.s3_caller(event["userIdentity"]),
        range=None if is_head else events.range_of(event),
        if_match=events.header_of(event, "If-Match"),
        if_none_match=events.header_of(event, "If-None-Match"),
        is_head=is_head,
    )
    return read_file(lakes(), request)


def _write(event: events.ObjectLambdaEvent, response: Mapping[str, Any]) -> Answer:
    route = event["getObjectContext"]
    aws.object_lambda_client(config().object_lambda_endpoint).write_get_object_response(
        RequestRoute=route["outputRoute"], RequestToken=route["outputToken"], **response
    )
    return {"statusCode": 200}


def _write_failure(event: events.ObjectLambdaEvent, error: PolynyaError) -> Answer:
    # 304 is no error, and WriteGetObjectResponse takes no error code with it.
    fields = {"ErrorCode": error.code, "ErrorMessage": str(error)} if error.status >= 400 else {}
    return _write(event, {"StatusCode": error.status, **fields})


def _return_failure(event: events.ObjectLambdaEvent, error: PolynyaError) -> Answer:
    return {"statusCode": error.status, "errorCode": error.code, "errorMessage": str(error)}


ANSWERS: dict[str, Callable[[events.ObjectLambdaEvent, str], Answer]] = {
    "getObjectContext": get_object,
    "headObjectContext": head_object,
    "listObjectsContext": real_objects.list_objects,
    "listObjectsV2Context": real_objects.list_objects,
}
"""The function that answers an event, by the field that names the operation."""

FAILURES: dict[str, Callable[[events.ObjectLambdaEvent, PolynyaError], Answer]] = {
    **dict.fromkeys(ANSWERS, _return_failure),
    "getObjectContext": _write_failure,
}
"""The function that answers an event with an error, by the same field."""

# Not `lakes`: they ask SSM.
aws.prepare_snapshots()
