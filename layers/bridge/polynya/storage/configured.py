"""The stores and the file cache that the settings ask for."""

from ..config import SECONDS_PER_DAY, Config
from .aws import client
from .bucket_store import BucketStore
from .cache_store import CacheStore
from .file_cache import FileCache, MemoryCache


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


def file_cache(config: Config) -> FileCache:
    """Where generated files are kept, by the delivery."""
    if config.delivery == "materialize":
        bucket = bucket_store(config.virtual_bucket)
        return FileCache(bucket, MemoryCache(), must_keep=True, listed=bucket)
    store = cache_store(config)
    return FileCache(store, MemoryCache(), leases=store)
