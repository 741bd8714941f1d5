"""A lake that clients write, served by the functions in this process; each commit is measured."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from polynya.ducklake.queries.writers import writer_rights
from polynya.ducklake.writes import new_snapshot as commits_table
from polynya_local.clients.native import Lake
from polynya_local.processes.serving import REGION
from polynya_local.writes import everybody_may_write
from polynya_pipeline.common.database import connect

from tests.aws.functions import Functions
from tests.aws.stand_in import StandIn

from ...measure import SQL, WAITS, Cost, once, watching
from ..lakes import BUCKET

Handler = Callable[[dict[str, Any], Any], Any]


@dataclass(frozen=True, slots=True)
class Commit:
    """What the function `commits` did for one request."""

    cost: Cost
    statements: int
    waits: int
    """For PostgreSQL."""


@dataclass
class Served:
    """A catalog of the lake; `commits` grows with each request that writes."""

    uri: str = ""
    commits: list[Commit] = field(default_factory=list)


@contextmanager
def served(lake: Lake, s3_endpoint: str) -> Iterator[Served]:
    """Serve a lake with the delivery `materialize`, so that clients read S3 itself."""
    with closing(connect(lake.database.url, "public")) as con:
        commits_table.set_up(con, writer_rights().run(con))
    settings = {
        "DATABASE_URL": lake.database.url,
        "DELIVERY": "materialize",
        "VIRTUAL_BUCKET": BUCKET,
        "VIRTUAL_PREFIX": f"polynya/{lake.data_path.rpartition('/')[2]}",
        "AWS_ENDPOINT_URL_S3": s3_endpoint,
        "BUILD_SECONDS": "3600",
        "WRITES": "yes",
        "AUTHORIZATION": everybody_may_write(),
        "POWERTOOLS_LOG_LEVEL": "WARNING",
    }
    found = Served()
    stand_in = StandIn(alias=None, supporting_bucket=BUCKET, s3_endpoint=s3_endpoint, region=REGION)
    with patch.dict(os.environ, settings), stand_in, closing(Functions()) as functions:

        def measured(event: dict[str, Any], context: Any) -> Any:
            answers = []
            with watching(sql=SQL, waits=WAITS) as seen:
                cost = once(lambda: answers.append(_patiently(functions.commits)(event, context)))
            found.commits.append(Commit(cost, seen.calls["sql"], seen.calls["waits"]))
            return answers[0]

        reads = _patiently(functions.rest_catalog)
        stand_in.start(reads, functions.object_lambda, commits_handler=measured)
        found.uri = stand_in.api_uri
        yield found


def _patiently(handler: Handler) -> Handler:
    """A handler without the time limit of Lambda: the first answer for a table takes longest."""
    names = ("function_name", "memory_limit_in_mb", "invoked_function_arn", "aws_request_id")

    def answer(event: dict[str, Any], context: Any) -> Any:
        known = {name: getattr(context, name) for name in names}
        patient = SimpleNamespace(**known, get_remaining_time_in_millis=lambda: 900_000)
        return handler(event, patient)

    return answer
