"""A circuit breaker: what makes us wait in vain is left alone for a while."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SLOW_SECONDS = 1
"""A failure that took longer opens the breaker. Quick ones, such as throttling, cost no time."""

OPEN_SECONDS = 30


class CircuitBreaker:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open_until = -float("inf")

    @property
    def is_open(self) -> bool:
        return self._clock() < self._open_until

    @contextmanager
    def watching(self) -> Iterator[None]:
        """What is done within may open the breaker; its errors go on."""
        began = self._clock()
        try:
            yield
        except Exception:
            if self._clock() - began >= SLOW_SECONDS:
                self._open_until = self._clock() + OPEN_SECONDS
            raise
