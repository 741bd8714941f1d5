"""What in S3 is one table's alone: exact keys, and directories without files of other tables."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from ..errors import Refused

S3 = re.compile("s3[an]?://", re.IGNORECASE)
HTTP = re.compile("https?://[^/]*/", re.IGNORECASE)

DIRECTORY = re.compile("s3[an]?://[^/]+/.*[^/].*/", re.DOTALL)
"""Not a whole bucket: that is nobody's table."""
KEY = re.compile("s3[an]?://[^/]+/.+", re.DOTALL)

PARTITION = re.compile("(.*/)[^/]+=[^/]*/", re.DOTALL)
"""A directory of one partition value, and the directory that it is in."""


@dataclass(frozen=True, slots=True, order=True)
class S3Scope:
    location: str
    is_directory: bool
    """All that is below it; else the one object of this name."""

    @property
    def directory(self) -> str:
        return self.location if self.is_directory else directory_of(self.location)


def directory_of(location: str) -> str:
    return location[: location.rfind("/") + 1]


class OtherTables:
    """Other tables, by directories in whatever spelling."""

    def __init__(self, tables: Iterable[str], files: Iterable[str], virtual_root: str) -> None:
        """Remember where they are.

        Args:
            tables: the directories of tables, where new files may come.
            files: directories that hold files of them, wherever these are.
            virtual_root: what holds the virtual files of all tables.
        """
        self._tables = {spelled(one) for one in (*tables, virtual_root)}
        self._without_slash = [one for one in self._tables if not one.endswith("/")]
        self._sorted = sorted(self._tables | {spelled(one) for one in files})
        paths = [one[match.end() :] for one in self._sorted if (match := HTTP.match(one))]
        self._over_http = {*paths, *map(unquote, paths)}
        self._root = spelled(virtual_root)

    def absent_from(self, directory: str) -> bool:
        """Whether nothing of theirs is in a directory of S3, however deep, nor is it in theirs."""
        if not DIRECTORY.fullmatch(directory):
            return False
        name = spelled(directory)
        after = bisect_left(self._sorted, name)
        if after < len(self._sorted) and self._sorted[after].startswith(name):
            return False
        ends = (match.end() for match in re.finditer("/", name))
        if any(name[:end] in self._tables for end in ends):
            return False
        # Over HTTP the name of the bucket is in the host, or in the path.
        _, _, key = name.partition("/")
        return not (
            any(name.startswith(one) for one in self._without_slash)
            or any(key in path for path in self._over_http)
        )

    def is_virtual(self, location: str) -> bool:
        """Whether it is among the virtual files."""
        return spelled(location).startswith(self._root)


def spelled(location: str) -> str:
    """Bucket and key, the same for each spelling of one object in S3; others as they are."""
    match = S3.match(location)
    if match is None:
        return location
    bucket, slash, key = location[match.end() :].partition("/")
    return bucket.lower() + slash + key


def fitting(
    places: Iterable[S3Scope], neighbours: OtherTables, fits: Callable[[set[S3Scope]], bool]
) -> list[S3Scope]:
    """These places, or as few more as it takes until they fit.

    Keys become their directory, directories of partitions become what they are in; nothing else.

    Raises:
        Refused: they do not fit.
    """
    places = set(places)
    while not fits(places):
        coarser = _whole_directory(places, neighbours) or _without_partitions(places, neighbours)
        if coarser is None:
            raise Refused(
                "no credentials for this table: its files are in too many places for one session "
                "policy, and what holds them all holds files of other tables too, or may"
            )
        places = _without_covered(coarser)
    return sorted(places)


def _whole_directory(places: set[S3Scope], neighbours: OtherTables) -> set[S3Scope] | None:
    """The directory with the most keys instead of these."""
    keys = Counter(place.directory for place in places if not place.is_directory)
    for directory, count in keys.most_common():
        if count > 1 and neighbours.absent_from(directory):
            return {*places, S3Scope(directory, True)}
    return None


def _without_partitions(places: set[S3Scope], neighbours: OtherTables) -> set[S3Scope] | None:
    """Instead of the deepest directories of partitions those that they are in."""
    above = {
        match[1] for place in places if (match := PARTITION.fullmatch(place.directory)) is not None
    }
    above = {directory for directory in above if neighbours.absent_from(directory)}
    if not above:
        return None
    depth = max(directory.count("/") for directory in above)
    deepest = {S3Scope(one, True) for one in above if one.count("/") == depth}
    return {*places, *deepest}


def _without_covered(places: Iterable[S3Scope]) -> set[S3Scope]:
    """Without those that are within another one."""
    kept: list[S3Scope] = []
    for place in sorted(places, key=lambda place: (place.location, not place.is_directory)):
        if not (kept and kept[-1].is_directory and place.location.startswith(kept[-1].location)):
            kept.append(place)
    return set(kept)
