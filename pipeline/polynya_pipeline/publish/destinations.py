"""Where published files go: the functions' store, or the directory of an exported table."""

import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from polynya.ducklake.rows.objects import Schema, Table
from polynya.runtime.errors import NoSuchKey
from polynya.runtime.settings import FileSettings, StorageSettings
from polynya.storage import file_cache
from polynya.storage.bucket_store import DeliveryBucket
from polynya.storage.file_cache import Store
from polynya.storage.objects import ObjectReader, object_reader
from polynya.storage.s3_locations import bucket_and_key, is_s3
from polynya.virtual_files.contexts import BuildContext
from polynya.virtual_files.names import GENERATOR

from ..common import storage
from ..common.errors import BadInput
from .published_files import PublishedFiles

EXPORT_PREFIX = "export"
"""The key prefix of an exported table's files; the folder takes its place in their locations."""

METADATA, JOB_FILES = "metadata", "metadata/polynya"
"""The folder of an exported table's files, and of those that only the next run reads."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination of one table. Spark sends it to the executors, which open the store."""

    settings: FileSettings
    storage: StorageSettings | None
    """The functions' store; None for an export."""
    directory: str = ""
    """The folder of an exported table; empty without `export`."""

    @property
    def is_export(self) -> bool:
        """Whether the table becomes a standalone Iceberg table in a folder."""
        return self.storage is None

    def location(self, key: str) -> str:
        """The location at which clients read a file, by its key; also that of a table."""
        if self.storage is not None:
            return self.storage.location(key)
        folder, name = posixpath.split(key)
        # The key of the table, not of one of its files.
        if posixpath.basename(folder) != GENERATOR:
            return self.directory
        is_job_file = name.endswith((".summary", ".page", ".json")) and ".metadata." not in name
        return f"{self.directory}/{JOB_FILES if is_job_file else METADATA}/{name}"

    def files(self, *, writes: bool = True) -> PublishedFiles:
        """The cache of a run; with `writes=False` nothing is added to the store.

        Raises:
            BadInput: the settings name no store.
        """
        is_listed = self.storage is None or self.storage.is_materialized
        return PublishedFiles(
            self._store(), self._list_stored if is_listed else None, writes=writes
        )

    def _list_stored(self, keys: Sequence[str]) -> set[str]:
        """Which of these keys, all of one table, are stored; lists the table's files."""
        folder = f"{self.directory}/{METADATA}"
        if not self.is_export:
            folder = posixpath.dirname(self.location(keys[0]))
        locations = {self.location(key): key for key in keys}
        stored = (location for location, _ in storage.list_files(f"{folder}/"))
        return {locations[location] for location in stored if location in locations}

    def build_context(self, files: PublishedFiles) -> BuildContext:
        """What the files are built with; `files` is their cache."""
        # The functions read files in S3 only, and tables that they refuse are not published.
        reader = EXPORT_READER if self.is_export else object_reader(storage.clients())
        return BuildContext(self.settings, self.location, files, reader, self._bucket())

    def _bucket(self) -> DeliveryBucket | None:
        """The bucket that clients read; None: they read another store."""
        if self.storage is None or not self.storage.is_materialized:
            return None
        bucket = self.storage.virtual_bucket
        return DeliveryBucket(file_cache.bucket_store(bucket, storage.clients()))

    def _store(self) -> Store:
        if self.storage is None:
            return Folder(self.location)
        if self.storage.is_materialized:
            return file_cache.bucket_store(self.storage.virtual_bucket, storage.clients())
        store = file_cache.cache_store(self.storage, storage.clients())
        if store is None or not self.storage.cache_bucket:
            raise BadInput(
                "there is no store to publish into: set CACHE_TABLE and CACHE_BUCKET as the "
                "functions have them, or DELIVERY=materialize, or give --export"
            )
        return store


@dataclass(frozen=True, slots=True)
class Folder:
    """The store of one exported table, in S3 or in a local folder; existing files stay."""

    location: Callable[[str], str]

    def get(self, key: str) -> bytes | None:
        """The content of a file; None: there is no such file.

        Raises:
            Unavailable: the file cannot be read.
        """
        return storage.read_file(self.location(key))

    def put(self, key: str, body: bytes) -> bytes:
        """Write a file unless it exists; returns the content of the existing file.

        Raises:
            Unavailable: the file cannot be written.
        """
        location = self.location(key)
        return body if storage.create(location, body) else storage.read_file(location) or body


