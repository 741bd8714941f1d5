"""Where a client may have put the files of a commit."""

from ...errors import BadRequest

SCHEME = "s3://"
SCHEMES = ("s3a://", "s3n://")
"""Hadoop's names for s3://."""


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
    if is_below and any(character in rest for character in "?#"):
        raise BadRequest(f"the name of {what} has ? or # in it, with which DuckDB cannot read it")
    if not is_below or any(part in {"", ".", ".."} for part in rest.split("/")):
        raise BadRequest(
            f"{what} is not below {directory}, where the table's properties write.data.path and "
            "write.metadata.path say that clients write"
        )
    return rest
