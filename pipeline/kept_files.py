"""Files as they are kept in a store, and what a job adds to it."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from polynya.kept import AT_A_TIME, Kept, Recent
from polynya.store import Store

from .errors import Unavailable


class PublishedFiles(Kept):
    """Unlike the functions', a store that fails fails the job: it would only be slower with it."""

    def __init__(self, store: Store, writes: bool = True) -> None:
        super().__init__(None, Recent())
        self._target, self._writes, self._read = store, writes, Recent()
        self.made = 0
        self.bytes_made = 0

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
