"""The REST function's handler in this process, called for one table as API Gateway calls it."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from polynya_local.clients.native import Lake

from .bridge import settings
from .lakes import NAMESPACE, TABLE

EVENT = Path(__file__).parents[2] / "events" / "rest_load_table.json"
CONTEXT = SimpleNamespace(
    function_name="rest_catalog",
    memory_limit_in_mb=1769,
    invoked_function_arn="arn:aws:lambda:eu-north-1:0:function:f",
    aws_request_id="0",
    get_remaining_time_in_millis=lambda: 29_000,
)

Answer = dict[str, Any]
Ask = Callable[..., Answer]
"""A function from a query string and headers to the answer that API Gateway receives."""


def load_table_event(query: str = "", headers: dict[str, str] | None = None) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(EVENT.read_text())
    path = f"/v1/lake/namespaces/{NAMESPACE}/tables/{TABLE}"
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["rawQueryString"] = query
    event["headers"] |= headers or {}
    return event


@contextmanager
def handling(lake: Lake) -> Iterator[Ask]:
    """The handler, with nothing cached from another lake."""
    from functions.rest_catalog import app

    def ask(query: str = "", **headers: str) -> Answer:
        answer: Answer = app.handler(load_table_event(query, headers), CONTEXT)
        return answer

    with patch.dict(os.environ, settings(lake)):
        app.lakes.cache_clear()
        yield ask
        app.lakes().close()
        app.lakes.cache_clear()
