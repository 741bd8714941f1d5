"""How many requests a caller, or an address without a valid token, may send: token buckets.

https://en.wikipedia.org/wiki/Token_bucket
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from math import ceil
from threading import Lock

from polynya.runtime.errors import PolynyaError

from .addresses import address_key

BURST_SECONDS = 10
"""A caller may send at once what it has not sent in this many seconds."""
MOST_BUCKETS = 10_000
"""The number of callers and addresses that are remembered: the last ones."""


class TooManyRequests(PolynyaError):
    """A caller, or an address, has sent more than it may. The specification has no type for it."""

    status = 429
    type = "TooManyRequestsException"
    code = "SlowDown"

    def __init__(self, seconds: float) -> None:
        self.retry_after = max(1, ceil(seconds))
        super().__init__(f"too many requests: try again in {self.retry_after} s")


class TokenBuckets:
    """A bucket for each key, which fills up over time; a request takes one token out of it."""

    def __init__(
        self, rate: float, burst: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with full buckets.

        Args:
            rate: tokens a second.
            burst: how many a bucket holds; None: those of ten seconds.
            clock: gives seconds.
        """
        self._rate, self._clock = rate, clock
        self._burst = max(1.0, rate * BURST_SECONDS if burst is None else burst)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """The tokens of each bucket, and when they were counted."""
        self._lock = Lock()

    def check(self, key: str) -> None:
        """Check that a bucket has a token, without taking it.

        Raises:
            TooManyRequests: the bucket is empty.
        """
        with self._lock:
            self._require_one(self._tokens(key))

    def take(self, key: str) -> None:
        """Take a token. Raises: as `check`."""
        with self._lock:
            tokens = self._tokens(key)
            self._require_one(tokens)
            self._buckets[key] = tokens - 1, self._clock()
            self._buckets.move_to_end(key)
            while len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)

    def _tokens(self, key: str) -> float:
        tokens, since = self._buckets.get(key, (self._burst, 0.0))
        return min(self._burst, tokens + (self._clock() - since) * self._rate)

    def _require_one(self, tokens: float) -> None:
        if tokens < 1:
            raise TooManyRequests((1 - tokens) / self._rate)


class RequestRate:
    """Limits the requests of each caller, and of each address without a valid token."""

    def __init__(self, rate: float | None) -> None:
        """`rate`: requests a second; None: any number."""
        self._buckets = None if rate is None else TokenBuckets(rate)

    def check(self, client: str) -> None:
        """Check, before a token is verified, that an address has not sent too many requests.

        Raises:
            TooManyRequests: it has; requests with valid tokens do not count for the address.
        """
        if self._buckets is not None:
            self._buckets.check(address_key(client))

    def take(self, client: str, identity: str = "") -> None:
        """Count a request for its caller, or for its address if the caller is unknown.

        Raises: as `TokenBuckets`.
        """
        if self._buckets is not None:
            self._buckets.take(f"caller {identity}" if identity else address_key(client))

    def miss(self, client: str) -> None:
        """Count a request that is refused anyway."""
        with suppress(TooManyRequests):
            self.take(client)
