"""The footers of the Parquet files of a commit, read from S3 and parsed in batches."""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from threading import Lock
from typing import Any

from ...iceberg.avro.client_manifests import WrittenFile
from ...iceberg.parquet.footer import TAIL, NotParquet
from ...iceberg.parquet.metadata import Footer, ParquetMetadata, footer_length, metadata
from ...runtime.errors import BadRequest, Misconfigured, NoSuchKey
from ...runtime.prefetch import map_in_parallel
from ...storage.direct_s3 import AT_A_TIME
from ...storage.objects import ObjectReader
from ..client_locations import normalised

FIRST_GUESS, LEAST_GUESS = 64 * 1024, 4 * 1024
"""How much of a file's end one request reads. The footers of later files are expected to be as long
as the first ones: to read 64 KB of 10,000 files would take S3 and Lambda 9 s."""

FIRST_BATCH, BATCH = 32, 1000
"""Files that are read together."""

LONGEST_FOOTER = 16 * 1024 * 1024
"""Enough for 1,000 columns and 100 row groups."""

MOST_BYTES = 128 * 1024 * 1024
"""The size of all footers of a commit; those of 10,000 files with 20 columns are 60 MB."""


class FooterReader:
    """Reads the footers of one commit."""

    def __init__(self, reader: ObjectReader) -> None:
        self._reader = reader
        self._guess = FIRST_GUESS
        self._bytes = 0
        # Several footers are read at the same time.
        self._lock = Lock()

    def metadata(
        self, files: Sequence[WrittenFile]
    ) -> Generator[tuple[Sequence[WrittenFile], list[ParquetMetadata]], None, None]:
        """The files in batches, with what their footers say.

        While the caller works on one batch, DuckDB reads the next one, and S3 a later one.

        Raises:
            BadRequest: a file cannot be read, or the footers are too long in all.
        """
        batches = [files[:FIRST_BATCH], *_batches(files[FIRST_BATCH:])] if files else []
        with _one_thread() as fetch, _one_thread() as parse:
            # Batches are not kept after they are yielded: they take several times the size of the
            # footers.
            parsed = deque(parse(_parsed, fetch(self.read, batch)) for batch in batches)
            for batch in batches:
                yield batch, parsed.popleft().result()

    def read(self, files: Sequence[WrittenFile]) -> list[Footer]:
        """The footers of these files, in order. Raises: as `metadata`."""
        footers = map_in_parallel(self._footer, files, AT_A_TIME)
        longest = max(len(footer.tail) for footer in footers)
        self._guess = min(FIRST_GUESS, max(LEAST_GUESS, 2 * longest))
        return footers

    def _footer(self, file: WrittenFile) -> Footer:
        size = file.file_size_in_bytes
        if size <= TAIL:
            raise BadRequest("a data file of the commit is too short for a Parquet file")
        try:
            return Footer(size, self._tail(normalised(file.file_path), size))
        except (NoSuchKey, Misconfigured):
            # S3 answers 403 for what does not exist, because no role may list the bucket.
            raise BadRequest(
                "a data file of the commit does not exist in S3, or is shorter than the manifest "
                "says, or cannot be read"
            ) from None
        except NotParquet as error:
            raise _unreadable(error) from None

    def _tail(self, location: str, size: int) -> bytes:
        """The end of a file, from the first byte of the footer."""
        start = max(0, size - self._guess)
        # One byte more, to see that the file ends there.
        tail = self._reader.read_range(location, start, size + 1)
        if len(tail) != size - start:
            raise NotParquet("it is longer or shorter than the manifest says")
        length = footer_length(tail)
        if not TAIL < length <= min(size, LONGEST_FOOTER):
            raise NotParquet("its footer is longer than the file, or than 16 MB")
        self._count(length)
        if length > len(tail):
            tail = self._reader.read_range(location, size - length, size)
        return tail[-length:]

    def _count(self, length: int) -> None:
        with self._lock:
            self._bytes += length
            if self._bytes > MOST_BYTES:
                raise BadRequest(
                    f"the footers of the added data files have more than {MOST_BYTES >> 20} MB: "
                    "commit fewer files at a time, or write files with fewer row groups or columns"
                )


def _batches(files: Sequence[WrittenFile]) -> Iterator[Sequence[WrittenFile]]:
    return (files[start : start + BATCH] for start in range(0, len(files), BATCH))


def _unreadable(error: NotParquet) -> BadRequest:
    """The error for a file that DuckDB cannot read as Parquet."""
    return BadRequest(f"a data file of the commit cannot be read: {error}")


def _parsed(footers: Future[list[Footer]]) -> list[ParquetMetadata]:
    try:
        return metadata(footers.result())
    except NotParquet as error:
        raise _unreadable(error) from None


@contextmanager
def _one_thread() -> Iterator[Callable[..., Future[Any]]]:
    """A function that gives work to one thread; what has not begun at the end is cancelled."""
    pool = ThreadPoolExecutor(1)
    try:
        # The time budget of the request is in the context.
        yield lambda work, item: pool.submit(copy_context().run, work, item)
    finally:
        pool.shutdown(cancel_futures=True)
