"""The lake's own files in S3, data files and delete files: read and written by location.

S3's errors become Polynya's, with their meaning for a file of the lake.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..runtime.errors import Misconfigured, NoSuchKey, PolynyaError, ServiceUnavailable
from .aws import Clients
from .s3_locations import bucket_and_key, check_below

LARGEST = 256 * 1024 * 1024
"""The most bytes of an object, or of a range, that are read: a function has 1,769 MB of memory."""

LONGEST_KEY = 1024  # bytes


class TooLarge(ValueError):
    """An object has more bytes than are read."""


def body_of(answer: Mapping[str, Any], most: int = LARGEST) -> bytes:
    """The body of an answer of GetObject. S3 ignores a range that it finds invalid, and sends all.

    Raises:
        TooLarge: it has more than `most` bytes; no more are read.
        botocore.exceptions.BotoCoreError: S3 stops sending.
    """
    stream, pieces, left = answer["Body"], [], most + 1
    # It reads on to the empty piece after the last one, at which botocore checks that none is
    # missing.
    while piece := stream.read(left):
        pieces.append(piece)
        left -= len(piece)
        if left <= 0:
            stream.close()
            raise TooLarge(f"an object has more than {most:,} bytes")
    return b"".join(pieces)


def get_object(s3: Any, bucket: str, key: str) -> bytes | None:
    """The bytes of an object; None if there is none.

    Args:
        s3: a boto3 client.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: S3 fails.
        TooLarge: it has more than LARGEST bytes.
    """
    try:
        return body_of(s3.get_object(Bucket=bucket, Key=key))
    except s3.exceptions.ClientError as error:
        # S3 answers 403 for a missing object if the caller may not list the bucket.
        if status_code(error) in {403, 404}:
            return None
        raise


def status_code(error: Any) -> int:
    """The HTTP status of a boto3 `ClientError`."""
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status


ErrorTable = Mapping[int, tuple[type[PolynyaError], str]]
"""The error for an HTTP status, and what the status means."""


@contextmanager
def translate_errors(what: str, by_status: ErrorTable) -> Iterator[None]:
    """Raise Polynya's errors instead of boto3's.

    Args:
        what: the purpose of the requests, for the message about a status that is not in the table.
        by_status: the error for an HTTP status, and what it means.

    Raises:
        ServiceUnavailable: S3 does not answer, or with another status.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raised, meaning = by_status.get(status_code(error), (ServiceUnavailable, what))
        code = error.response.get("Error", {}).get("Code", "an error")
        raise raised(f"S3 answers {code}: {meaning}") from None
    except BotoCoreError:
        raise ServiceUnavailable("S3 does not answer") from None


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Reads the lake's own files by their locations.

    Both functions raise NoSuchKey if a file is missing, ServiceUnavailable or Misconfigured if it
    cannot be read, and TooLarge if it has, or the range is, more than LARGEST bytes.
    """

    read: Callable[[str], bytes]
    """(location) -> all bytes."""
    read_range: Callable[[str, int, int], bytes]
    """(location, first, end) -> the bytes from `first` up to, not including, `end`."""


def object_reader(clients: Clients | None = None) -> ObjectReader:
    """The reader of files in S3.

    Args:
        clients: None: those of the environment.
    """
    objects = S3Objects(clients or Clients())
    return ObjectReader(objects.read, objects.read_range)


def reader_below(reader: ObjectReader, *directories: str) -> ObjectReader:
    """A reader of the files below some directories, which refuses others as `check_below` does."""
    if "" in directories:
        return reader

    def read(location: str) -> bytes:
        check_below(location, *directories)
        return reader.read(location)

    def read_range(location: str, first: int, end: int) -> bytes:
        check_below(location, *directories)
        return reader.read_range(location, first, end)

    return ObjectReader(read, read_range)


class S3Objects:
    """Reads and writes the lake's own files in S3."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients

    def read(self, location: str, most: int = LARGEST, **parameters: str) -> bytes:
        """The bytes of `s3://bucket/key`.

        Args:
            most: the largest number of bytes.
            parameters: more parameters of GetObject.

        Raises:
            NoSuchKey: there is no such object, or the location is not in S3 or cannot be there.
            Misconfigured: this process may not read it.
            ServiceUnavailable: S3 does not answer.
            TooLarge: it has more bytes.
        """
        source = bucket_and_key(location)
        if source is None:
            raise NoSuchKey("the data is not in S3")
        bucket, key = source
        if len(key.encode()) > LONGEST_KEY:
            raise NoSuchKey(f"a path has more than the {LONGEST_KEY:,} bytes that S3 allows")
        with translate_errors("a file of the lake cannot be read now", _read_errors(bucket)):
            s3 = self._clients("s3")
            return body_of(s3.get_object(Bucket=bucket, Key=key, **parameters), most)

    def read_range(self, location: str, first: int, end: int) -> bytes:
        """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

        Raises:
            NoSuchKey, Misconfigured, ServiceUnavailable, TooLarge: as `read`; NoSuchKey also if
                the object ends before `first`, or the range has no bytes.
        """
        check_range(first, end)
        try:
            return self.read(location, end - first, Range=f"bytes={first}-{end - 1}")
        except TooLarge:
            raise ServiceUnavailable("S3 sends more of a file than was asked for") from None

    def write(self, location: str, body: bytes) -> None:
        """Put a file of the lake into S3.

        Raises:
            Misconfigured: this process may not write it.
            ServiceUnavailable: S3 does not answer.
        """
        target = bucket_and_key(location)
        if target is None:
            raise Misconfigured("the lake's data is not in S3, where Polynya can write")
        bucket, key = target
        with translate_errors("a file of the lake cannot be written now", _write_errors(bucket)):
            self._clients("s3").put_object(Bucket=bucket, Key=key, Body=body)


def check_range(first: int, end: int) -> None:
    """Check a range of bytes from a file that somebody else wrote.

    Raises:
        NoSuchKey: it has no bytes; S3 would send the whole object.
        TooLarge: it has more than LARGEST bytes.
    """
    if not 0 <= first < end:
        raise NoSuchKey("a file has no such range of bytes")
    if end - first > LARGEST:
        raise TooLarge(f"a range of a file has more than {LARGEST:,} bytes")


def _read_errors(bucket: str) -> ErrorTable:
    """The error for each status of GetObject, for a file that the catalog names."""
    return {
        404: (NoSuchKey, "a file that the catalog names is gone"),
        416: (NoSuchKey, "a file is shorter than the catalog says"),
        # The messages do not have the key: directories of partitions contain values of rows.
        403: (
            Misconfigured,
            f"a file that the catalog names in the bucket {bucket!r}: either it is gone, or this "
            "function's role has no s3:GetObject on it; the parameters DataBucket and DataPrefix, "
            "or AddedFiles, must cover the table's files, also those that ducklake_add_data_files "
            "added",
        ),
    }


def _write_errors(bucket: str) -> ErrorTable:
    return {
        403: (
            Misconfigured,
            f"this function may not write a delete file into the bucket {bucket!r}: its role "
            "needs s3:PutObject on *-delete.parquet below the lake's data path; the parameters "
            "DataBucket and DataPrefix must cover the table's directory",
        )
    }
