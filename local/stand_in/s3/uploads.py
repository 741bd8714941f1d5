"""What clients may change in S3: they may upload, below the paths that the catalog tells writers.

On AWS the policy of vended credentials says this; here the caller of the proxy is not known, so it
may upload to any table.
"""

import re
from dataclasses import dataclass

from polynya.storage.s3 import bucket_and_key
from polynya.translate.write_locations import staging_path

from .address import S3Address

UPLOADS = {
    ("PUT", frozenset[str]()): "PutObject",
    ("PUT", frozenset({"partnumber", "uploadid"})): "UploadPart",
    ("POST", frozenset({"uploads"})): "CreateMultipartUpload",
    ("POST", frozenset({"uploadid"})): "CompleteMultipartUpload",
    ("DELETE", frozenset({"uploadid"})): "AbortMultipartUpload",
}
"""The operations by the method and the (lower-case) names of query parameters."""

IGNORED = frozenset({"x-id"})
"""Some SDKs repeat the name of the operation in the query."""

UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
OF_A_TABLE = re.compile(f"(?:.+/)?{UUID}/.+", re.DOTALL)
"""A path below the lake's data path that is in a table's `write.data.path`, which ends in its
uuid."""

OF_DUCKDB = re.compile(f"(?:.+/)?{UUID}-deletes[.](?:parquet|puffin)", re.DOTALL)
"""DuckDB writes a delete file beside the data file. None of ours and of DuckLake has such
a name."""

BESIDE_VIRTUAL = re.compile(f"{UUID}/[^/]+/{UUID}-deletes[.](?:parquet|puffin)")
"""The same beside the virtual file of a table's inlined rows: its key below that of all."""


@dataclass(frozen=True, slots=True)
class UploadPaths:
    """Where clients may upload; each is `s3://bucket/prefix/`, with a slash at its end."""

    data: str
    """The lake's data path: below it, in directories that are named by a table's uuid."""
    staging: str
    virtual: str
    """The virtual files, which may be below the data path; clients may not replace them. They may
    be in an Object Lambda access point, which passes uploads on to the bucket behind it."""

    @classmethod
    def of(cls, *, data_path: str, staging_location: str, virtual_location: str) -> "UploadPaths":
        """The paths of a lake.

        Args:
            data_path: DuckLake's option.
            staging_location: the setting, which may be empty.
            virtual_location: of all virtual files.

        Raises:
            ValueError: one of them is not in S3.
        """
        return cls(
            data=_directory(data_path),
            staging=_directory(staging_path(staging_location, data_path, "")),
            virtual=_directory(virtual_location),
        )

    def permit(self, method: str, address: S3Address) -> bool:
        """Whether a request is part of an upload to one of the paths."""
        names = address.unsigned().parameter_names() - IGNORED
        return (method, names) in UPLOADS and self.contain(address)

    def contain(self, address: S3Address) -> bool:
        """Whether clients may upload an object."""
        key = address.key_text
        if {".", ".."} & set(key.split("/")) or "\\" in key:
            return False
        location = f"s3://{address.bucket}/{key}"
        if location.startswith(self.virtual):
            return BESIDE_VIRTUAL.fullmatch(location.removeprefix(self.virtual)) is not None
        if location.startswith(self.data) and OF_DUCKDB.fullmatch(key):
            return True
        if location.startswith(self.staging):
            return location != self.staging
        of_data = location.startswith(self.data)
        return of_data and bool(OF_A_TABLE.fullmatch(location.removeprefix(self.data)))


def _directory(location: str) -> str:
    """The location with the scheme `s3` and one slash at its end."""
    found = bucket_and_key(location)
    if found is None:
        raise ValueError(f"{location} is not in S3")
    bucket, key = found
    return f"s3://{bucket}/{key}".rstrip("/") + "/"
