"""The id of the request that is answered, by which its log lines are found.

A host gives it, in the context of the request, as it does the time budget (`budget.py`). On Lambda
powertools has that of API Gateway or S3 in each line, as `correlation_id`.
"""

import logging
from contextlib import AbstractContextManager
from contextvars import ContextVar

from .context import assigned

_current: ContextVar[str] = ContextVar("request_id", default="")


def identified(request_id: str) -> AbstractContextManager[None]:
    """Give the block the id of its request."""
    return assigned(_current, request_id)


def current_request_id() -> str:
    """The id of the request that is answered; empty: there is none, or no host has given it."""
    return _current.get()


def add_request_id(record: logging.LogRecord) -> bool:
    """Give a log line the id of its request, as a filter of a handler that keeps every line."""
    if request_id := current_request_id():
        record.request_id = request_id
    return True
