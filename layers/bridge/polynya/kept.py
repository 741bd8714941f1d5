"""Generated files as this process has them: used last, kept in a store, or made now.

A store that is broken or throttled costs speed, never an answer.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from aws_lambda_powertools import Logger

from .errors import ServiceUnavailable
from .metrics import count
from .store import Leases, Store

logger = Logger(child=True)

AT_A_TIME = 16
"""How many files are asked for at the same time."""

RECENT_BYTES = 64 * 1024 * 1024

PATIENCE_SECONDS = 20
"""How long one waits for what another instance makes."""

POLL_SECONDS = 0.2


class Recent:
    """The bodies used last, in this process, up to 64 MiB."""

    def __init__(self, limit: int = RECENT_BYTES) -> None:
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._limit = limit
        self._size = 0

    def get(self, key: str) -> bytes | None:
        body = self._bodies.get(key)
        if body is not None:
            self._bodies.move_to_end(key)
        return body

    def put(self, key: str, body: bytes) -> bytes:
        kept = self.get(key)
        if kept is not None or len(body) > self._limit:
            return kept or body
        self._bodies[key] = body
        self._size += len(body)
        while self._size > self._limit:
            self._size -= len(self._bodies.popitem(last=False)[1])
        return body


class Kept:
    """A store behind the bodies used last. Its failures are logged, and are no failures here."""

    def __init__(
        self,
        store: Store | None,
        recent: Recent,
        *,
        must_keep: bool = False,
        leases: Leases | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            must_keep: a put that fails is an error, for clients read the store itself.
            leases: of who makes what is not kept; without, everybody does.
        """
        self._store, self._recent, self._must_keep = store, recent, must_keep
        self._leases = leases

    def once(self, key: str, make: Callable[[], bytes]) -> bytes:
        """What is kept, or else what `make` gives, kept from now on.

        Of many instances that are asked at once, one makes it and the others wait. One that died
        while it did costs them the rest of its lease, then another one makes it.
        """
        given_up_at = time.monotonic() + PATIENCE_SECONDS
        body = self.get(key)
        while body is None and not self._leased(key) and time.monotonic() < given_up_at:
            time.sleep(POLL_SECONDS)
            body = self.get(key)
        if body is not None:
            return body
        try:
            body = make()
        except BaseException:
            self._release(key)
            raise
        return self.put(key, body)

    def _leased(self, key: str) -> bool:
        try:
            return self._leases is None or self._leases.lease(key)
        except Exception:
            logger.exception("the store gives no lease; the file is made without", key=key)
            count("StoreFailures")
            return True

    def _release(self, key: str) -> None:
        try:
            if self._leases is not None:
                self._leases.release(key)
        except Exception:
            logger.exception("the store does not take a lease back; it ends by itself", key=key)
            count("StoreFailures")

    def get(self, key: str) -> bytes | None:
        return self.get_many([key])[0]

    def missing(self, keys: Sequence[str]) -> list[str]:
        """Those of which nothing is kept."""
        kept = self.get_many(keys)
        return [key for key, body in zip(keys, kept, strict=True) if body is None]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Many at once: the store is asked for several at a time."""
        bodies = {key: self._recent.get(key) for key in keys}
        asked = [key for key, body in bodies.items() if body is None]
        for key, body in zip(asked, self._stored(asked), strict=True):
            bodies[key] = None if body is None else self._recent.put(key, body)
        found = [bodies[key] for key in keys]
        if hits := sum(body is not None for body in found):
            count("Hits", hits)
        return found

    def _stored(self, keys: Sequence[str]) -> list[bytes | None]:
        if len(keys) < 2:  # nearly always: no thread for one
            return [self._stored_one(key) for key in keys]
        with ThreadPoolExecutor(min(AT_A_TIME, len(keys))) as pool:
            return list(pool.map(self._stored_one, keys))

    def _stored_one(self, key: str) -> bytes | None:
        if self._store is None:
            return None
        try:
            return self._store.get(key)
        except Exception:
            logger.exception("the store cannot be read; the file is made anew", key=key)
            count("StoreFailures")
            return None

    def put(self, key: str, body: bytes) -> bytes:
        count("Builds")
        if self._store is not None:
            try:
                body = self._store.put(key, body)
            except Exception:
                count("StoreFailures")
                if self._must_keep:
                    logger.exception("a file cannot be put into the bucket", key=key)
                    raise ServiceUnavailable("the bucket of the virtual files fails") from None
                logger.exception("the store cannot be written; the file is not kept", key=key)
        return self._recent.put(key, body)
