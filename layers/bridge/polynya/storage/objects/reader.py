"""The lake's own files in S3: data files and delete files."""

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import Misconfigured, NoSuchKey, ServiceUnavailable
from ..aws import client
from ..s3 import bucket_and_key, status_code


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """Reads the lake's own files by their locations.

    Both functions raise NoSuchKey if a file is missing, and ServiceUnavailable or Misconfigured if
    it cannot be read.
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
        NoSuchKey, Misconfigured, ServiceUnavailable: as `read_object`; NoSuchKey also if the object
            ends before `first`.
    """
    return read_object(location, Range=f"bytes={first}-{end - 1}")


def read_object(location: str, **parameters: str) -> bytes:
    """The bytes of `s3://bucket/key`.

    Args:
        parameters: more parameters of GetObject.

    Raises:
        NoSuchKey: there is no such object, or the location is not in S3.
        Misconfigured: this process may not read it.
        ServiceUnavailable: S3 does not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    found = bucket_and_key(location)
    if found is None:
        raise NoSuchKey("the data is not in S3")
    bucket, key = found
    try:
        body: bytes = client("s3").get_object(Bucket=bucket, Key=key, **parameters)["Body"].read()
    except ClientError as error:
        code = error.response.get("Error", {}).get("Code", "an error")
        raise _error(status_code(error), code, bucket) from None
    except BotoCoreError:
        raise ServiceUnavailable("S3 does not answer") from None
    return body


def write_object(location: str, body: bytes) -> None:
    """Put a file of the lake into S3.

    Raises:
        Misconfigured: this process may not write it.
        ServiceUnavailable: S3 does not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    found = bucket_and_key(location)
    if found is None:
        raise Misconfigured("the lake's data is not in S3, where Polynya can write")
    bucket, key = found
    try:
        client("s3").put_object(Bucket=bucket, Key=key, Body=body)
    except ClientError as error:
        if status_code(error) != 403:
            message = f"S3 answered {status_code(error)} when a file of the lake was written"
            raise ServiceUnavailable(message) from None
        raise Misconfigured(
            f"S3 does not let this function write a delete file into the bucket {bucket!r}: its "
            "role needs s3:PutObject on *-delete.parquet below the lake's data path; the "
            "parameters DataBucket and DataPrefix must cover the table's directory"
        ) from None
    except BotoCoreError:
        raise ServiceUnavailable("S3 does not answer") from None


def _error(status: int, code: str, bucket: str) -> Exception:
    """What a status of GetObject means for a file that the catalog names."""
    if status == 404:
        return NoSuchKey("a file that the catalog names is gone from S3")
    if status == 416:
        return NoSuchKey("a file in S3 is shorter than the catalog says")
    if status == 403:
        # Not the key: directories of partitions hold values of rows.
        return Misconfigured(
            f"S3 answers {code} for a file that the catalog names in the bucket {bucket!r}: "
            "either it is gone, or this function's role has no s3:GetObject on it; the "
            "parameters DataBucket and DataPrefix must cover the table's files, also those "
            "that ducklake_add_data_files added"
        )
    return ServiceUnavailable(f"S3 answered {status} for a file of the lake")
