"""Files as they are kept in a store, and what a job adds to it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.parallel import in_parallel
from polynya.storage.stores import Store

from ..common.errors import Unavailable
from .pages import Page, key_of, packed, pages, unpacked

SUMMARY = ".summary"

MANY = 32
"""Keys that are rather looked for in a list than asked for one by one."""

There = Callable[[Sequence[str]], set[str]]
"""Which of some keys of one table are there."""


class PublishedFiles(FileCache):
    """Unlike the functions', a store that fails fails the job: it would only be slower with it."""

    def __init__(self, store: Store, there: There | None = None, writes: bool = True) -> None:
        """`there`: where the store can be listed."""
        super().__init__(None, MemoryCache())
        self._target, self._there, self._writes, self._read = store, there, writes, MemoryCache()
        self._known: set[str] = set()
        self.made = 0
        self.bytes_made = 0

    @property
    def is_listed(self) -> bool:
        return self._there is not None

    def missing(self, keys: Sequence[str]) -> list[str]:
        """One request for a thousand keys, instead of one for each."""
        unknown = [key for key in keys if key not in self._known]
        if self._there is None or len(unknown) < MANY:
            return super().missing(unknown)
        try:
            self._known |= self._there(unknown)
        except Unavailable:  # perhaps it may only be read
            return super().missing(unknown)
        return [key for key in unknown if key not in self._known]

    def get(self, key: str) -> bytes | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[str]) -> list[bytes | None]:
        """Raises:
        Unavailable: the store cannot be read.
        """
        new = self._read_pages([key for key in keys if key in self._known])
        bodies = self._get_each(keys)
        found = dict(zip(keys, bodies, strict=True))
        for page in new:
            on_it = [body for key in page if (body := found[key]) is not None]
            if len(on_it) == len(page):
                self.put(key_of(page), packed(on_it))
        return bodies

    def _read_pages(self, keys: Sequence[str]) -> list[Page]:
        """Take the summaries that are kept together; gives the pages that are not there yet."""
        every = list(pages([key for key in keys if key.endswith(SUMMARY)]))
        new = []
        for page, body in zip(every, self._get_each([*map(key_of, every)]), strict=True):
            if body is None:
                new.append(page)
            else:
                for key, of_key in zip(page, unpacked(body), strict=True):
                    self._read.put(key, of_key)
        return new

    def _get_each(self, keys: Sequence[str]) -> list[bytes | None]:
        return in_parallel(self._get, keys)

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
