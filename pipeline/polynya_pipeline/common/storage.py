"""Files in S3 or in a local folder, by location; a file appears complete or not at all."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from polynya.runtime.prefetch import AT_A_TIME
from polynya.storage.aws import Clients
from polynya.storage.objects import body_of
from polynya.storage.s3_locations import bucket_and_key, is_s3

from .errors import BadInput, Unavailable

NOT_FOUND = {"NoSuchKey", "404", "AccessDenied", "403"}
"""S3's error codes for a missing object; 403 if the role may not list the bucket."""
Answer = TypeVar("Answer")

EXISTS = {"PreconditionFailed", "ConditionalRequestConflict", "409", "412"}
"""S3's error codes if an object with this key exists already."""


@cache
def clients() -> Clients:
    """Polynya's AWS clients, one set per process, configured by the environment."""
    return Clients()


@cache
def s3_client() -> Any:
    """One client per process; the endpoint comes from AWS_ENDPOINT_URL_S3."""
    import boto3
    from botocore.config import Config

    retries = {"total_max_attempts": 6, "mode": "standard"}
    # boto3 does not read AWS_REGION.
    os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
    config = Config(
        connect_timeout=5, read_timeout=60, retries=retries, max_pool_connections=AT_A_TIME
    )
    return boto3.client("s3", config=config)


def check_scheme(location: str) -> None:
    """Check that the job can write to a location.

    Raises:
        BadInput: it is neither in S3 nor a local path.
    """
    if "://" in location and not is_s3(location):
        raise BadInput(f"the lake's data is at {location}: only S3 and folders can be written to")


@contextmanager
def raise_unavailable(location: str, verb: str) -> Iterator[None]:
    """Raise `Unavailable` for errors of the file system and of S3.

    Args:
        verb: completes the message "… cannot be", such as `read`.
    """
    from boto3.exceptions import S3UploadFailedError
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (OSError, BotoCoreError, ClientError, S3UploadFailedError) as error:
        raise Unavailable(f"{location} cannot be {verb}: {_reason(error)}") from None


def _reason(error: Any) -> str:
    if hasattr(error, "response"):  # botocore's ClientError
        return _code(error)
    return getattr(error, "strerror", None) or str(error)


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", "an error"))


def move(source: Path, location: str) -> None:
    """Move a local file to `location`.

    Raises:
        Unavailable: the file cannot be written.
    """
    with raise_unavailable(location, "written"):
        if s3_object := bucket_and_key(location):
            s3_client().upload_file(str(source), *s3_object)
        else:
            target = Path(location)
            target.parent.mkdir(parents=True, exist_ok=True)
            # Renamed when it is complete, so that nobody sees half of it.
            part = target.with_name(target.name + ".part")
            # Not a rename alone: the source may be in another file system.
            shutil.copyfile(source, part)
            part.rename(target)
        source.unlink()


def remove(locations: Iterable[str]) -> int:
    """Delete as many files as possible; returns the number of deleted files."""
    count = 0
    for location in locations:
        try:
            with raise_unavailable(location, "deleted"):
                if s3_object := bucket_and_key(location):
                    bucket, key = s3_object
                    s3_client().delete_object(Bucket=bucket, Key=key)
                else:
                    Path(location).unlink()
            count += 1
        except Unavailable:
            continue  # no snapshot names it: ducklake_delete_orphaned_files removes it, too
    return count


def list_files(directory: str) -> Iterator[tuple[str, int]]:
    """The location and size in bytes of every file below `directory`, which ends in a slash.

    Raises:
        Unavailable: the directory cannot be listed.
    """
    with raise_unavailable(directory, "listed"):
        if not (s3_folder := bucket_and_key(directory)):
            root = Path(directory)
            for path in sorted(root.rglob("*")) if root.exists() else ():
                if path.is_file():
                    # A file may be deleted meanwhile: stat raises.
                    yield directory + path.relative_to(root).as_posix(), path.stat().st_size
            return
        scheme = directory.partition("://")[0]
        bucket, prefix = s3_folder
        pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        for page in pages:
            for item in page.get("Contents", ()):
                yield f"{scheme}://{bucket}/{item['Key']}", item["Size"]


def file_size(location: str) -> int | None:
    """The size of one file in bytes; None: there is no such file.

    Raises:
        Unavailable: the file cannot be examined.
    """
    if not (s3_object := bucket_and_key(location)):
        path = Path(location)
        return path.stat().st_size if path.is_file() else None
    bucket, key = s3_object
    with raise_unavailable(location, "examined"):
        head = _existing(lambda: s3_client().head_object(Bucket=bucket, Key=key))
    return None if head is None else int(head["ContentLength"])


def read_range(location: str, first: int, length: int) -> bytes | None:
    """`length` bytes of a file from offset `first`, fewer if the file ends before; None: there is
    no such file.

    Raises:
        Unavailable: the file cannot be read.
    """
    with raise_unavailable(location, "read"):
        if not (s3_object := bucket_and_key(location)):
            try:
                with open(location, "rb") as file:
                    file.seek(first)
                    return file.read(length)
            except FileNotFoundError:
                return None
        bucket, key = s3_object
        part = {"Bucket": bucket, "Key": key, "Range": f"bytes={first}-{first + length - 1}"}
        return _existing(lambda: body_of(s3_client().get_object(**part), length))


def read_file(location: str) -> bytes | None:
    """The content of a file; None: there is no such file.

    Raises:
        Unavailable: the file cannot be read.
    """
    with raise_unavailable(location, "read"):
        if not (s3_object := bucket_and_key(location)):
            path = Path(location)
            return path.read_bytes() if path.is_file() else None
        bucket, key = s3_object
        return _existing(lambda: body_of(s3_client().get_object(Bucket=bucket, Key=key)))


def _existing(request: Callable[[], Answer]) -> Answer | None:
    """The answer of S3; None: there is no such object."""
    from botocore.exceptions import ClientError

    try:
        return request()
    except ClientError as error:
        if _code(error) in NOT_FOUND:
            return None
        raise


def create(location: str, body: bytes) -> bool:
    """Write a file unless one exists at this location; returns whether it was written.

    Raises:
        Unavailable: the file cannot be written.
    """
    from botocore.exceptions import ClientError

    if not (s3_object := bucket_and_key(location)):
        # Unlike a rename, a link is refused if the file exists.
        return _write(location, body, os.link)
    bucket, key = s3_object
    with raise_unavailable(location, "written"):
        try:
            # If two runs write the same key, S3 answers one of them with 412.
            s3_client().put_object(Bucket=bucket, Key=key, Body=body, IfNoneMatch="*")
        except ClientError as error:
            if _code(error) in EXISTS:
                return False
            raise
    return True


def replace(location: str, body: bytes) -> None:
    """Write a file, whether or not one exists at this location.

    Raises:
        Unavailable: the file cannot be written.
    """
    if not (s3_object := bucket_and_key(location)):
        _write(location, body, os.replace)
        return
    bucket, key = s3_object
    with raise_unavailable(location, "written"):
        s3_client().put_object(Bucket=bucket, Key=key, Body=body)


def _write(location: str, body: bytes, rename: Callable[[Path, Path], None]) -> bool:
    target = Path(location)
    part = target.with_name(f".{target.name}.{uuid4().hex}.part")
    with raise_unavailable(location, "written"):
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(body)
        try:
            rename(part, target)
        except FileExistsError:
            return False
        finally:
            part.unlink(missing_ok=True)
    return True