def _read(location: str) -> bytes:
    return _existing(location, storage.read_file(location))


def _existing(location: str, body: bytes | None) -> bytes:
    if body is None:
        raise NoSuchKey(f"a file that the catalog names does not exist: {location}")
    return body


def _read_range(location: str, first: int, end: int) -> bytes:
    return _existing(location, storage.read_range(location, first, end - first))


EXPORT_READER = ObjectReader(_read, _read_range)


@dataclass(frozen=True, slots=True)
class PublishSettings:
    """The functions' settings, as far as published files depend on them."""

    files: FileSettings
    storage: StorageSettings | None
    """None for an export."""

    @property
    def copies_data_files(self) -> bool:
        """Whether data files that are changed for clients are objects of their own."""
        storage = self.storage
        return storage is not None and storage.is_materialized and storage.copy_data_files


def settings(environ: Mapping[str, str], is_export: bool, snapshots: int | None) -> PublishSettings:
    """Read the settings of a job.

    Args:
        environ: the functions' environment variables.
        snapshots: how many snapshots of each table an export lists; None: SNAPSHOT_LIMIT.

    Raises:
        Misconfigured: a setting is missing or not usable.
        ServiceUnavailable: the name of the bucket cannot be read now.
    """
    job = {"BUILD_SECONDS": str(86_400)}  # no client waits for an answer
    if not is_export:
        files = FileSettings.from_env({**environ, **job})
        return PublishSettings(
            files, file_cache.resolve_bucket(StorageSettings.from_env(environ), storage.clients())
        )
    # No server generates the files of an exported table when they are read.
    job |= {"VIRTUAL_PREFIX": EXPORT_PREFIX, "CLIENTS": "none"}
    job |= {"SNAPSHOT_LIMIT": str(snapshots)} if snapshots else {}
    return PublishSettings(FileSettings.from_env({**environ, **job}), None)


def directory(export: str) -> str:
    """The destination of an export: the absolute path of a local folder, or a location in S3.

    Raises:
        BadInput: it is neither.
    """
    if target := bucket_and_key(export):
        bucket, _ = target
        if not bucket:
            raise BadInput("--export names no bucket: s3://bucket/prefix")
        return export.rstrip("/")
    if "://" in export:
        raise BadInput(f"--export must be a folder or s3://bucket/prefix, not {export}")
    return os.path.abspath(export)


def check_directory(export: str, data_path: str) -> None:
    """Check that an export stays out of the lake's data path.

    Raises:
        BadInput: the destination is in the data path, where DuckLake would delete the files as
            orphans, or above it, so that a table's folder could be in it.
    """
    if not data_path:
        return
    target, data = _parts(export), _parts(data_path)
    if target[: len(data)] == data:
        raise BadInput(
            f"{export} is in the lake's own data path {data_path}: DuckLake deletes files there "
            "that it does not know; export elsewhere"
        )
    if data[: len(target)] == target:
        raise BadInput(
            f"{export} contains the lake's own data path {data_path}, and a table's folder could "
            "be in it: DuckLake deletes files there that it does not know; export elsewhere"
        )


def _parts(location: str) -> tuple[str, ...]:
    """The parts of a location, the same for all its spellings.

    Spellings differ by s3a:// and s3n://, doubled slashes, dots and links.
    """
    scheme, colon, path = location.rpartition("://")
    if not colon or scheme == "file":
        return ("", *filter(None, os.path.realpath(path).split("/")))
    bucket, _, key = path.partition("/")
    # In S3 `a//b` is another key than `a/b`, but not every client distinguishes them.
    folders = posixpath.normpath(f"/{key}").split("/")
    return ("s3" if is_s3(location) else scheme, bucket, *filter(None, folders))


SIMPLE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def table_directory(export: str, schema: Schema, table: Table) -> str:
    """The folder of an exported table."""
    # Ids replace names that not every client spells alike, and the names of nested schemas, which
    # may repeat.
    names = [
        schema.schema_name
        if SIMPLE_NAME.fullmatch(schema.schema_name) and not schema.parents
        else f"schema-{schema.schema_id}",
        table.table_name if SIMPLE_NAME.fullmatch(table.table_name) else table.table_uuid,
    ]
    return "/".join([export, *names])
