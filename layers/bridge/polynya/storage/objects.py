"""The lake's own files in S3: data files and delete files."""

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import Misconfigured, NoSuchKey, ServiceUnavailable
from ..aws import client
from ..s3 import LARGEST, TooLarge, body_of, bucket_and_key
from .translated_errors import ErrorTable, translate_errors


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


def object_reader() -> ObjectReader:
    """The reader of files in S3."""
    return ObjectReader(read_object, read_range)


def read_range(location: str, first: int, end: int) -> bytes:
    """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

    Raises:
        NoSuchKey, Misconfigured, ServiceUnavailable, TooLarge: as `read_object`; NoSuchKey also if
            the object ends before `first`, or the range has no bytes.
    """
    check_range(first, end)
    try:
        return read_object(location, end - first, Range=f"bytes={first}-{end - 1}")
    except TooLarge:
        raise ServiceUnavailable("S3 sends more of a file than was asked for") from None


def check_range(first: int, end: int) -> None:
    """Check a range of bytes, which a file may name that somebody else wrote.

    Raises:
        NoSuchKey: it has no bytes; S3 would send the whole object.
        TooLarge: it has more than LARGEST bytes.
    """
    if not 0 <= first < end:
        raise NoSuchKey("a file has no such range of bytes")
    if end - first > LARGEST:
        raise TooLarge(f"a range of a file has more than {LARGEST:,} bytes")


def read_object(location: str, most: int = LARGEST, **parameters: str) -> bytes:
    """The bytes of `s3://bucket/key`.

    Args:
        most: the largest number of bytes.
        parameters: more parameters of GetObject.

    Raises:
        NoSuchKey: there is no such object, or the location is not in S3.
        Misconfigured: this process may not read it.
        ServiceUnavailable: S3 does not answer.
        TooLarge: it has more bytes.
    """
    found = bucket_and_key(location)
    if found is None:
        raise NoSuchKey("the data is not in S3")
    bucket, key = found
    with translate_errors("a file of the lake cannot be read now", _read_errors(bucket)):
        return body_of(client("s3").get_object(Bucket=bucket, Key=key, **parameters), most)


def write_object(location: str, body: bytes) -> None:
    """Put a file of the lake into S3.

    Raises:
        Misconfigured: this process may not write it.
        ServiceUnavailable: S3 does not answer.
    """
    found = bucket_and_key(location)
    if found is None:
        raise Misconfigured("the lake's data is not in S3, where Polynya can write")
    bucket, key = found
    with translate_errors("a file of the lake cannot be written now", _write_errors(bucket)):
        client("s3").put_object(Bucket=bucket, Key=key, Body=body)


def _read_errors(bucket: str) -> ErrorTable:
    """What a status of GetObject means for a file that the catalog names."""
    return {
        404: (NoSuchKey, "a file that the catalog names is gone"),
        416: (NoSuchKey, "a file is shorter than the catalog says"),
        # Not the key: directories of partitions hold values of rows.
        403: (
            Misconfigured,
            f"a file that the catalog names in the bucket {bucket!r}: either it is gone, or this "
            "function's role has no s3:GetObject on it; the parameters DataBucket and DataPrefix "
            "must cover the table's files, also those that ducklake_add_data_files added",
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
