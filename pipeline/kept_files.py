"""Files as they are kept in a store, and what a job adds to it."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from polynya.kept import AT_A_TIME, Kept, Recent
from polynya.store import Store

from .errors import Unavailable

MANY = 32
"""Keys that are rather looked for in a list than asked for one by one."""

Listing = Callable[[str], Callable[[str], bool]]
"""Lists the files beside that of a key; of what comes back, keys ask whether they are there."""


class PublishedFiles(Kept):
    """Files of one table. Unlike the functions', a store that fails fails the job: it would only be
    slower with it."""

    def __init__(self, store: Store, listing: Listing | None = None, writes: bool = True) -> None:
        """`listing`: where the store can be listed."""
        super().__init__(None, Recent())
        self._target, self._listing, self._writes, self._read = store, listing, writes, Recent()
        self._is_there: Callable[[str], bool] | None = None
        self._known: set[str] = set()
        self.made = 0
        self.bytes_made = 0

    def missing(self, keys: Sequence[str]) -> list[str]:
        """One request for a thousand keys, instead of one for each."""
        unknown = [key for key in keys if key not in self._known]
        if self._listing is None or len(unknown) < MANY:
            return super().missing(unknown)
        try:
            self._is_there = self._is_there or self._listing(unknown[0])
        except Unavailable:  # perhaps it may only be read
            self._listing = None
            return super().missing(unknown)
        self._known.update(filter(self._is_there, unknown))
        return [key for key in unknown if key not in self._known]

    def get(self, key: str) -> bytes | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Raises:
        Unavailable: the store cannot be read.
        """
        if len(keys) < 2:
            return [self._get(key) for key in keys]
        with ThreadPoolExecutor(min(AT_A_TIME, len(keys))) as pool:
            return list(pool.map(self._get, keys))

    def put(self, key: str, body: bytes) -> bytes:
        """Raises:
        Unavailable: the store cannot be written.
        """
        if self._writes:
            with _said("written"):
                body = self._target.put(key, body)
            self._known.add(key)
            self.made += 1
            self.bytes_made += len(body)
        return self._read.put(key, body)

    def _get(self, key: str) -> bytes | None:
        body = self._read.get(key)
        if body is None:
            with _said("read"):
                body = self._target.get(key)
            if body is not None:
                self._read.put(key, body)
        return body


@contextmanager
def _said(done: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "an error")
        why = f"{code} at {error.operation_name}"
    except BotoCoreError as error:
        why = type(error).__name__
    else:
        return
    raise Unavailable(f"the store of the files cannot be {done}: {why}")
