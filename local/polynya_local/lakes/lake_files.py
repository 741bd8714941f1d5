"""The files of a lake: its catalog, and where its data is.

`failure` and `no_lake` say why the file of a catalog cannot be read.
`data_path_of` says where the data is, and under which locations Iceberg clients find it.
"""

import hashlib
import os
import re
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import duckdb
from polynya.runtime.errors import Misconfigured, PolynyaError, ServiceUnavailable
from polynya.storage.s3_locations import is_s3

from .mirrored_tables import Renamed

LONGEST_MESSAGE = 300


def is_locked(error: Exception) -> bool:
    """Whether another process has the file open, so that it cannot be read."""
    words = str(error)
    return "Could not set lock" in words or "database is locked" in words


def failure(name: str, error: Exception) -> PolynyaError:
    """The error to raise for a catalog that cannot be read.

    Args:
        name: what the message calls the catalog.
    """
    words = " ".join(str(error).split())
    if is_locked(error) and isinstance(error, sqlite3.Error):
        return ServiceUnavailable(
            f"{name} is locked by another process, which writes to it: try again when it has ended"
        )
    if is_locked(error):
        process = re.search(r"PID (\d+)", words)
        by = f"the process {process[1]}" if process else "another process"
        return ServiceUnavailable(
            f"{name} is open in {by}, and nobody else can read it meanwhile: DETACH the lake or "
            "quit there, then try again. A lake in SQLite or PostgreSQL has no such limit"
        )
    if isinstance(error, PermissionError):
        return Misconfigured(f"{name} cannot be read: permission denied")
    if isinstance(error, FileNotFoundError):
        return Misconfigured(f"there is no file {name}")
    if isinstance(error, duckdb.Error) and "version number" in words:
        return Misconfigured(
            f"{name} was written by a newer DuckDB than the one of this Python, "
            f"{duckdb.__version__}, which cannot read it: pip install --upgrade 'duckdb>=2,<3'"
        )
    if isinstance(error, sqlite3.Error):
        if "readonly database" in words:
            return Misconfigured(
                f"{name} has a write-ahead log, which SQLite reads only in a folder where it may "
                "write: copy the file, or run PRAGMA journal_mode=DELETE where it was written"
            )
        # SQLite's module quotes a text that it cannot decode.
        words = words.partition(" with text ")[0]
    return Misconfigured(
        f"{name} cannot be read; if it is damaged, restore a copy of it: {words[:LONGEST_MESSAGE]}"
    )


def no_lake(name: str, schema: str, schemas: list[str]) -> Misconfigured:
    """The error for a database without a DuckLake in the schema.

    Args:
        schemas: those that have one.
    """
    if schemas:
        names = ", ".join(map(repr, schemas))
        why = f"; --metadata-schema names one that has it: {names}"
    else:
        why = " nor in another one: give the database that follows 'ducklake:' in ATTACH"
    return Misconfigured(f"{name} has no DuckLake catalog in the schema {schema!r}{why}")


BUCKET = "polynya-local-data"
"""The bucket as which the local S3 serves a folder."""


def bucket_of(lake: str) -> str:
    """The bucket of one of several lakes, by its name; a bucket has no capital letters."""
    digest = hashlib.sha256(lake.encode()).hexdigest()[:8]
    return f"{BUCKET}-{digest}"


ALIAS = "polynya-local--ol-s3"
"""The bucket of the virtual files under `object-lambda`: shaped like an access point's alias."""

SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://")
FILE = re.compile(r"file:(?://(?:localhost)?(?=/))?")


@dataclass(frozen=True, slots=True)
class DataPath:
    """A lake's data path."""

    folder: Path | None
    """The local folder; None: the data is in S3."""
    renamed: Renamed | None
    """How the catalog's locations are rewritten; None: they stay."""


@dataclass(frozen=True, slots=True)
class FolderOfBucket:
    """The local folder that is served as a bucket."""

    bucket: str
    folder: Path

    def identity(self, location: str) -> str:
        """The path of a file, without symbolic links, however its location is spelled.

        Args:
            location: in the bucket, or a path of this machine: the catalog has one if it spells the
                folder in a way that the mirror does not know.
        """
        prefix = f"s3://{self.bucket}/"
        if location.startswith(prefix):
            return os.path.realpath(self.folder / location.removeprefix(prefix).lstrip("/"))
        return os.path.realpath(FILE.sub("", location))


def data_path_of(stored: str, override: str | None, bucket: str = BUCKET) -> DataPath:
    """The data path of a lake.

    A relative one is relative to the folder in which the process runs, as it is in DuckLake.

    Args:
        stored: DuckLake's option `data_path`.
        override: replaces it, as DATA_PATH with OVERRIDE_DATA_PATH does.
        bucket: the bucket as which a local folder is served.

    Raises:
        Misconfigured: the data is neither in S3 nor in a local folder, or has no path.
    """
    path = FILE.sub("", (override or stored).strip()).rstrip("/") + "/"
    if is_s3(path):
        return DataPath(None, Renamed((), path, path) if override else None)
    if match := SCHEME.match(path):
        raise Misconfigured(
            f"the lake's data is in {match['scheme']}://…: Iceberg clients of Polynya reach data "
            "in S3 or in a local folder only; --data-path names a copy of it"
        )
    if not path.strip("/"):
        # With an empty path, everything on this machine would be the lake's data.
        raise Misconfigured("the catalog does not say where the data is: give --data-path")
    location = f"s3://{bucket}/"
    renamed = Renamed(_spellings(path), location, location, os.path.abspath(path) + "/")
    return DataPath(Path(path).absolute(), renamed)


def _spellings(path: str) -> tuple[str, ...]:
    """The spellings of the path by which DuckLake may store a file outside its table's folder.

    They have no `//` and `/./`, which `Renamed` removes from the locations of files.
    """
    paths = {re.sub("/([.]?/)+", "/", path), os.path.abspath(path), os.path.realpath(path)}
    return tuple(sorted((spelling.rstrip("/") + "/" for spelling in paths), key=len, reverse=True))
