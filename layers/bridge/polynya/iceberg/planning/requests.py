"""Bodies of planTableScan and fetchScanTasks, under their names in the specification."""

import json
from typing import Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from ...errors import BadRequest
from ..commits.body import Body

Parsed = TypeVar("Parsed")

SnapshotId = int | None


class PlanTableScanRequest(Body):
    snapshot_id: SnapshotId = None
    select: list[str] | None = None
    filter: Any = None
    """As JSON; `filters.filter_of` reads it."""
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: SnapshotId = None
    end_snapshot_id: SnapshotId = None


class FetchScanTasksRequest(Body):
    plan_task: str = Field(max_length=200_000)


def parse(kind: type[Parsed], body: bytes) -> Parsed:
    """The body of a request.

    Not by pydantic's own parser of JSON, which stops at 200 levels: a filter of 300 alternatives
    has as many.

    Raises:
        BadRequest: it does not have the form of the specification; the message says where.
    """
    try:
        return validated(kind, json.loads(body, parse_constant=_refuse))
    except (ValueError, RecursionError):
        raise BadRequest("the body is no JSON") from None


def validated(kind: type[Parsed] | Any, thing: Any) -> Parsed:
    """JSON that has the form of a model.

    Raises:
        BadRequest: it does not; the message says where, without the value, which can be anything.
    """
    try:
        found: Parsed = TypeAdapter(kind).validate_python(thing)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the body"
        raise BadRequest(f"{where}: {first['msg']}") from None
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")
