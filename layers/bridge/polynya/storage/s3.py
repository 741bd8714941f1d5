"""S3 locations, and objects that may be missing."""

from collections.abc import Mapping
from typing import Any

SCHEMES = frozenset({"s3", "s3a", "s3n"})
"""The schemes under which Hadoop, Spark and other clients write locations in S3."""


def is_s3(location: str) -> bool:
    """Whether a location is in S3."""
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme in SCHEMES


def bucket_and_key(location: str) -> tuple[str, str] | None:
    """The bucket and the key of `s3://bucket/key`, not decoded; None if it is not in S3."""
    bucket, _, key = location.partition("://")[2].partition("/")
    return (bucket, key) if is_s3(location) else None


LARGEST = 256 * 1024 * 1024
"""Of an object, or a range, that is read into memory: of a function that has 1,769 MB."""


class TooLarge(ValueError):
    """An object has more bytes than are read."""


def body_of(answer: Mapping[str, Any], most: int = LARGEST) -> bytes:
    """The body of an answer of GetObject, which S3 sends whole if it takes a range for invalid.

    Raises:
        TooLarge: it has more than `most` bytes; the others are not read.
        botocore.exceptions.BotoCoreError: S3 stops sending.
    """
    stream, pieces, left = answer["Body"], [], most + 1
    # Up to the empty piece after the last one, with which botocore checks that nothing is missing.
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
