"""The processes of the server that work for its requests: what is large, and what others wrote."""

import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from polynya.catalog.lakes import Lakes, Shared
from polynya.runtime.errors import ServiceUnavailable
from polynya.runtime.isolation import Ended
from polynya.runtime.limited_process import ENVIRONMENT
from polynya.runtime.settings import Config, StorageSettings
from polynya.storage.aws import AwsSettings, Clients
from polynya.storage.file_cache import FileCache, MemoryCache, file_cache
from polynya.storage.folder_store import FolderStore
from polynya.storage.object_store import s3_store
from polynya.virtual_files.virtual_files import VirtualFiles

from .processes.pool import ProcessPool
from .s3.local_bucket import LocalBucket
from .s3.local_store import local_store

MOST_BUILDERS = 2
MOST_READERS = max(2, os.cpu_count() or 1)
"""How many processes there are at the same time, for each process that answers."""

NICENESS = 5
"""Requests that wait for no build go first."""


def new_cache(
    folder: Path, settings: StorageSettings, clients: Clients, memory: MemoryCache
) -> FileCache:
    """The cache of generated files: in a folder, unless clients read them in the bucket."""
    if settings.is_materialized:
        return file_cache(settings, clients, memory)
    store = FolderStore(folder / "files")
    return FileCache(store, memory, leases=store)


@dataclass(frozen=True, slots=True)
class NewBuilder:
    """Makes, in a process, the function that builds a file of a lake in the store of all."""

    settings: Mapping[str, str] = field(repr=False)
    """As in docs/settings.md; they may hold passwords."""
    cache_folder: Path
    folders: Mapping[str, LocalBucket]
    """The buckets that are folders of this machine, by their names."""
    aws: AwsSettings

    def __call__(self) -> Callable[[str, str], None]:
        """The function of a lake, as `Config.lake`, and a key."""
        clients = Clients(self.aws)
        lakes: Lakes[VirtualFiles] = Lakes(
            Config.from_env(self.settings),
            lambda config, lakes: lakes.virtual_files(config),
            environ=self.settings,
            shared=Shared(
                new_cache=partial(new_cache, self.cache_folder),
                objects=local_store(self.folders, s3_store(clients)),
                aws=clients,
            ),
        )

        def build(lake: str, key: str) -> None:
            lakes.named(lake or None).build(key)

        return build


@dataclass(frozen=True, slots=True)
class Builders:
    """Builds large files in other processes."""

    pool: ProcessPool

    def build(self, lake: str, key: str) -> None:
        """Build a file, and put what it refers to into the store.

        Raises:
            ServiceUnavailable: the process has ended; or it takes longer than one request may.
            PolynyaError: as `VirtualFiles.read`.
        """
        try:
            self.pool.call(lake, key)
        except Ended:
            raise ServiceUnavailable(
                "the process that generated this file has ended, or needed too much memory; what "
                "it has finished is kept: ask again to go on"
            ) from None


def new_builders(
    settings: Mapping[str, str],
    cache_folder: Path,
    folders: Mapping[str, LocalBucket],
    aws: AwsSettings,
) -> Builders:
    """Those of an application; none is started yet. Args: as `NewBuilder`."""
    new_builder = NewBuilder(settings, cache_folder, folders, aws)
    return Builders(ProcessPool(new_builder, MOST_BUILDERS, niceness=NICENESS))


def new_readers() -> ProcessPool:
    """Processes that read what others wrote; none is started yet."""
    return ProcessPool(_new_reader, MOST_READERS)


def _new_reader() -> Callable[..., Any]:
    for name in {*os.environ} - {*ENVIRONMENT}:
        del os.environ[name]  # a parser needs no credentials
    return operator.call
