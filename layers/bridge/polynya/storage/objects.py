"""Objects in S3 that may be missing."""

from typing import Any


def get_object(s3: Any, bucket: str, key: str) -> bytes | None:
    try:
        body: bytes = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
    except s3.exceptions.ClientError as error:
        # Who may not list the bucket is told 403 where there is no such object.
        if status_code(error) in {403, 404}:
            return None
        raise
    return body


def status_code(error: Any) -> int:
    status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return status
