"""Where the lake's own files are read, written and copied: S3, or a host's store in its place."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from .aws import Clients
from .copies import copy_with_end
from .direct_s3 import RangeReader
from .objects import ObjectReader, S3Objects, reader_below
from .s3_locations import check_below


@dataclass(frozen=True, slots=True)
class ObjectStore(ObjectReader):
    """Reads and writes the lake's own files by their locations.

    What writes raises Misconfigured if this process may not write there, and ServiceUnavailable if
    it cannot now.
    """

    write: Callable[[str, bytes], None]
    """(location, bytes): makes a new file."""
    copy_with_end: Callable[[str, str, int, bytes], None]
    """(source, target, start, end): makes a new file of the bytes of another one before `start`,
    and of `end`. Raises NoSuchKey if the other one is missing."""


def s3_store(clients: Clients) -> ObjectStore:
    """The store of files in S3."""
    objects, ranges = S3Objects(clients), RangeReader(clients)
    # A commit reads the footer of each file that it adds: boto3 takes twice the CPU time for a
    # range (decision 20).
    return ObjectStore(
        objects.read, ranges.read_range, objects.write, partial(copy_with_end, clients)
    )


def store_below(store: ObjectStore, data_path: str, staging: str) -> ObjectStore:
    """A store of the files of one lake, which refuses others as `check_below` does.

    Args:
        data_path: below which files are read and written; empty: all of them.
        staging: below which files are read, too.
    """
    reader = reader_below(store, data_path, staging)

    def write(location: str, body: bytes) -> None:
        check_below(location, data_path)
        store.write(location, body)

    def copy(source: str, target: str, start: int, end: bytes) -> None:
        check_below(source, data_path, staging)
        check_below(target, data_path)
        store.copy_with_end(source, target, start, end)

    return ObjectStore(reader.read, reader.read_range, write, copy)
