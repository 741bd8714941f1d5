"""Locations in S3, as the catalog and clients write them."""

from ..runtime.errors import Misconfigured

SCHEMES = frozenset({"s3", "s3a", "s3n"})
"""The schemes under which Hadoop, Spark and other clients write locations in S3."""


def is_s3(location: str) -> bool:
    """Whether a location is in S3."""
    scheme, separator, _ = location.partition("://")
    return bool(separator) and scheme in SCHEMES


def bucket_and_key(location: str) -> tuple[str, str] | None:
    """The bucket and the key of `s3://bucket/key`, not decoded; None if it is not in S3."""
    bucket, _, key = location.partition("://")[2].partition("/")
    return (bucket, key) if is_s3(location) else None


def is_below(location: str, directory: str) -> bool:
    """Whether an object is below `s3://bucket/prefix/`, even if a client normalises its key.

    Args:
        directory: with a slash at its end; empty: everything is below it.
    """
    if not directory:
        return True
    address, (bucket, prefix) = bucket_and_key(location), bucket_and_key(directory) or ("", "")
    if address is None or {".", ".."} & set(address[1].split("/")):
        return False
    return address[0] == bucket and address[1].startswith(prefix)


def check_below(location: str, *directories: str) -> None:
    """Check that a file is below the lake's data path, or another of its directories (`is_below`).

    Raises:
        Misconfigured: it is below none of them.
    """
    if not any(is_below(location, directory) for directory in directories):
        raise Misconfigured(
            "the catalog names a file outside of the lake's data path (`data_path` in the document "
            "of the lakes)"
        )
