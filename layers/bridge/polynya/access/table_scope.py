"""The part of S3 that belongs to one table alone: keys, and directories without other tables."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import unquote

from ..runtime.errors import Refused
from ..storage.objects import SCHEMES

SCHEME = f"(?:{'|'.join(sorted(SCHEMES))})://"
S3 = re.compile(SCHEME, re.IGNORECASE)
HTTP = re.compile("https?://[^/]*/", re.IGNORECASE)

DIRECTORY = re.compile(SCHEME + "[^/]+/.*[^/].*/", re.DOTALL)
"""A directory below a bucket: a whole bucket never belongs to one table."""
KEY = re.compile(SCHEME + "[^/]+/.+", re.DOTALL)

PARTITION = re.compile("(.*/)[^/]+=[^/]*/", re.DOTALL)
"""A directory of one partition value; the group is the directory that it is in."""


@dataclass(frozen=True, slots=True, order=True)
class S3Scope:
    """One object in S3, or all objects below a directory."""

    location: str
    is_directory: bool

    @property
    def directory(self) -> str:
        """The directory, or that of the object; with a slash at its end."""
        return self.location if self.is_directory else parent_directory(self.location)


def parent_directory(location: str) -> str:
    """A location up to its last slash."""
    return location[: location.rfind("/") + 1]


class OtherTables:
    """Where the other tables of the lake are, whatever the spelling of their directories."""

    def __init__(self, tables: Iterable[str], files: Iterable[str], virtual_root: str) -> None:
        """No query is made.

        Args:
            tables: the directories of tables, where new files may be added.
            files: directories outside of these that hold files of the tables.
            virtual_root: the directory of the virtual files of all tables.
        """
        self._tables = {normalized(path) for path in (*tables, virtual_root)}
        self._without_slash = [path for path in self._tables if not path.endswith("/")]
        self._sorted = sorted(self._tables | {normalized(path) for path in files})
        paths = [path[match.end() :] for path in self._sorted if (match := HTTP.match(path))]
        self._over_http = {*paths, *map(unquote, paths)}
        self._root = normalized(virtual_root)

    def absent_from(self, directory: str) -> bool:
        """Whether a directory of S3 holds no files of other tables, and is in none of theirs."""
        name = normalized(directory)
        ends = (match.end() for match in re.finditer("/", name))
        return self.absent_below(directory) and not any(name[:end] in self._tables for end in ends)

    def absent_below(self, directory: str) -> bool:
        """Whether a directory of S3 holds no files of other tables; it may be in one of theirs."""
        if not DIRECTORY.fullmatch(directory) or self.is_virtual(directory):
            return False
        name = normalized(directory)
        after = bisect_left(self._sorted, name)
        if after < len(self._sorted) and self._sorted[after].startswith(name):
            return False
        # In an HTTP location the name of the bucket is in the host, or in the path.
        _, _, key = name.partition("/")
        return not (
            any(name.startswith(path) for path in self._without_slash)
            or any(key in path for path in self._over_http)
        )

    def is_virtual(self, location: str) -> bool:
        """Whether a location is below that of the virtual files."""
        return normalized(location).startswith(self._root)


def normalized(location: str) -> str:
    """Bucket and key, equal for all spellings of an object in S3; other locations as they are."""
    match = S3.match(location)
    if match is None:
        return location
    bucket, slash, key = location[match.end() :].partition("/")
    return bucket.lower() + slash + key


def coarsen_until(
    scopes: Iterable[S3Scope], other_locations: OtherTables, fits: Callable[[set[S3Scope]], bool]
) -> list[S3Scope]:
    """These scopes, made coarser step by step until they fit; sorted.

    Keys become their directory, and directories of partitions become the directory they are in,
    where that holds nothing of other tables.

    Raises:
        Refused: the coarsest ones do not fit.
    """
    scopes = set(scopes)
    while not fits(scopes):
        coarser = _whole_directory(scopes, other_locations) or _without_partitions(
            scopes, other_locations
        )
        if coarser is None:
            raise Refused(
                "no credentials for this table: its files are in too many places for one session "
                "policy, and the directory that holds them all holds, or may hold, files of other "
                "tables"
            )
        scopes = _without_nested(coarser)
    return sorted(scopes)


def _whole_directory(scopes: set[S3Scope], other_locations: OtherTables) -> set[S3Scope] | None:
    """These, with the directory that has the most keys; None if there is none."""
    keys = Counter(scope.directory for scope in scopes if not scope.is_directory)
    for directory, count in keys.most_common():
        if count > 1 and other_locations.absent_from(directory):
            return {*scopes, S3Scope(directory, True)}
    return None


def _without_partitions(scopes: set[S3Scope], other_locations: OtherTables) -> set[S3Scope] | None:
    """These, with the parents of the deepest partition directories; None if there is none."""
    above = {
        match[1] for scope in scopes if (match := PARTITION.fullmatch(scope.directory)) is not None
    }
    above = {directory for directory in above if other_locations.absent_from(directory)}
    if not above:
        return None
    depth = max(directory.count("/") for directory in above)
    deepest = {S3Scope(path, True) for path in above if path.count("/") == depth}
    return {*scopes, *deepest}


def _without_nested(scopes: Iterable[S3Scope]) -> set[S3Scope]:
    """Without those that are below another one."""
    outer: list[S3Scope] = []
    for scope in sorted(scopes, key=lambda scope: (scope.location, not scope.is_directory)):
        if not (outer and outer[-1].is_directory and scope.location.startswith(outer[-1].location)):
            outer.append(scope)
    return set(outer)
