"""The Lambda handler of S3 Object Lambda: GetObject, HeadObject and ListObjects.

Virtual files are built, cut to the requested range, and written back; every other key is passed on
to the supporting access point under the caller's own permissions.
Events: https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

from collections.abc import Callable, Mapping
from io import BufferedReader
from time import perf_counter
from typing import Any

from aws_lambda_powertools import Logger

from ..access.authorized_lake import AuthorizedFiles
from ..catalog.lakes import Lakes
from ..http.file_by_key import FileAnswer, FileRequest, read_file
from ..runtime.budget import Handler, budgeted
from ..runtime.errors import PolynyaError, log_fields
from ..runtime.metrics import count, count_refusal, invocation, observe, traced
from ..virtual_files.names import is_virtual
from . import events, real_objects
from .pieces import Pieces
from .real_objects import Answer

RESERVE_SECONDS = 5
"""The part of S3 Object Lambda's 60 s that is left to send what was built, or to answer 503."""

OPERATIONS = ("getObjectContext", "headObjectContext", "listObjectsContext", "listObjectsV2Context")
"""The fields that name the operation of an event."""


def object_handler(lakes: Callable[[], Lakes[AuthorizedFiles]], logger: Logger) -> Handler:
    """The Lambda handler of the files of lakes, for events of S3 Object Lambda.

    Args:
        lakes: called for each event; raises PolynyaError if a setting is missing or not usable.
    """
    objects = Objects(lakes)

    @traced
    @invocation()
    @budgeted(RESERVE_SECONDS)
    @logger.inject_lambda_context(correlation_id_path="xAmzRequestId")
    def handler(event: events.ObjectLambdaEvent, context: Any) -> Answer:
        """Answer one event; GetObject is answered by WriteGetObjectResponse, not by the result."""
        operation, started = next(name for name in OPERATIONS if name in event), perf_counter()
        failure: PolynyaError | None = None
        try:
            return objects.answer(operation, event)
        except PolynyaError as error:
            failure = error
        except Exception as error:
            logger.error("unexpected error", path=events.path_of(event), **log_fields(error))
            failure = PolynyaError("an unexpected error; see the log")
        finally:
            status = str(failure.status if failure else 200)
            seconds = perf_counter() - started
            observe("Requests", seconds, operation=operation.removesuffix("Context"), status=status)
        # NotModified is raised too, but is no refusal.
        if failure.status >= 400:
            count_refusal(failure.code)
        if failure.status >= 500:
            logger.error("refused", reason=str(failure), path=events.path_of(event))
        return objects.refuse(operation, event, failure)

    return handler


LONGEST_MESSAGE = 1000
"""The most characters of an error's message, which is sent in a header."""


class Objects:
    """Answers the operations on the objects behind an access point."""

    def __init__(self, lakes: Callable[[], Lakes[AuthorizedFiles]]) -> None:
        self._lakes = lakes

    def answer(self, operation: str, event: events.ObjectLambdaEvent) -> Answer:
        """Answer an event.

        Args:
            operation: one of `OPERATIONS`.

        Raises:
            PolynyaError: NoSuchKey, NotModified, PreconditionFailed, InvalidRange and others.
        """
        # Of the object behind the supporting access point, presigned for the caller.
        input_s3_url: str = event[operation]["inputS3Url"]  # type: ignore[literal-required]
        match operation:
            case "getObjectContext":
                return self._get(event, input_s3_url)
            case "headObjectContext":
                return self._head(event, input_s3_url)
            case _:
                return real_objects.list_objects(event, input_s3_url)

    def refuse(
        self, operation: str, event: events.ObjectLambdaEvent, error: PolynyaError
    ) -> Answer:
        """Answer an event with an error. Args: as `answer`."""
        message = str(error)[:LONGEST_MESSAGE]
        fields = {"ErrorCode": error.code, "ErrorMessage": message}
        if operation == "getObjectContext":
            # 304 is no error, and WriteGetObjectResponse accepts no error code with it.
            is_error = error.status >= 400
            return self._write(event, {"StatusCode": error.status, **(fields if is_error else {})})
        return {"statusCode": error.status, "errorCode": error.code, "errorMessage": message}

    def _get(self, event: events.ObjectLambdaEvent, input_s3_url: str) -> Answer:
        if not self._is_virtual(event):
            return self._write(event, real_objects.get(event, input_s3_url))
        file = self._virtual_file(event)
        count("BytesServed", file.length)
        answer = {
            "StatusCode": file.status,
            "Body": file.body
            if isinstance(file.body, bytes)
            else BufferedReader(Pieces(file.body)),
            "ContentLength": file.length,
            "ContentType": file.content_type,
            "AcceptRanges": "bytes",
            "ETag": file.etag,
        }
        if file.status == 206:
            answer["ContentRange"] = file.content_range
        return self._write(event, answer)

    def _head(self, event: events.ObjectLambdaEvent, input_s3_url: str) -> Answer:
        if not self._is_virtual(event):
            return real_objects.head(event, input_s3_url)
        file = self._virtual_file(event)
        headers: dict[str, Any] = {**file.headers, "Content-Length": file.length}
        return {"statusCode": 200, "headers": headers}

    def _is_virtual(self, event: events.ObjectLambdaEvent) -> bool:
        return is_virtual(self._key(event), self._lakes().config.files.virtual_prefix)

    def _key(self, event: events.ObjectLambdaEvent) -> str:
        return events.key_of(event, self._lakes().config.storage.virtual_bucket)

    def _virtual_file(self, event: events.ObjectLambdaEvent) -> FileAnswer:
        is_head = "headObjectContext" in event
        request = FileRequest(
            self._key(event),
            events.s3_caller(event["userIdentity"]),
            range=None if is_head else events.range_of(event),
            if_match=events.header_of(event, "If-Match"),
            if_none_match=events.header_of(event, "If-None-Match"),
            is_head=is_head,
        )
        return read_file(self._lakes(), request)

    def _write(self, event: events.ObjectLambdaEvent, response: Mapping[str, Any]) -> Answer:
        route = event["getObjectContext"]
        lakes = self._lakes()
        client = lakes.shared.aws.object_lambda(lakes.config.object_lambda_endpoint)
        client.write_get_object_response(
            RequestRoute=route["outputRoute"], RequestToken=route["outputToken"], **response
        )
        return {"statusCode": 200}
