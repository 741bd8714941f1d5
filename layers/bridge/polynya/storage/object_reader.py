"""The lake's own files in S3: data files and delete files."""

from collections.abc import Callable
from dataclasses import dataclass

from ..errors import Misconfigured, NoSuchKey, ServiceUnavailable
from .aws import client


@dataclass(frozen=True, slots=True)
class ObjectReader:
    """How the lake's own files are read."""

    read: Callable[[str], bytes]
    """All of a file, by its location."""
    read_range: Callable[[str, int, int], bytes]
    """From one position up to, not including, another."""


def object_reader() -> ObjectReader:
    return ObjectReader(read_object, read_range)


def read_range(location: str, first: int, end: int) -> bytes:
    """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

    Raises: as `read_object`.
    """
    return read_object(location, Range=f"bytes={first}-{end - 1}")


def read_object(location: str, **parameters: str) -> bytes:
    """The bytes of `s3://bucket/key`.

    Raises:
        NoSuchKey: there is no such object, or the location is not in S3.
        Misconfigured: this process may not read it.
        ServiceUnavailable: S3 does not answer.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    scheme, _, rest = location.partition("://")
    bucket, _, key = rest.partition("/")
    if scheme not in {"s3", "s3a", "s3n"}:
        raise NoSuchKey("the data is not in S3")
    try:
        body: bytes = client("s3").get_object(Bucket=bucket, Key=key, **parameters)["Body"].read()
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        if status == 404:
            raise NoSuchKey("a file that the catalog names is gone from S3") from None
        if status == 416:
            raise NoSuchKey("a file in S3 is shorter than the catalog says") from None
        if status == 403:
            # Not the key: directories of partitions hold values of rows.
            code = error.response["Error"]["Code"]
            raise Misconfigured(
                f"S3 answers {code} for a file that the catalog names in the bucket {bucket!r}: "
                "either it is gone, or this function's role has no s3:GetObject on it; the "
                "parameters DataBucket and DataPrefix must cover the table's files, those too "
                "that ducklake_add_data_files added"
            ) from None
        raise ServiceUnavailable(f"S3 answered {status} for a file of the lake") from None
    except BotoCoreError:
        raise ServiceUnavailable("S3 does not answer") from None
    return body
