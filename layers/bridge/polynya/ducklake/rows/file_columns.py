"""Data files in bulk: each field holds the values of many files as one text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of n rows, one after the other."""

    lengths: str
    """Numbers of characters, separated by commas; -1 for NULL."""
    text: str


@dataclass(frozen=True, slots=True)
class FileColumns:
    """Data files column by column: numbers separated by commas, -1 for NULL."""

    data_file_id: str
    """Ascending."""
    begin_snapshot: str
    end_snapshot: str
    record_count: str
    file_size_bytes: str
    partition_id: str
    mapping_id: str
    path_is_relative: str
    is_again: str
    """1 for a file that was visible before and shows other rows now, else 0."""
    path: Texts
    row_id_start: str = ""
    """NULL for files whose rows carry their ids; empty if it was not asked for."""


@dataclass(frozen=True, slots=True)
class PartitionKeyColumn:
    """The values of one partition key, in the same form."""

    partition_key_index: int
    data_file_id: str
    partition_value: Texts


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """ColumnStats of one column, in the same form; contains_nan is 0 or 1."""

    column_id: int
    data_file_id: str
    column_size_bytes: str
    value_count: str
    null_count: str
    contains_nan: str
    min_value: Texts
    max_value: Texts
    min_is_inexact: str = ""
    max_is_inexact: str = ""
    """The data_file_ids, ascending, of which the bound is known to be no value of the column."""
