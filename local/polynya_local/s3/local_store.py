"""The lakes' own files in folders of this machine, as the catalog reads and writes them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO

from polynya.runtime.errors import Misconfigured, NoSuchKey, ServiceUnavailable
from polynya.storage.object_store import ObjectStore
from polynya.storage.objects import LARGEST, TooLarge, check_range
from polynya.storage.s3_locations import bucket_and_key

from .local_bucket import PIECE, LocalBucket, NotAKey


def local_store(buckets: Mapping[str, LocalBucket], s3: ObjectStore) -> ObjectStore:
    """A store that reads and writes objects of these buckets as files.

    Args:
        s3: the store of all other buckets.
    """

    def read(location: str) -> bytes:
        if (place := place_of(location)) is None:
            return s3.read(location)
        with _opened(*place) as file:
            body = file.read(LARGEST + 1)
        if len(body) > LARGEST:
            raise TooLarge(f"a file has more than {LARGEST:,} bytes")
        return body

    def read_range(location: str, first: int, end: int) -> bytes:
        if (place := place_of(location)) is None:
            return s3.read_range(location, first, end)
        check_range(first, end)
        with _opened(*place) as file:
            file.seek(first)
            body = file.read(end - first)
        if not body:
            raise NoSuchKey("a file is shorter than the catalog says")
        return body

    def write(location: str, body: bytes) -> None:
        if (place := place_of(location)) is None:
            s3.write(location, body)
        else:
            _make(*place, lambda: [body])

    def copy_with_end(source: str, target: str, start: int, end: bytes) -> None:
        copied, place = place_of(source), place_of(target)
        if copied is None or place is None:
            s3.copy_with_end(source, target, start, end)
        else:
            _make(*place, lambda: _pieces_and_end(*copied, start, end))

    def place_of(location: str) -> tuple[LocalBucket, str] | None:
        address = bucket_and_key(location)
        return (buckets[address[0]], address[1]) if address and address[0] in buckets else None

    return ObjectStore(read, read_range, write, copy_with_end)


@contextmanager
def _opened(bucket: LocalBucket, key: str) -> Iterator[BinaryIO]:
    file = bucket.open(key)
    if file is None:
        raise NoSuchKey("a file that the catalog names is gone")
    try:
        with file:
            yield file
    except OSError as error:
        message = f"a file of the lake cannot be read now: {error.strerror}"
        raise ServiceUnavailable(message) from None


def _pieces_and_end(bucket: LocalBucket, key: str, start: int, end: bytes) -> Iterator[bytes]:
    with _opened(bucket, key) as file:
        while start and (piece := file.read(min(PIECE, start))):
            start -= len(piece)
            yield piece
    if start:
        raise NoSuchKey("a file is shorter than the catalog says")
    yield end


def _make(bucket: LocalBucket, key: str, pieces: Callable[[], Iterable[bytes]]) -> None:
    try:
        is_made = bucket.make(key, pieces(), replace=False) is not None
    except (NotAKey, OSError) as error:
        reason = str(error) if isinstance(error, NotAKey) else error.strerror
        raise Misconfigured(f"a file of the lake cannot be written: {reason}") from None
    # A commit that is planned again copies the same file again.
    if not is_made and not _has(bucket, key, pieces()):
        raise Misconfigured("a file of the lake cannot be written: there is another of its name")


def _has(bucket: LocalBucket, key: str, pieces: Iterable[bytes]) -> bool:
    """Whether an object has exactly these bytes."""
    with _opened(bucket, key) as file:
        return all(file.read(len(piece)) == piece for piece in pieces) and not file.read(1)
