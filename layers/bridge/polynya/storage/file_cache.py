"""Generated files, bytes by key: in memory, in a store, or generated now by one instance.

A key never changes its bytes, so the first copy stays. `file_cache` makes the cache that the
settings describe.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from threading import RLock
from typing import Protocol, TypeVar

from aws_lambda_powertools import Logger

from ..runtime import budget
from ..runtime.errors import log_fields
from ..runtime.metrics import count, observe
from ..runtime.prefetch import map_in_parallel
from ..runtime.settings import StorageSettings
from .aws import Clients, ssm_parameter
from .bucket_store import BucketStore, DeliveryBucket
from .cache_store import CacheStore
from .direct_s3 import DirectS3

logger = Logger(child=True)

Answer = TypeVar("Answer")

PATIENCE_SECONDS = 20
"""How long a request waits for a file that another instance generates; at most a third of the time
that is left."""

SHORTEST_PAUSE, LONGEST_PAUSE = 0.01, 0.2
"""How many seconds such a request waits before it reads the store again, at first and later."""


class Store(Protocol):
    """Bytes by key, in a service. Methods raise the service's own errors."""

    def get(self, key: str) -> bytes | None:
        """The stored bytes; None if there are none."""

    def put(self, key: str, body: bytes) -> bytes:
        """Store `body` unless the key is taken; returns what is stored under the key."""


class Leases(Protocol):
    """Decides which instance generates a file that is not stored."""

    def lease(self, key: str) -> bool:
        """Whether the caller has the lease now, and so generates the file."""

    def release(self, key: str) -> None:
        """End the caller's lease before its time, because it cannot generate the file."""


class Cache(Protocol):
    """The cache that has a table's files: `FileCache`, or the one of `publish`."""

    @property
    def is_listed(self) -> bool:
        """Whether `missing` lists the stored keys instead of reading each file."""

    def get(self, key: str) -> bytes | None:
        """The bytes of a file; None if it is not cached."""

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `get`, for each key in order."""

    def get_local(self, key: str) -> bytes | None:
        """As `get`, but only from the memory of this process."""

    def put(self, key: str, body: bytes) -> bytes:
        """Cache a file unless the key is taken; returns what is cached under the key."""

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that are not cached, in order."""


DEFAULT_LIMIT = 64 * 1024 * 1024


