"""Locations that clients send: how they are spelled, and directories that they choose."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple
from unicodedata import category

from ..access.authorized_lake import AuthorizedLake
from ..access.table_scope import OtherTables, normalized, other_tables
from ..ducklake import queries
from ..ducklake.paths import path_in_lake, schema_location
from ..ducklake.rows.objects import Schema
from ..mapping.properties import staging_root, upload_location
from ..runtime.errors import BadRequest

# Characters that no client encodes or takes for a pattern.
PATH = re.compile(r"([A-Za-z0-9_,'() -][A-Za-z0-9_.,'() -]*/)+")

NO_TABLE = -1


@dataclass(frozen=True, slots=True)
class RequestedLocation:
    """A location that a client has chosen, in a lake as it is now."""

    lake: AuthorizedLake
    location: str
    staging_location: str
    """The setting; empty: below the lake's data path."""
    virtual_location: str
    """Where all virtual files are."""

    @property
    def directory(self) -> str:
        """The location with the scheme `s3` and one slash at its end."""
        return f"{normalised(self.location).rstrip('/')}/"

    @property
    def path(self) -> str | None:
        """Relative to the lake's data path; None: it is not below that, or has odd characters."""
        path, is_below = path_in_lake(self.directory, self.lake.lake)
        return path if is_below and PATH.fullmatch(path) else None

    def is_free(self, schema: Schema | None = None) -> bool:
        """Whether nothing of the lake is there, or may come there.

        Args:
            schema: the directory may be within that of this one.
        """
        con, lake = self.lake.con, self.lake.lake
        schemas = queries.schemas_at(self.lake.snapshot_id).run(con)
        own = None if schema is None else normalized(schema_location(lake, schema))
        directories = {
            *(schema_location(lake, other) for other in schemas),
            # Also of dropped tables, whose files snapshots show.
            *queries.others(lake, NO_TABLE).run(con).directories,
            staging_root(self.staging_location, lake.data_path),
            f"{upload_location(self.virtual_location, lake.data_path)}/",
        }
        directory = normalized(self.directory)
        return not any(
            other.startswith(directory) or (directory.startswith(other) and other != own)
            for other in map(normalized, directories)
        )


SCHEME = "s3://"
SCHEMES = ("s3a://", "s3n://")
"""Hadoop's names for s3://."""

BREAKING = frozenset("?#&<\\")
BREAKING_CATEGORIES = frozenset({"Cc", "Cn", "Cs"})
"""Characters in the name of a file with which a client cannot read it, or DuckDB cannot remove it.
DuckDB does not escape names in the XML that it sends to S3: the XML is malformed then, and
ducklake_cleanup_old_files fails for the whole lake. Arrow drops tabs and line ends."""


def normalised(location: str) -> str:
    """The location with the scheme `s3`."""
    for scheme in SCHEMES:
        if location.startswith(scheme):
            return SCHEME + location.removeprefix(scheme)
    return location


def spellings(location: str) -> list[str]:
    """Every path by which DuckLake may know the file: absolute, or relative to some directory."""
    key = normalised(location).removeprefix(SCHEME)
    parts = key.split("/")
    relative_paths = ("/".join(parts[start:]) for start in range(1, len(parts)))
    return [*(scheme + key for scheme in (SCHEME, *SCHEMES)), *relative_paths]


def relative(location: str, directory: str, what: str, hint: str = "") -> str:
    """The part of a location after a directory.

    Args:
        directory: with a slash at its end.
        what: the kind of file, for the message.
        hint: the end of the message.

    Raises:
        BadRequest: the location is not below the directory.
    """
    directory = normalised(directory)
    path = normalised(location)
    relative_path = path.removeprefix(directory)
    # S3 has no `..`, but clients that write to other places normalise it.
    is_below = path.startswith(directory) and relative_path and "\0" not in relative_path
    # Printable characters are in none of the categories; most paths have no others.
    is_plain = relative_path.isprintable() and BREAKING.isdisjoint(relative_path)
    breaking = None if is_plain else next(filter(_is_breaking, relative_path), None)
    if is_below and breaking is not None:
        raise BadRequest(
            f"the name of {what} has {breaking!r} in it: clients cannot read such a file, or "
            "DuckDB cannot remove it; use another name"
        )
    if not is_below or any(part in {"", ".", ".."} for part in relative_path.split("/")):
        raise BadRequest(
            f"{what} is not below {directory}, where the table's properties write.data.path and "
            f"write.metadata.path say that clients write{hint}"
        )
    return relative_path


def _is_breaking(character: str) -> bool:
    return character in BREAKING or category(character) in BREAKING_CATEGORIES


class Place(NamedTuple):
    """Where a file is, as the catalog has it."""

    path: str
    path_is_relative: bool
    """To the directory of the table."""


@dataclass(frozen=True, slots=True)
class FilePlaces:
    """Where a table may have files that its clients have not uploaded for it."""

    permitted: Sequence[str]
    """Directories, by the policy; each ends with a slash."""
    is_taken: Callable[[str], bool]
    """Whether a location is below the directory of another table, or one of Polynya's own."""
    directory: str = ""
    """The table's own, with a slash at its end; empty: it has none."""

    def place(self, location: str, what: str = "a data file") -> Place | None:
        """Where a file is; None: nothing may be added from there.

        Args:
            location: normalised.
            what: the kind of file, for the message.

        Raises:
            BadRequest: clients or DuckLake could not read a file of that name.
        """
        own = normalised(self.directory)
        if own and location.startswith(own):
            place = Place(relative(location, own, what), True)
        elif any(map(location.startswith, self.permitted)):
            relative(location, SCHEME, what)
            place = Place(location, False)
        else:
            return None
        return None if self.is_taken(location) else place

    def check(self, location: str, what: str) -> None:
        """Check that a file may be where it is.

        Raises:
            BadRequest: it is elsewhere, or clients or DuckLake could not read a file of that name.
        """
        if self.place(normalised(location), what) is None:
            raise BadRequest(
                f"{what} is not below a directory that `add_files` in the authorization policy "
                f"names ({', '.join(self.permitted) or 'it names none'}), or it is in the "
                "directory of another table"
            )


def taken_locations(
    lake: AuthorizedLake, table_id: int, virtual_location: str, behind: str, staging: str
) -> Callable[[str], bool]:
    """Whether a location is below the directory of another table, or one of Polynya's own.

    The function reads the lake when it is called for the first time.

    Args:
        table_id: of the table whose own directory is not taken; NO_TABLE: there is none.
        virtual_location: where virtual files are.
        behind: where S3 keeps uploads to virtual_location; with a slash at its end.
        staging: where clients write manifests; with a slash at its end.
    """
    own_directories = [normalised(path) for path in (behind, staging)]

    @cache
    def tables() -> OtherTables:
        return other_tables(lake.con, lake.lake, table_id, virtual_location, staging)

    def is_taken(location: str) -> bool:
        return any(map(location.startswith, own_directories)) or tables().hold(location)

    return is_taken
