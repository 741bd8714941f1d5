"""What a table's files are built with, besides the rows of the catalog."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ..config import Config, FileSettings
from ..storage.delivery_bucket import DeliveryBucket
from ..storage.file_cache import FileCache
from ..storage.objects.reader import ObjectReader
from ..storage.stores import Cache
from .metadata_cache import MetadataCache
from .references import ReferenceCache


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What the files of all tables of a lake share. It is made once in a process."""

    settings: FileSettings
    location: Callable[[str], str]
    """Where clients find a virtual file, by its key."""
    cache: Cache
    object_reader: ObjectReader
    bucket: DeliveryBucket | None = None
    """The bucket that clients read, with the delivery `materialize`."""
    staging_location: str | None = None
    """Where clients put the files of a commit (the setting); None: they may not write."""
    renew_seconds: float = math.inf
    """Older objects of the bucket are renewed, before a lifecycle rule removes them."""
    documents: MetadataCache = field(default_factory=MetadataCache)
    references: ReferenceCache = field(default_factory=ReferenceCache)

    @property
    def virtual_location(self) -> str:
        """Where all virtual files are."""
        return self.location(self.settings.virtual_prefix)


def build_context(config: Config, cache: FileCache, object_reader: ObjectReader) -> BuildContext:
    """The context of a function."""
    return BuildContext(
        settings=config.files,
        location=config.storage.location,
        cache=cache,
        object_reader=object_reader,
        bucket=cache.bucket,
        renew_seconds=config.storage.ttl_seconds,
        staging_location=config.staging_location if config.writes else None,
    )
