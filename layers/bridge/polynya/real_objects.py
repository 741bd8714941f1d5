"""Real objects in S3, and the AWS clients: made when first needed, for boto3 is slow to import."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from .config import Config
from .errors import Misconfigured, NoSuchKey, ServiceUnavailable
from .kept import AT_A_TIME, Kept, Recent
from .store import BucketStore, CacheStore
from .table_deletes import RealFiles

SECONDS_PER_DAY = 86_400


@cache
def client(service: str) -> Any:
    """A boto3 client, one per service and process. Endpoints come from AWS_ENDPOINT_URL_<…>."""
    import boto3
    from botocore.config import Config as ClientConfig

    # A store that hangs must cost less than who waits for us will wait.
    retries = {"total_max_attempts": 2, "mode": "standard"}
    config = ClientConfig(
        connect_timeout=2, read_timeout=10, retries=retries, max_pool_connections=AT_A_TIME
    )
    return boto3.client(service, config=config)


NOT_THERE = re.compile("AccessDenied|NotFound|NoSuch|UnrecognizedClient")


def answer_of(what: str, question: Callable[[], Any]) -> Any:
    """The answer of AWS to a question that is asked to get at `what`.

    Raises:
        Misconfigured: it is not there, or may not be had.
        ServiceUnavailable: not now.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return question()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if NOT_THERE.search(code):
            raise Misconfigured(f"{what} cannot be had: {code}") from None
        raise ServiceUnavailable(f"{what} cannot be had now: {code}") from None
    except BotoCoreError as error:
        raise ServiceUnavailable(f"{what} cannot be had now: {type(error).__name__}") from None


@cache
def object_lambda_client(endpoint: str) -> Any:
    """The client for WriteGetObjectResponse; `endpoint` only for a stand-in on this machine."""
    import boto3
    from botocore.config import Config as ClientConfig

    # A streamed body cannot be signed: its hash would have to be known first.
    config = ClientConfig(
        signature_version="s3v4",
        s3={"payload_signing_enabled": False},
        inject_host_prefix=not endpoint,
    )
    return boto3.client("s3", endpoint_url=endpoint or None, config=config)


def bucket_store(bucket: str) -> BucketStore:
    return BucketStore(bucket, lambda: client("s3"))


def cache_store(config: Config) -> CacheStore | None:
    """The store of the settings; None without CACHE_TABLE."""
    if not config.cache_table:
        return None
    return CacheStore(
        table=config.cache_table,
        bucket=config.cache_bucket,
        ttl_seconds=config.cache_ttl_days * SECONDS_PER_DAY,
        dynamodb=lambda: client("dynamodb"),
        s3=lambda: client("s3"),
    )


def kept_files(config: Config) -> Kept:
    """Where generated files are kept, by the delivery."""
    if config.delivery == "materialize":
        return Kept(bucket_store(config.virtual_bucket), Recent(), must_keep=True)
    store = cache_store(config)
    return Kept(store, Recent(), leases=store)


def real_files() -> RealFiles:
    return RealFiles(read_object, read_range)


def read_range(location: str, first: int, end: int) -> bytes:
    """The bytes of `s3://bucket/key` from `first` up to, not including, `end`.

    Raises: as `read_object`.
    """
    return read_object(location, Range=f"bytes={first}-{end - 1}")


def read_object(location: str, **parameters: str) -> bytes:
    """The bytes of `s3://bucket/key`.

    Raises:
        NoSuchKey: there is no such object, or not such a range of it, or it is not in S3.
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
            raise NoSuchKey("a file is smaller than the catalog says") from None
        raise ServiceUnavailable(f"S3 answered {status} for a stored delete file") from None
    except BotoCoreError:
        raise ServiceUnavailable("S3 does not answer") from None
    return body
