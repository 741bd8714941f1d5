"""Where published files go: the functions' store, or the directory of an exported table."""

import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from polynya.config import Config
from polynya.ducklake.rows import Schema, Table
from polynya.errors import NoSuchKey
from polynya.files.names import GENERATOR
from polynya.files.table_files import BuildContext
from polynya.storage import aws, configured
from polynya.storage.object_reader import ObjectReader, object_reader
from polynya.storage.stores import Store

from ..common import storage
from ..common.errors import BadInput
from .published_files import PublishedFiles

METADATA, INTERNAL = "metadata", "metadata/polynya"
"""The folders of an exported table: for Iceberg's files, and for what only the next run reads."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A destination of one table. Spark sends it to the executors."""

    config: Config
    directory: str = ""
    """That of an exported table; empty: the functions' store."""

    @property
    def is_export(self) -> bool:
        """Whether the table becomes a standalone one."""
        return bool(self.directory)

    def location(self, key: str) -> str:
        """The location at which clients read a file, by its key; also that of a table."""
        if not self.is_export:
            return f"s3://{self.config.virtual_bucket}/{key}"
        folder, name = posixpath.split(key)
        if posixpath.basename(folder) != GENERATOR:
            return self.directory
        is_internal = name.endswith((".summary", ".page", ".json")) and ".metadata." not in name
        return f"{self.directory}/{INTERNAL if is_internal else METADATA}/{name}"

    def files(self, *, writes: bool = True) -> PublishedFiles:
        """The files at the destination; `writes=False`: nothing is added."""
        listed = self.is_export or self.config.delivery == "materialize"
        return PublishedFiles(self._store(), self._there if listed else None, writes)

    def _there(self, keys: Sequence[str]) -> set[str]:
        """The keys that exist, by a listing of the table's files; all must be of one table."""
        at = f"{self.directory}/{METADATA}"
        if not self.is_export:
            at = posixpath.dirname(self.location(keys[0]))
        locations = {self.location(key): key for key in keys}
        found = (location for location, _ in storage.list_files(f"{at}/"))
        return {locations[location] for location in found if location in locations}

    def build_context(self, files: PublishedFiles) -> BuildContext:
        """What the functions' code needs to generate files for this destination."""
        # The functions read data files in S3 only; what they refuse is not published for them.
        reader = EXPORT_READER if self.is_export else object_reader()
        return BuildContext(self.config, self.location, files, reader)

    def _store(self) -> Store:
        if self.is_export:
            return Folder(self.location)
        if self.config.delivery == "materialize":
            return configured.bucket_store(self.config.virtual_bucket)
        store = configured.cache_store(self.config)
        if store is None or not self.config.cache_bucket:
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
        """Raises:
        Unavailable: the file cannot be read.
        """
        return storage.read_file(self.location(key))

    def put(self, key: str, body: bytes) -> bytes:
        """Write a file; gives its content, which is that of an existing file.

        Raises:
            Unavailable: the file cannot be written.
        """
        location = self.location(key)
        return body if storage.create(location, body) else storage.read_file(location) or body


def _read(location: str) -> bytes:
    body = storage.read_file(location)
    if body is None:
        raise NoSuchKey(f"a file that the catalog names does not exist: {location}")
    return body


def _read_range(location: str, first: int, end: int) -> bytes:
    return storage.read_range(location, first, end - first)


EXPORT_READER = ObjectReader(_read, _read_range)


def settings(
    environ: Mapping[str, str], metadata_schema: str, is_export: bool, snapshots: int | None
) -> Config:
    """The functions' settings, without what a job gets elsewhere.

    Raises:
        Misconfigured: one is missing or cannot be; ServiceUnavailable: it cannot be had now.
    """
    own = {"DATABASE_URL": "not here", "METADATA_SCHEMA": metadata_schema}
    own |= {"BUILD_SECONDS": str(86_400)}  # nobody waits for an answer
    if is_export:
        own |= {"VIRTUAL_BUCKET": "export", "VIRTUAL_PREFIX": "export"}
        own |= {"SNAPSHOT_LIMIT": str(snapshots)} if snapshots else {}
    config = Config.from_env({**environ, **own})
    source, _, parameter = config.virtual_bucket.partition(":")
    if source != "ssm":
        return config
    answer = aws.call(
        "the name of the bucket",
        lambda: aws.client("ssm").get_parameter(Name=parameter),
    )
    return replace(config, virtual_bucket=answer["Parameter"]["Value"])


def directory(export: str) -> str:
    """The destination of an export: the absolute path of a local folder, or a location in S3.

    Raises:
        BadInput: it is neither.
    """
    if storage.is_s3(export):
        if not storage.bucket_and_key(export)[0]:
            raise BadInput("--export names no bucket: s3://bucket/prefix")
        return export.rstrip("/")
    if "://" in export:
        raise BadInput(f"--export must be a folder or s3://bucket/prefix, not {export}")
    return os.path.abspath(export)


def check_directory(export: str, data_path: str) -> None:
    """Raises:
    BadInput: the destination is in the lake's data path, where DuckLake would delete the files as
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
    """Equal for all spellings of one location: s3a:// and s3n://, doubled slashes, dots, links.

    In S3 `a//b` is another key than `a/b`, but not every client distinguishes them.
    """
    scheme, colon, path = location.rpartition("://")
    if not colon or scheme == "file":
        return ("", *filter(None, os.path.realpath(path).split("/")))
    bucket, _, key = path.partition("/")
    folders = posixpath.normpath(f"/{key}").split("/")
    return ("s3" if storage.is_s3(location) else scheme, bucket, *filter(None, folders))


SIMPLE_NAME = re.compile(r"[A-Za-z0-9_-]+")


def table_directory(export: str, schema: Schema, table: Table) -> str:
    """The directory of one exported table; names with other characters are replaced by ids."""
    names = [
        schema.schema_name
        if SIMPLE_NAME.fullmatch(schema.schema_name)
        else f"schema-{schema.schema_id}",
        table.table_name if SIMPLE_NAME.fullmatch(table.table_name) else table.table_uuid,
    ]
    return "/".join([export, *names])
