"""Generated files as this process has them: used last, kept in a store, or made now.

A store that is broken, throttled or hanging costs speed, never an answer.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from aws_lambda_powertools import Logger

from .. import budget
from ..errors import PolynyaError, ServiceUnavailable
from ..metrics import count
from .circuit_breaker import CircuitBreaker
from .parallel import in_parallel
from .stores import Leases, Listed, Store

logger = Logger(child=True)

Answer = TypeVar("Answer")

RECENT_BYTES = 64 * 1024 * 1024

PATIENCE_SECONDS = 20
"""How long one waits for what another instance makes; a third of the time that is left, at most."""

POLL_SECONDS = 0.2


class MemoryCache:
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


class FileCache:
    """A store behind the bodies used last. Its failures are logged, and are no failures here."""

    def __init__(
        self,
        store: Store | None,
        recent: MemoryCache,
        *,
        must_keep: bool = False,
        leases: Leases | None = None,
        listed: Listed | None = None,
    ) -> None:
        """Nothing is asked yet.

        Args:
            must_keep: a put that fails is an error, for clients read the store itself.
            leases: of who makes what is not kept; without, everybody does.
            listed: the store, if it tells what it holds.
        """
        self._store, self._recent, self._must_keep = store, recent, must_keep
        self._leases, self._listed = leases, listed
        # What clients read cannot be left alone.
        self._breaker = None if must_keep else CircuitBreaker()

    def once(self, key: str, make: Callable[[], bytes]) -> bytes:
        """What is kept, or else what `make` gives, kept from now on.

        Of many instances that are asked at once, one makes it and the others wait. One that died
        while it did costs them the rest of its lease, then another one makes it.
        """
        given_up_at = time.monotonic() + min(PATIENCE_SECONDS, budget.left() / 3)
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
        if (leases := self._leases) is None:
            return True
        words = "the store gives no lease; the file is made without"
        return self._asked(lambda: leases.lease(key), True, words, key)

    def _release(self, key: str) -> None:
        if (leases := self._leases) is not None:
            words = "the store does not take a lease back; it ends by itself"
            self._asked(lambda: leases.release(key), None, words, key)

    def get(self, key: str) -> bytes | None:
        return self.get_many([key])[0]

    @property
    def is_listed(self) -> bool:
        """Whether `missing` looks at a list of what there is, instead of asking for each."""
        return self._listed is not None

    def ages(self, keys: Sequence[str]) -> dict[str, float]:
        """Of a listed store: how many seconds ago each was put, of those that are there now,
        whatever this process remembers.

        Raises:
            ServiceUnavailable: the store does not answer.
            Misconfigured: it may not be listed.
        """
        assert self._listed is not None
        with self._surely("the bucket cannot be listed", f"{len(keys)} keys"):
            return self._listed.ages(keys)

    def renew(self, keys: Sequence[str]) -> list[str]:
        """Let these be as if they were put now; gives those that are not there. Raises: as `ages`.

        Only of a listed store.
        """
        assert self._listed is not None
        with self._surely("a file cannot be renewed", f"{len(keys)} keys"):
            done = in_parallel(self._listed.renew, keys)
        return [key for key, is_there in zip(keys, done, strict=True) if not is_there]

    def remembered(self, key: str) -> bytes | None:
        """What this process has of it, whatever became of it in the store."""
        return self._recent.get(key)

    def missing(self, keys: Sequence[str]) -> list[str]:
        """Those of which nothing is kept."""
        if self._listed is not None:
            ages = self.ages(keys)
            return [key for key in keys if key not in ages]
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
        return in_parallel(self._stored_one, keys)

    def _stored_one(self, key: str) -> bytes | None:
        if (store := self._store) is None:
            return None
        budget.check()
        words = "the store cannot be read; the file is made anew"
        return self._asked(lambda: store.get(key), None, words, key)

    def put(self, key: str, body: bytes) -> bytes:
        count("Builds")
        if (store := self._store) is not None:
            if self._must_keep:
                with self._surely("a file cannot be put into the bucket", key):
                    body = store.put(key, body)
            else:
                words = "the store cannot be written; the file is not kept"
                body = self._asked(lambda: store.put(key, body), body, words, key)
        return self._recent.put(key, body)

    @contextmanager
    def _surely(self, words: str, key: str) -> Iterator[None]:
        """What fails within is an error for the client."""
        try:
            yield
        except PolynyaError:
            raise
        except Exception:
            logger.exception(words, key=key)
            count("StoreFailures")
            raise ServiceUnavailable("the bucket of the virtual files fails") from None

    def _asked(
        self, question: Callable[[], Answer], otherwise: Answer, words: str, key: str
    ) -> Answer:
        """What the store answers; `otherwise` if it fails, or has just made us wait in vain."""
        if self._breaker is not None and self._breaker.is_open:
            return otherwise
        try:
            with self._breaker.watching() if self._breaker is not None else nullcontext():
                return question()
        except Exception:
            logger.exception(words, key=key)
            count("StoreFailures")
            return otherwise
