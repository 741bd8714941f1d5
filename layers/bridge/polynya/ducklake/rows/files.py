"""Data files, their statistics, and groups of them."""

from dataclasses import dataclass

from .lifetimes import Lifetime


@dataclass(frozen=True, slots=True)
class DataFile:
    """A row of ducklake_data_file."""

    data_file_id: int
    begin_snapshot: int
    end_snapshot: int | None
    path: str
    path_is_relative: bool
    record_count: int
    file_size_bytes: int
    partial_max: int | None
    """The newest snapshot whose rows a merged or flushed file holds."""
    partial_file_info: str | None
    """Until version 0.4: 'snapshot:rows so far|…', the rows are in the order of snapshots."""
    partition_id: int | None
    mapping_id: int | None
    """None, except for a file that ducklake_add_data_files added."""
    row_id_start: int | None = None
    """The row id of the first row; None: the rows carry their ids."""


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file that has not ended."""

    data_file_id: int
    path: str
    path_is_relative: bool
    record_count: int


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """A row of ducklake_file_column_stats: statistics of one column in one data file."""

    data_file_id: int
    column_id: int
    column_size_bytes: int | None
    value_count: int | None
    """Without NULLs (num_values - num_nulls), unlike DuckLake's documentation says."""
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Data files with the same partitioning and the same name mapping."""

    partition_id: int | None
    mapping_id: int | None


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Facts about all data files of a table."""

    lifetimes: dict[FileGroup, Lifetime]
    has_partial: bool
    """Some files hold rows of snapshots later than their own."""
    has_faults: bool
    """Some files cannot be served: another format, encrypted, or broken catalog rows."""
