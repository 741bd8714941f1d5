"""The part of S3 that belongs to one table alone: keys, and directories without other tables.

It follows from the catalog's rows.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from pg8000.native import Connection

from ..ducklake.paths import table_location
from ..ducklake.queries import named_objects
from ..ducklake.rows.objects import Lake, Schema, Table
from ..mapping.properties import data_path
from ..runtime.errors import Refused
from ..storage.s3_locations import SCHEMES

SCHEME = f"(?:{'|'.join(sorted(SCHEMES))})://"
S3 = re.compile(SCHEME, re.IGNORECASE)
HTTP = re.compile("https?://[^/]*/", re.IGNORECASE)

DIRECTORY = re.compile(SCHEME + "[^/]+/.*[^/].*/", re.DOTALL)
"""A directory below a bucket: a whole bucket never belongs to one table."""
KEY = re.compile(SCHEME + "[^/]+/.+", re.DOTALL)

PARTITION = re.compile("(.*/)[^/]+=[^/]*/", re.DOTALL)
"""A directory of one partition value; the group is the directory that it is in."""

MAX_KEYS = 64
"""More do not fit into a policy, however short they are."""


@dataclass(frozen=True, slots=True, order=True)
class S3Scope:
    """One object in S3, or all objects below a directory."""

    location: str
    is_directory: bool

    @property
    def directory(self) -> str:
        """The directory, or the one that the object is in; with a slash at its end."""
        return self.location if self.is_directory else parent_directory(self.location)


def parent_directory(location: str) -> str:
    """A location up to its last slash."""
    return location[: location.rfind("/") + 1]


class OtherTables:
    """The directories of the other tables of the lake, in every spelling.

    Names that differ only in case count as the same, because SeaweedFS ignores case in policies.
    """

    def __init__(self, tables: Iterable[str], files: Iterable[str], virtual_root: str) -> None:
        """No query is sent yet.

        Args:
            tables: the directories of tables, where new files may be added.
            files: directories outside of these that hold files of the tables.
            virtual_root: the directory of the virtual files of all tables.
        """
        self._tables = {_folded(path) for path in (*tables, virtual_root)}
        self._without_slash = [path for path in self._tables if not path.endswith("/")]
        self._sorted = sorted(self._tables | {_folded(path) for path in files})
        paths = [path[match.end() :] for path in self._sorted if (match := HTTP.match(path))]
        self._over_http = {*paths, *map(unquote, paths)}
        self._root = _folded(virtual_root)

    def absent_from(self, directory: str) -> bool:
        """Whether a directory of S3 has no files of other tables, and is not in one of their
        directories."""
        name = _folded(directory)
        ends = (match.end() for match in re.finditer("/", name))
        return self.absent_below(directory) and not any(name[:end] in self._tables for end in ends)

    def absent_below(self, directory: str) -> bool:
        """Whether a directory of S3 has no files of other tables; it may be in one of their
        directories."""
        if not DIRECTORY.fullmatch(directory) or self.is_virtual(directory):
            return False
        name = _folded(directory)
        after = bisect_left(self._sorted, name)
        if after < len(self._sorted) and self._sorted[after].startswith(name):
            return False
        # In an HTTP location the name of the bucket is in the host, or in the path.
        _, _, key = name.partition("/")
        return not (
            any(name.startswith(path) for path in self._without_slash)
            or any(key in path for path in self._over_http)
        )

    def hold(self, location: str) -> bool:
        """Whether a file of S3 is below the directory of another table, or a virtual file."""
        name = _folded(location)
        ends = (match.end() for match in re.finditer("/", name))
        spellings = (name, name.partition("/")[2])
        return (
            any(name[:end] in self._tables for end in ends)
            or any(name.startswith(path) for path in self._without_slash)
            or any(path.startswith(http) for path in spellings for http in self._over_http)
        )

    def is_virtual(self, location: str) -> bool:
        """Whether a location is in the directory of the virtual files."""
        return _folded(location).startswith(self._root)


def normalized(location: str) -> str:
    """Bucket and key, equal for all spellings of an object in S3; other locations as they are."""
    match = S3.match(location)
    if match is None:
        return location
    bucket, slash, key = location[match.end() :].partition("/")
    return bucket.lower() + slash + key


def _folded(location: str) -> str:
    return normalized(location).casefold()


def other_tables(
    con: Connection, lake: Lake, table_id: int, virtual_root: str, staging: str | None
) -> OtherTables:
    """Where all other tables of the lake are, all virtual files, and all files of commits.

    Args:
        table_id: of a table that may not exist yet.
        virtual_root: where the virtual files of all lakes are; with a slash at its end.
        staging: the directory in which clients write metadata files; None: clients do not write.
    """
    tables = named_objects.others(lake, table_id).run(con)
    files = named_objects.added_directories(tables.table_ids).run(con)
    if staging is not None:
        files.append(staging)
    return OtherTables(tables.directories, files, virtual_root)


def read_scopes(
    con: Connection, lake: Lake, schema: Schema, table: Table, other_locations: OtherTables
) -> set[S3Scope]:
    """Objects and directories that hold all data files of a table and none of other tables.

    Raises:
        Refused: there are none, or too many.
    """
    own = table_location(lake, schema, table)
    added = named_objects.own_directories(table.table_id, is_relative=False).run(con)
    if other_locations.absent_from(own):
        scopes = {S3Scope(own, True)}
    else:
        scopes = _shared_directory_scopes(con, own, table, other_locations)
    scopes |= _scopes(con, table.table_id, added, "", other_locations, is_relative=False)
    if not all(KEY.fullmatch(scope.location) for scope in scopes):
        raise Refused("no credentials for this table: it has files outside of S3")
    if any(other_locations.is_virtual(scope.location) for scope in scopes):
        raise Refused("no credentials for this table: it has files among the virtual ones")
    return scopes


def virtual_root(virtual_location: str, lake: str) -> str:
    """Where the virtual files of all lakes are, with a slash at its end.

    Args:
        virtual_location: of a table.
        lake: its lake, as in the document LAKES; empty: that of the settings.
    """
    return parent_directory(virtual_location).removesuffix(f"{lake}/" if lake else "")


def upload_scopes(
    own: str, table_uuid: str, staging: str, virtual_files: str, other_locations: OtherTables
) -> tuple[set[S3Scope], set[S3Scope]]:
    """Where clients write the files of a table, and where DuckDB may put its delete files.

    Args:
        own: the directory of the table, which may not exist yet (stage-create).
        staging: the directory in which clients write the metadata files of all tables.
        virtual_files: where uploads beside the table's virtual files arrive, of which one has the
            inlined rows.

    Raises:
        Refused: the directories of new files are not the table's alone.
    """
    data = f"{data_path(own, table_uuid)}/"
    metadata = f"{staging}{table_uuid}/"
    # Tables may share a directory, in which each has its own `data`, without files of others.
    if not (other_locations.absent_below(data) and other_locations.absent_from(metadata)):
        raise Refused(
            "no credentials to write this table: the directories of its new files are not in S3, "
            "or are among the virtual files, or those of other tables"
        )
    # A directory of several tables is left out, because uploads of other tables' clients could be
    # replaced there. The files that clients write are in the table's own part of it (`data`), and
    # so are their delete files.
    beside_data = {S3Scope(own, True)} if other_locations.absent_from(own) else set()
    writes = {S3Scope(data, True), S3Scope(metadata, True)}
    return writes, {S3Scope(f"{virtual_files}/", True), *beside_data}


def _shared_directory_scopes(
    con: Connection, own: str, table: Table, other_locations: OtherTables
) -> set[S3Scope]:
    """The scopes of files below the table's directory, if that is not the table's alone."""
    within = named_objects.own_directories(table.table_id, is_relative=True).run(con)
    written = S3Scope(f"{data_path(own, table.table_uuid)}/", True)
    scopes = set()
    if other_locations.absent_below(written.location):
        # The files that clients of Iceberg have written.
        ours = {path for path in within if f"{own}{path}".startswith(written.location)}
        scopes = {written} if ours else set()
        within = {path: number for path, number in within.items() if path not in ours}
    return scopes | _scopes(con, table.table_id, within, own, other_locations, is_relative=True)


def _scopes(
    con: Connection,
    table_id: int,
    directories: Mapping[str, int],
    base: str,
    other_locations: OtherTables,
    *,
    is_relative: bool,
) -> set[S3Scope]:
    """The scopes of the files in these directories, whose values are numbers of files.

    Each file is a key as far as a policy has room for keys, and always where other tables have
    files too. The other directories are scopes themselves.
    """
    by_key = {path for path in directories if not other_locations.absent_from(base + path)}
    number = sum(directories[path] for path in by_key)
    if number > MAX_KEYS:
        raise Refused(
            f"no credentials for this table: {number:,} of its files are in directories that hold "
            "files of other tables too, and a session policy cannot name them all"
        )
    for path in sorted(directories.keys() - by_key, key=lambda path: (directories[path], path)):
        number += directories[path]
        if number > MAX_KEYS:
            break
        by_key.add(path)
    keys = named_objects.own_files(table_id, by_key, is_relative=is_relative).run(con)
    return {
        *(S3Scope(base + key, False) for key in keys),
        *(S3Scope(base + path, True) for path in directories if path not in by_key),
    }


def coarsen_until(
    scopes: Iterable[S3Scope], other_locations: OtherTables, fits: Callable[[set[S3Scope]], bool]
) -> list[S3Scope]:
    """Merge scopes step by step until they fit; the result is sorted.

    Keys become their directory, and directories of partitions become the directory that they are
    in, where that has no files of other tables.

    Raises:
        Refused: the coarsest ones do not fit.
    """
    scopes = set(scopes)
    while not fits(scopes):
        coarser = _add_whole_directory(scopes, other_locations) or _add_partition_parents(
            scopes, other_locations
        )
        if coarser is None:
            raise Refused(
                "no credentials for this table: its files are in too many places for one session "
                "policy, and the directory that holds them all holds, or may hold, files of other "
                "tables"
            )
        scopes = _drop_nested(coarser)
    return sorted(scopes)


def _add_whole_directory(scopes: set[S3Scope], other_locations: OtherTables) -> set[S3Scope] | None:
    """Add the directory that has the most keys; None if no directory can be added."""
    keys = Counter(scope.directory for scope in scopes if not scope.is_directory)
    for directory, count in keys.most_common():
        if count > 1 and other_locations.absent_from(directory):
            return {*scopes, S3Scope(directory, True)}
    return None


def _add_partition_parents(
    scopes: set[S3Scope], other_locations: OtherTables
) -> set[S3Scope] | None:
    """Add the parents of the deepest partition directories; None if none can be added."""
    above = {
        match[1] for scope in scopes if (match := PARTITION.fullmatch(scope.directory)) is not None
    }
    above = {directory for directory in above if other_locations.absent_from(directory)}
    if not above:
        return None
    depth = max(directory.count("/") for directory in above)
    deepest = {S3Scope(path, True) for path in above if path.count("/") == depth}
    return {*scopes, *deepest}


def _drop_nested(scopes: Iterable[S3Scope]) -> set[S3Scope]:
    """Drop the scopes that are below another one."""
    outer: list[S3Scope] = []
    for scope in sorted(scopes, key=lambda scope: (scope.location, not scope.is_directory)):
        if not (outer and outer[-1].is_directory and scope.location.startswith(outer[-1].location)):
            outer.append(scope)
    return set(outer)
