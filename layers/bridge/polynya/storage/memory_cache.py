"""The files that this process used last."""

from collections import OrderedDict
from threading import RLock

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