class MemoryCache:
    """Bytes by key, up to a limit; the least recently used are dropped first."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        """`limit`: the bytes of all bodies together. A larger body is not cached."""
        self._bodies: OrderedDict[str, bytes] = OrderedDict()
        self._limit = limit
        self._size = 0
        self._lock = RLock()

    def get(self, key: str) -> bytes | None:
        """The bytes of a file; None if they are not in memory."""
        with self._lock:
            body = self._bodies.get(key)
            if body is not None:
                self._bodies.move_to_end(key)
            return body

    def put(self, key: str, body: bytes) -> bytes:
        """Cache `body` unless the key is taken; returns what is cached under the key."""
        with self._lock:
            cached = self.get(key)
            if cached is not None or len(body) > self._limit:
                return cached or body
            self._bodies[key] = body
            self._size += len(body)
            while self._size > self._limit:
                self._size -= len(self._bodies.popitem(last=False)[1])
            return body


class FileCache:
    """A store behind a memory cache. Failures of the store are logged, and raise nothing."""

    def __init__(
        self,
        store: Store | None,
        memory: MemoryCache,
        *,
        leases: Leases | None = None,
        bucket: DeliveryBucket | None = None,
    ) -> None:
        """No request is made yet.

        Args:
            store: None if only the memory cache is used.
            leases: decide which instance generates a missing file; None: each does.
            bucket: the store, if clients read it directly. A put that fails is then an error.
        """
        self._store, self._memory = store, memory
        self._leases = leases
        self.bucket = bucket
        # A bucket that clients read is always tried.
        self._breaker = None if bucket is not None else budget.CircuitBreaker()

    def get_or_build(self, key: str, build: Callable[[], bytes]) -> bytes:
        """The cached file, or the one that `build` makes, which is then cached.

        If many instances need a file at the same time, one builds it and the others wait. If that
        instance dies, they wait until its lease ends, and another one builds the file.

        Raises:
            ServiceUnavailable: the bucket that clients read fails, or time has run out.
            Exception: whatever `build` raises.
        """
        wait_until = time.monotonic() + min(PATIENCE_SECONDS, budget.seconds_left() / 3)
        body, pause = self.get(key), SHORTEST_PAUSE
        while body is None and not self._lease(key) and time.monotonic() < wait_until:
            time.sleep(pause)
            body, pause = self.get(key), min(2 * pause, LONGEST_PAUSE)
        if body is not None:
            return body
        try:
            body = build()
        except BaseException:
            # Otherwise other instances would wait for a file that no one generates.
            self._release(key)
            raise
        return self.put(key, body)

    def _lease(self, key: str) -> bool:
        if (leases := self._leases) is None:
            return True
        message = "the store gives no lease; the file is generated without one"
        return self._call_store(lambda: leases.lease(key), True, message, key)

    def _release(self, key: str) -> None:
        if (leases := self._leases) is not None:
            message = "the lease cannot be released; it ends by itself"
            self._call_store(lambda: leases.release(key), None, message, key)

    def get(self, key: str) -> bytes | None:
        """The bytes of a file; None if it is not cached, or the store fails."""
        return self.get_many([key])[0]

    @property
    def is_listed(self) -> bool:
        """Whether `missing` lists the stored keys instead of reading each file."""
        return self.bucket is not None

    def get_local(self, key: str) -> bytes | None:
        """The bytes that this process has in memory, whether or not the store still has them."""
        return self._memory.get(key)

    def missing(self, keys: Sequence[str]) -> list[str]:
        """The keys that are not cached, in order.

        Raises:
            ServiceUnavailable, Misconfigured: the bucket that clients read cannot be listed.
        """
        if self.bucket is not None:
            ages = self.bucket.ages(keys)
            return [key for key in keys if key not in ages]
        bodies = self.get_many(keys)
        return [key for key, body in zip(keys, bodies, strict=True) if body is None]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """As `get`, for each key in order; the store gets several requests at a time.

        Raises:
            OutOfTime: no time is left for the request.
        """
        bodies = {key: self._memory.get(key) for key in keys}
        not_in_memory = [key for key, body in bodies.items() if body is None]
        stored = map_in_parallel(self._get_stored, not_in_memory)
        for key, body in zip(not_in_memory, stored, strict=True):
            bodies[key] = None if body is None else self._memory.put(key, body)
        in_order = [bodies[key] for key in keys]
        if hits := sum(body is not None for body in in_order):
            count("Hits", hits)
        return in_order

    def _get_stored(self, key: str) -> bytes | None:
        if (store := self._store) is None:
            return None
        budget.check()
        message = "the store cannot be read; the file is generated again"
        return self._call_store(lambda: store.get(key), None, message, key)

    def put(self, key: str, body: bytes) -> bytes:
        """Cache a file unless the key is taken; returns what is cached under the key.

        Raises:
            ServiceUnavailable: the bucket that clients read fails.
        """
        count("Builds")
        observe("GeneratedBytes", len(body))
        if self.bucket is not None:
            body = self.bucket.put(key, body)
        elif (store := self._store) is not None:
            message = "the store cannot be written; the file is not cached"
            body = self._call_store(lambda: store.put(key, body), body, message, key)
        return self._memory.put(key, body)

    def _call_store(
        self, request: Callable[[], Answer], default: Answer, message: str, key: str
    ) -> Answer:
        """The store's answer; `default` if it fails, or if the circuit breaker is open.

        Args:
            message: the text that is logged if the store fails.
        """
        if self._breaker is not None and self._breaker.is_open:
            return default
        try:
            with self._breaker.watching() if self._breaker is not None else nullcontext():
                return request()
        except Exception as error:
            # Any error: a broken cache may cost time, but no answer.
            logger.error(message, key=key, **log_fields(error))
            count("StoreFailures")
            return default


def resolve_bucket(settings: StorageSettings, clients: Clients) -> StorageSettings:
    """The settings with the name of the virtual bucket, where they name an SSM parameter.

    The Object Lambda function serves the access point and the access point names the function, so
    the template cannot pass the alias to the function: VIRTUAL_BUCKET is `ssm:NAME`.

    Raises:
        Misconfigured: the parameter does not exist, or may not be read.
        ServiceUnavailable: SSM does not answer.
    """
    source, _, parameter = settings.virtual_bucket.partition(":")
    if source != "ssm":
        return settings
    name = ssm_parameter("the name of the bucket", parameter, clients)
    return replace(settings, virtual_bucket=name)


def bucket_store(bucket: str, clients: Clients) -> BucketStore:
    """The store of the delivery `materialize`."""
    return BucketStore(bucket, lambda: clients("s3"), direct=DirectS3(clients))


def cache_store(settings: StorageSettings, clients: Clients) -> CacheStore | None:
    """The store of the delivery `object-lambda`; None without CACHE_TABLE."""
    if not settings.cache_table:
        return None
    return CacheStore(
        table=settings.cache_table,
        bucket=settings.cache_bucket,
        ttl_seconds=settings.ttl_seconds,
        dynamodb=lambda: clients("dynamodb"),
        s3=lambda: clients("s3"),
    )


def file_cache(
    settings: StorageSettings, clients: Clients, memory: MemoryCache | None = None
) -> FileCache:
    """The cache of generated files, with the store of the delivery.

    Args:
        memory: shared with other caches, which have other keys; None: this cache has its own.
    """
    memory = memory or MemoryCache()
    if settings.is_materialized:
        bucket = bucket_store(settings.virtual_bucket, clients)
        return FileCache(bucket, memory, bucket=DeliveryBucket(bucket))
    store = cache_store(settings, clients)
    return FileCache(store, memory, leases=store)
