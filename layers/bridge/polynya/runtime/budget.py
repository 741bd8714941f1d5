"""The time that one request may take, shared by everything that it waits for.

Connections and clients are opened once and serve many requests, so they do not get the budget as an
argument: it is in the context (`contextvars`), where each wait reads how much time is left. A
thread that works for a request runs in a copy of its context.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, NamedTuple

from .context import assigned
from .errors import OutOfTime

SLOW_SECONDS = 1
"""A failure that took longer opens a breaker. Quick failures (throttling) cost no time."""

OPEN_SECONDS = 30

Handler = Callable[[Any, Any], Any]
"""A Lambda handler: (event, context) -> answer."""


class Budget(NamedTuple):
    """The start and the end of a request, in seconds of the monotonic clock."""

    started_at: float
    ends_at: float


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


def limited(seconds: float) -> AbstractContextManager[None]:
    """Give the block a budget of these seconds."""
    now = time.monotonic()
    return assigned(_current, Budget(now, now + seconds))


def seconds_left() -> float:
    """The seconds that are left, at least 0; infinite outside of a request."""
    budget = _current.get()
    return math.inf if budget is None else max(0.0, budget.ends_at - time.monotonic())


def started_at() -> float:
    """When the request started, on the monotonic clock; now, outside of a request."""
    budget = _current.get()
    return time.monotonic() if budget is None else budget.started_at


def check() -> None:
    """Stop a request that has used up its time.

    Raises:
        OutOfTime: no time is left.
    """
    if seconds_left() <= 0:
        raise OutOfTime("the answer takes longer than one request may take; try again")


def budgeted(reserve_seconds: float) -> Callable[[Handler], Handler]:
    """Decorate a Lambda handler: each invocation has the time that Lambda gives it as its budget.

    Args:
        reserve_seconds: the time that is kept back, so that an error can be answered in time.
    """

    def decorate(handler: Handler) -> Handler:
        @wraps(handler)
        def limited_handler(event: Any, context: Any) -> Any:
            seconds = context.get_remaining_time_in_millis() / 1000
            with limited(seconds - reserve_seconds):
                return handler(event, context)

        return limited_handler

    return decorate


class CircuitBreaker:
    """Open for 30 s after failures that took more than a second each."""

    def __init__(self, failures: int = 1) -> None:
        """`failures`: how many failures in a row open it."""
        self._failures, self._limit = 0, failures
        self._open_until = -math.inf

    @property
    def is_open(self) -> bool:
        """Whether the service is not to be called now."""
        return time.monotonic() < self._open_until

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Count a failure if the block fails slowly; its error is raised in any case."""
        started = time.monotonic()
        try:
            yield
        except Exception:
            self.record_failure(time.monotonic() - started)
            raise
        self.record_success()

    def record_failure(self, seconds: float) -> None:
        """Count a failure that took these seconds, if that is slow."""
        if seconds < SLOW_SECONDS:
            return
        self._failures += 1
        if self._failures >= self._limit:
            self._open_until = time.monotonic() + OPEN_SECONDS

    def record_success(self) -> None:
        """Start to count failures from zero."""
        self._failures = 0
