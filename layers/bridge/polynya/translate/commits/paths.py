"""Where a client may have put the files of a commit."""

from unicodedata import category

from ...errors import BadRequest

SCHEME = "s3://"
SCHEMES = ("s3a://", "s3n://")
"""Hadoop's names for s3://."""

BREAKING = frozenset("?#&<\\")
BREAKING_CATEGORIES = frozenset({"Cc", "Cn", "Cs"})
"""Characters with which a client cannot read a file, or DuckDB cannot remove it. DuckDB writes
names as they are into the XML that it sends to S3, which is no XML then, so that
ducklake_cleanup_old_files fails for the whole lake; Arrow drops tabs and ends of lines."""


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


def relative(location: str, directory: str, what: str) -> str:
    """The part of a location after a directory.

    Args:
        directory: with a slash at its end.
        what: the kind of file, for the message.

    Raises:
        BadRequest: the location is not below the directory.
    """
    directory = normalised(directory)
    path = normalised(location)
    rest = path.removeprefix(directory)
    # S3 has no `..`, but clients that write to other places normalise it.
    is_below = path.startswith(directory) and rest and "\0" not in rest
    breaking = next(filter(_is_breaking, rest), None)
    if is_below and breaking is not None:
        raise BadRequest(
            f"the name of {what} has {breaking!r} in it, with which clients cannot read it or "
            "DuckDB cannot remove it"
        )
    if not is_below or any(part in {"", ".", ".."} for part in rest.split("/")):
        raise BadRequest(
            f"{what} is not below {directory}, where the table's properties write.data.path and "
            "write.metadata.path say that clients write"
        )
    return rest


def _is_breaking(character: str) -> bool:
    return character in BREAKING or category(character) in BREAKING_CATEGORIES
