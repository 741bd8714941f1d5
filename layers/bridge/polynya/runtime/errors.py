"""Errors, each with the answer that clients get.

The answer has two forms: on the REST side the specification's error type and status (`ErrorModel`
of the Iceberg OpenAPI document), on the file side S3's error code. Errors are raised where the
problem is found; the functions make the answers of them, each in one place.
"""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypedDict

logger = logging.getLogger(__name__)

REMEDY = "; correct the rows of the catalog, or restore it from a backup"
"""The end of a message that names broken rows of the catalog: what the user can do."""


class ErrorModel(TypedDict):
    """`ErrorModel` of the Iceberg REST specification."""

    message: str
    type: str
    code: int


class PolynyaError(Exception):
    """Base of every error that Polynya raises on purpose."""

    status = 500
    type = "InternalServerError"
    code = "InternalError"
    retry_after: int | None = None
    """Seconds after which the same request may succeed, for the header `Retry-After`."""
    is_transient: bool = False
    """A second try may succeed at once: the connection was lost, or a table was dropped."""

    def rest_model(self) -> ErrorModel:
        """The answer of the REST catalog."""
        return {"message": str(self), "type": self.type, "code": self.status}


class BadRequest(PolynyaError):
    """The request is malformed, or asks for something that this catalog cannot do."""

    status = 400
    type = "BadRequestException"
    code = "InvalidRequest"


class ContentTooLarge(PolynyaError):
    """The body of a request is longer than the host takes. The specification has no type for it."""

    status = 413
    type = "ContentTooLargeException"
    code = "EntityTooLarge"


class RequestTimeout(PolynyaError):
    """The client does not send the body of its request. The specification has no type for it."""

    status = 408
    type = "RequestTimeoutException"
    code = "RequestTimeout"


class IllegalArgument(BadRequest):
    """A request about a view that contradicts itself, by the name that Iceberg's own server uses.

    Not for tables: a client that gets this type keeps the files of its commit.
    """

    type = "IllegalArgumentException"


class Refused(BadRequest):
    """A lake or a table that cannot be served exactly, with the reason and what to do about it."""


class PlannedByClient(Refused):
    """A scan that the client has to plan."""


class HiddenFromCaller(Refused):
    """A table with columns that the caller may not see, and that cannot be served without them."""


@contextmanager
def hiding_reasons(hides: bool) -> Iterator[None]:
    """Replace the reasons for which a table is refused: they may speak of what is hidden.

    Args:
        hides: False: the reasons stay.
    """
    try:
        yield
    except (HiddenFromCaller, PlannedByClient):
        raise
    except Refused as error:
        if not hides:
            raise
        logger.warning("refused to a caller who does not see all columns: %s", error)
        raise HiddenFromCaller(
            "this cannot be served without the columns that the authorization policy hides from "
            "you; the log of the server says why"
        ) from None


class NotAuthorized(PolynyaError):
    """A request without a token that the host knows."""

    status = 401
    type = "NotAuthorizedException"
    code = "AccessDenied"


class Forbidden(PolynyaError):
    """A write that the caller has no right to, or any write if the catalog is read-only.

    Nothing is committed then: on 403 Spark removes what it has uploaded.
    """

    status = 403
    type = "ForbiddenException"
    code = "AccessDenied"


class AlreadyExists(PolynyaError):
    """A namespace, a table or a view of this name exists."""

    status = 409
    type = "AlreadyExistsException"


class NamespaceNotEmpty(PolynyaError):
    """A namespace cannot be dropped, because it has tables or views."""

    status = 409
    type = "NamespaceNotEmptyException"


class Unprocessable(PolynyaError):
    """A request sets and removes the same property."""

    status = 422
    type = "UnprocessableEntityException"


class CommitFailed(PolynyaError):
    """A requirement of the commit does not hold any more. Nothing is changed; the client may load
    the table again and repeat."""

    status = 409
    type = "CommitFailedException"


class ConcurrentCommit(CommitFailed):
    """Another writer of the lake has committed in the meantime: the same commit is tried again."""

    is_transient = True


class CommitStateUnknown(PolynyaError):
    """The connection was lost at COMMIT, and it is not known whether the commit took place. With
    this type clients keep the files that they wrote."""

    status = 500
    type = "CommitStateUnknownException"


class NoSuchWarehouse(PolynyaError):
    """No lake is served under this name."""

    status = 404
    type = "NoSuchWarehouseException"


class NoSuchNamespace(PolynyaError):
    """No DuckLake schema has this name."""

    status = 404
    type = "NoSuchNamespaceException"


class NoSuchTable(PolynyaError):
    """No table has this name. This is also the answer if its namespace is missing: Spark resolves
    metadata tables (`t.snapshots`) by loading a table of a namespace that does not exist."""

    status = 404
    type = "NoSuchTableException"


class NoSuchPlanTask(PolynyaError):
    """A plan task of another table or caller, or whose snapshot has expired or was rewritten."""

    status = 404
    type = "NoSuchPlanTaskException"


class Unsupported(PolynyaError):
    """An operation of the specification that this catalog does not have."""

    status = 406
    type = "UnsupportedOperationException"


class NoSuchView(PolynyaError):
    """No view has this name."""

    status = 404
    type = "NoSuchViewException"


class Expired(PolynyaError):
    """The requested events have expired. The specification has no type for it."""

    status = 410
    type = "SnapshotExpiredException"


class NoSuchRoute(PolynyaError):
    """No operation of the catalog has this path. The specification has no type for it."""

    status = 404
    type = "NoSuchRouteException"


class NoSuchKey(PolynyaError):
    """The key names no virtual file, or one whose catalog rows are gone or rewritten."""

    status = 404
    code = "NoSuchKey"


class InvalidRange(PolynyaError):
    """The Range header holds no byte of the file."""

    status = 416
    code = "InvalidRange"


class NotModified(PolynyaError):
    """If-None-Match names the current file."""

    status = 304
    code = "NotModified"


class PreconditionFailed(PolynyaError):
    """If-Match names another version of the file."""

    status = 412
    code = "PreconditionFailed"


class ServiceUnavailable(PolynyaError):
    """PostgreSQL or S3 does not answer now; the same request may succeed later."""

    status = 503
    type = "SlowDownException"
    code = "SlowDown"
    retry_after = 2


class OutOfTime(ServiceUnavailable):
    """The time budget of the request is used up, whatever it was waiting for."""


class Misconfigured(PolynyaError):
    """A missing setting, grant or catalog, which only the operator can correct."""


def log_fields(error: BaseException) -> dict[str, Any]:
    """The fields of a log line about an unexpected error: its type, and where it was raised.

    They do not include its message: libraries quote values that they cannot use, which may be from
    rows.
    """
    frames = traceback.extract_tb(error.__traceback__)
    calls = (f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
    return {"error": type(error).__name__, "raised_at": " > ".join(calls)}


READ_ONLY = (
    "this catalog is read-only: `polynya serve --writes` lets clients write, on AWS the parameter "
    "Writes=yes"
)
"""The message with which every write is refused where none is permitted."""
