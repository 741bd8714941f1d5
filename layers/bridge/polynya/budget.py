"""The time that one request may take, shared by everything that it waits for.

Connections and clients are opened once and serve many requests, so the budget is not handed to
them: it is in the context (`contextvars`), where each wait looks at what is left. A thread that
works for a request runs in a copy of its context.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple

from .errors import OutOfTime

Handler = Callable[[dict[str, Any], Any], Any]


class Budget(NamedTuple):
    """Readings of the monotonic clock, in seconds."""

    began_at: float
    ends_at: float


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """What runs within has so many seconds."""
    now = time.monotonic()
    token = _current.set(Budget(now, now + seconds))
    try:
        yield
    finally:
        _current.reset(token)


def left() -> float:
    """Seconds, 0 at least; infinite outside of a request."""
    budget = _current.get()
    return math.inf if budget is None else max(0.0, budget.ends_at - time.monotonic())


def began_at() -> float:
    """When the request began, on the monotonic clock; now, outside of a request."""
    budget = _current.get()
    return time.monotonic() if budget is None else budget.began_at


def check() -> None:
    """Raises:
    OutOfTime: nothing is left.
    """
    if left() <= 0:
        raise OutOfTime("the answer takes longer than one request may; try again")


def budgeted(reserve_seconds: float) -> Callable[[Handler], Handler]:
    """A Lambda handler whose requests have what Lambda gives them.

    Args:
        reserve_seconds: are kept to say in time that the time is over.
    """

    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        def limiting(event: dict[str, Any], context: Any) -> Any:
            seconds = context.get_remaining_time_in_millis() / 1000
            with limited(seconds - reserve_seconds):
                return handler(event, context)

        return limiting

    return decorate
