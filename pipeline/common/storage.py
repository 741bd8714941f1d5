"""Files in S3 or in a folder: a file comes whole or not at all."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from polynya.storage.parallel import AT_A_TIME
from polynya.storage.s3 import SCHEMES

from .errors import BadInput, Unavailable

S3 = tuple(f"{scheme}://" for scheme in SCHEMES)


@cache
def client() -> Any:
    """One client per process; the endpoint comes from AWS_ENDPOINT_URL_S3."""
    import boto3
    from botocore.config import Config

    retries = {"total_max_attempts": 6, "mode": "standard"}
    os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
    config = Config(
        connect_timeout=5, read_timeout=60, retries=retries, max_pool_connections=AT_A_TIME
    )
    return boto3.client("s3", config=config)


def bucket_and_key(location: str) -> tuple[str, str]:
    bucket, _, key = location.partition("://")[2].partition("/")
    return bucket, key


def is_s3(location: str) -> bool:
    return location.startswith(S3)


def check(location: str) -> None:
    """Raises:
    BadInput: this is no place that can be written to.
    """
    if "://" in location and not is_s3(location):
        raise BadInput(f"the lake's data is at {location}: only S3 and folders can be written to")


def put(source: Path, location: str) -> None:
    """Move a file of this machine to `location`.

    Raises:
        Unavailable: it cannot be written.
    """
    from boto3.exceptions import S3UploadFailedError
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        if is_s3(location):
            client().upload_file(str(source), *bucket_and_key(location))
            source.unlink()
        else:
            target = Path(location)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(target.name + ".part")
            shutil.copyfile(source, part)
            part.rename(target)
            source.unlink()
    except (OSError, BotoCoreError, ClientError, S3UploadFailedError) as error:
        raise Unavailable(f"{location} cannot be written: {error}") from None


def remove(locations: Iterable[str]) -> int:
    """Delete files, as many as can be; gives how many."""
    from botocore.exceptions import BotoCoreError, ClientError

    count = 0
    for location in locations:
        try:
            if is_s3(location):
                bucket, key = bucket_and_key(location)
                client().delete_object(Bucket=bucket, Key=key)
            else:
                Path(location).unlink()
            count += 1
        except (OSError, BotoCoreError, ClientError):
            continue
    return count


def sizes(directory: str) -> Iterator[tuple[str, int]]:
    """Every file below `directory` (which ends in a slash), and its size.

    Raises:
        Unavailable: it cannot be listed.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    if not is_s3(directory):
        root = Path(directory)
        try:
            for path in sorted(root.rglob("*")) if root.exists() else ():
                if path.is_file():
                    yield directory + path.relative_to(root).as_posix(), path.stat().st_size
        except OSError as error:  # also of a file that is gone since
            raise Unavailable(f"{directory} cannot be listed: {error}") from None
        return
    scheme = directory.partition("://")[0]
    bucket, prefix = bucket_and_key(directory)
    try:
        pages = client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        for page in pages:
            for item in page.get("Contents", ()):
                yield f"{scheme}://{bucket}/{item['Key']}", item["Size"]
    except (BotoCoreError, ClientError) as error:
        raise Unavailable(f"{directory} cannot be listed: {error}") from None


def size(location: str) -> int | None:
    """The size of one file; None: it is not there.

    Raises:
        Unavailable: nobody knows.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    if not is_s3(location):
        path = Path(location)
        return path.stat().st_size if path.is_file() else None
    bucket, key = bucket_and_key(location)
    try:
        length: int = client().head_object(Bucket=bucket, Key=key)["ContentLength"]
        return length
    except ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] == 404:
            return None
        raise Unavailable(f"{location} cannot be looked at: {error}") from None
    except BotoCoreError as error:
        raise Unavailable(f"{location} cannot be looked at: {error}") from None


def read(location: str, first: int, length: int) -> bytes:
    """A range of a file; shorter than `length` where the file is."""
    if not is_s3(location):
        with open(location, "rb") as file:
            file.seek(first)
            return file.read(length)
    bucket, key = bucket_and_key(location)
    wanted = f"bytes={first}-{first + length - 1}"
    body: bytes = client().get_object(Bucket=bucket, Key=key, Range=wanted)["Body"].read()
    return body


def whole(location: str) -> bytes | None:
    """All of a file; None: it is not there.

    Raises:
        Unavailable: it cannot be read.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        if not is_s3(location):
            path = Path(location)
            return path.read_bytes() if path.is_file() else None
        bucket, key = bucket_and_key(location)
        body: bytes = client().get_object(Bucket=bucket, Key=key)["Body"].read()
        return body
    except ClientError as error:
        # Who may not list a bucket is told 403 where there is no such object.
        if _code(error) in ABSENT:
            return None
        raise Unavailable(f"{location} cannot be read: {_code(error)}") from None
    except (OSError, BotoCoreError) as error:
        raise Unavailable(f"{location} cannot be read: {error}") from None


def create(location: str, body: bytes) -> bool:
    """Write a file unless there is one of this name; whether it was written.

    Raises:
        Unavailable: it cannot be written.
    """
    if not is_s3(location):
        return _write(location, body, os.link)
    return _put(location, body, IfNoneMatch="*")


def replace(location: str, body: bytes) -> None:
    """Write a file, whether or not there is one.

    Raises:
        Unavailable: it cannot be written.
    """
    if is_s3(location):
        _put(location, body)
    else:
        _write(location, body, os.replace)


def _write(location: str, body: bytes, rename: Callable[[Path, Path], None]) -> bool:
    target = Path(location)
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(body)
        try:
            rename(part, target)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise Unavailable(f"{location} cannot be written: {error.strerror}") from None
    return True


def _put(location: str, body: bytes, **condition: str) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, key = bucket_and_key(location)
    try:
        client().put_object(Bucket=bucket, Key=key, Body=body, **condition)
    except ClientError as error:
        if condition and _code(error) in TAKEN:
            return False
        raise Unavailable(f"{location} cannot be written: {_code(error)}") from None
    except BotoCoreError as error:
        raise Unavailable(f"{location} cannot be written: {error}") from None
    return True


ABSENT = {"NoSuchKey", "404", "AccessDenied", "403"}
TAKEN = {"PreconditionFailed", "ConditionalRequestConflict", "409", "412"}


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", "an error"))
