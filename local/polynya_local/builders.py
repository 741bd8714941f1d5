"""The processes in which the server builds large files, and reads files that others wrote."""

import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polynya.catalog.lakes import Lakes, Shared
from polynya.runtime.errors import ServiceUnavailable
from polynya.runtime.isolation import Ended
from polynya.runtime.limited_process import ENVIRONMENT
from polynya.runtime.settings import Config
from polynya.storage.aws import AwsSettings, Clients
from polynya.storage.file_cache import FileCache, MemoryCache, file_cache
from polynya.storage.object_store import s3_store
from polynya.virtual_files.virtual_files import VirtualFiles

from .cache_folder import CacheFolder, FolderStore, folder_name
from .processes.cores import cores
from .processes.pool import ProcessPool
from .s3.local_bucket import LocalBucket
from .s3.local_store import local_store

MOST_BUILDERS = 2
MOST_READERS = max(2, cores())
"""How many processes there are at the same time, for each process that answers."""

NICENESS = 5
"""Requests that need no build have priority."""


class LakeFolders:
    """The folders of this machine with the generated files of lakes."""

    def __init__(self, folder: Path, names: Mapping[str, str]) -> None:
        """Begin to delete what exceeds the limit. Args: as `NewBuilder`."""
        self._folder, self._names = CacheFolder(folder), names

    def store(self, config: Config) -> FolderStore:
        """The folder of a lake."""
        return self._folder.store(self._names[config.warehouse])

    @property
    def leases(self) -> FolderStore:
        """The leases by which processes that serve these lakes take turns."""
        return self._folder.store(folder_name(*self._names.values()))

    def cache(self, config: Config, clients: Clients, memory: MemoryCache) -> FileCache:
        """The cache of a lake's files: in its folder, unless clients read them in the bucket."""
        if config.storage.is_materialized:
            return file_cache(config.storage, clients, memory)
        store = self.store(config)
        return FileCache(store, memory, leases=store)


@dataclass(frozen=True, slots=True)
class NewBuilder:
    """Makes the function that builds files of lakes, in the process that runs it."""

    settings: Mapping[str, str] = field(repr=False)
    """As in docs/settings.md; they may hold passwords."""
    cache_folder: Path
    """The folder of the folders of lakes."""
    cache_names: Mapping[str, str]
    """The name of the folder of each lake, by its name."""
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
                new_cache=LakeFolders(self.cache_folder, self.cache_names).cache,
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
                "it has finished is kept: repeat the request to continue"
            ) from None


def new_builders(
    settings: Mapping[str, str],
    cache_folder: Path,
    cache_names: Mapping[str, str],
    folders: Mapping[str, LocalBucket],
    aws: AwsSettings,
) -> Builders:
    """The builders of an application; none is started yet. Args: as `NewBuilder`."""
    new_builder = NewBuilder(settings, cache_folder, cache_names, folders, aws)
    return Builders(ProcessPool(new_builder, MOST_BUILDERS, niceness=NICENESS))


def new_readers() -> ProcessPool:
    """Processes that read what others wrote; none is started yet."""
    return ProcessPool(_new_reader, MOST_READERS)


def _new_reader() -> Callable[..., Any]:
    for name in {*os.environ} - {*ENVIRONMENT}:
        del os.environ[name]  # a parser needs no credentials
    return operator.call
