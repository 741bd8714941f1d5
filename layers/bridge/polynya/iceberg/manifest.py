"""Manifest lists, manifests and their entries as records, in the specification's words.

https://iceberg.apache.org/spec/#manifests
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any


class ManifestContent(IntEnum):
    """Field 517, `content`, of a manifest list."""

    DATA = 0
    DELETES = 1


class FileContent(IntEnum):
    """Field 134, `content`, of a data file."""

    DATA = 0
    POSITION_DELETES = 1


class Status(IntEnum):
    """Field 0, `status`, of a manifest entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file or a position delete file; statistics by field id, absent if not certain."""

    content: FileContent
    file_path: str
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    referenced_data_file: str | None = None
    partition: tuple[Any, ...] = ()
    """One value for each field of the spec."""
    first_row_id: int | None = None
    """The row id of its first row; None: its rows carry their ids, or have none."""


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """An entry of a manifest."""

    status: Status
    snapshot_id: int
    sequence_number: int
    file_sequence_number: int
    data_file: DataFile


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """An entry of a manifest list."""

    manifest_path: str
    manifest_length: int
    content: ManifestContent
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files_count: int = 0
    existing_files_count: int = 0
    deleted_files_count: int = 0
    added_rows_count: int = 0
    existing_rows_count: int = 0
    deleted_rows_count: int = 0
    partition_spec_id: int = 0
    partitions: list[dict[str, Any]] | None = None
    """A summary of the values of each partition field; None: unpartitioned."""
    first_row_id: int | None = None
    """Of data manifests of format version 3: clients ignore the row ids of files without it."""

    @property
    def has_entries(self) -> bool:
        """Whether the manifest has any entry."""
        return self.added_files_count + self.existing_files_count + self.deleted_files_count > 0
