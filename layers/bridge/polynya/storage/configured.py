"""The stores and the file cache that the settings describe."""

from dataclasses import replace

from ..config import StorageSettings
from .aws import client, ssm_parameter
from .bucket_store import BucketStore
from .cache_store import CacheStore
from .delivery_bucket import DeliveryBucket
from .file_cache import FileCache
from .memory_cache import MemoryCache


def resolve_bucket(settings: StorageSettings) -> StorageSettings:
    """The settings with the name of the virtual bucket, where they name an SSM parameter.

    The Object Lambda function serves the access point and the access point names the function, so
    the template cannot pass the alias to the function: VIRTUAL_BUCKET is `ssm:NAME`.

    Raises:
        Misconfigured: the parameter does not exist, or may not be read.
        ServiceUnavailable: SSM does not answer.
    """
    source, _, parameter = settings.virtual_bucket.partition(":")
    if source != "ssm":
        return settings
    name = ssm_parameter("the name of the bucket", parameter)
    return replace(settings, virtual_bucket=name)


def bucket_store(bucket: str) -> BucketStore:
    """The store of the delivery `materialize`."""
    return BucketStore(bucket, lambda: client("s3"))


def cache_store(settings: StorageSettings) -> CacheStore | None:
    """The store of the delivery `object-lambda`; None without CACHE_TABLE."""
    if not settings.cache_table:
        return None
    return CacheStore(
        table=settings.cache_table,
        bucket=settings.cache_bucket,
        ttl_seconds=settings.ttl_seconds,
        dynamodb=lambda: client("dynamodb"),
        s3=lambda: client("s3"),
    )


def file_cache(settings: StorageSettings) -> FileCache:
    """The cache of generated files, with the store of the delivery."""
    if settings.is_materialized:
        bucket = bucket_store(settings.virtual_bucket)
        return FileCache(bucket, MemoryCache(), bucket=DeliveryBucket(bucket))
    store = cache_store(settings)
    return FileCache(store, MemoryCache(), leases=store)
