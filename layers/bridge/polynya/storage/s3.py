"""S3 locations, and objects that may be missing."""

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


def get_object(s3: Any, bucket: str, key: str) -> bytes | None:
    """The bytes of an object; None if there is none.

    Args:
        s3: a boto3 client.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: S3 fails.
    """
    try:
        body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except s3.exceptions.ClientError as error:
        # S3 answers 403 for a missing object if the caller may not list the bucket.
        if status_code(error) in {403, 404}:
            return None
        raise
    return body


def status_code(error: Any) -> int:
    """The HTTP status of a boto3 `ClientError`."""
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status
