"""Where a lake's data is, and under which locations Iceberg clients find it."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from polynya.errors import Misconfigured
from polynya.storage.s3 import is_s3

from .mirroring.tables import Renamed

BUCKET = "polynya-local-data"
"""The bucket that the local S3 makes of a folder."""

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
    """What becomes of the catalog's locations; None: they stay."""


def data_path_of(stored: str, override: str | None) -> DataPath:
    """The data path of a lake.

    A relative one is relative to the folder in which the process runs, as it is in DuckLake.

    Args:
        stored: DuckLake's option `data_path`.
        override: given instead of it, as DATA_PATH with OVERRIDE_DATA_PATH.

    Raises:
        Misconfigured: the data is neither in S3 nor in a local folder, or has no path.
    """
    path = FILE.sub("", (override or stored).strip()).rstrip("/") + "/"
    if is_s3(path):
        return DataPath(None, Renamed((), path, path) if override else None)
    if found := SCHEME.match(path):
        raise Misconfigured(
            f"the lake's data is in {found['scheme']}://…: Iceberg clients of Polynya reach data "
            "in S3 or in a local folder only; --data-path names a copy of it"
        )
    if not path.strip("/"):
        # Also the catalog has none: everything on this machine would be the lake's data.
        raise Misconfigured("the catalog does not say where the data is: give --data-path")
    location = f"s3://{BUCKET}/"
    return DataPath(Path(path).absolute(), Renamed(_spellings(path), location, location))


def _spellings(path: str) -> tuple[str, ...]:
    """The path as DuckLake stores it in front of a file that is not below its table."""
    found = {path, os.path.abspath(path), os.path.realpath(path)}
    return tuple(sorted((spelling.rstrip("/") + "/" for spelling in found), key=len, reverse=True))
