"""A circuit breaker: a service that fails slowly is not called for a while."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLOW_SECONDS = 1
"""A failure that took longer opens the breaker. Quick ones, such as throttling, cost no time."""

OPEN_SECONDS = 30


class CircuitBreaker:
    """Open for 30 s after a failure that took more than a second."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds."""
        self._clock = clock
        self._open_until = -float("inf")

    @property
    def is_open(self) -> bool:
        """Whether the service is not to be called now."""
        return self._clock() < self._open_until

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Open the breaker if the block fails slowly; its error is raised in any case."""
        started = self._clock()
        try:
            yield
        except Exception:
            if self._clock() - started >= SLOW_SECONDS:
                self._open_until = self._clock() + OPEN_SECONDS
            raise
