"""What DuckLake's metadata tables hold, one record per table, columns under their own names.

The order of the fields is the order of the SELECT in `queries`, so that `Row(*row)` is the whole
mapping. DuckLake specification, "Tables": https://ducklake.select/docs/stable/specification/tables
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Lake:
    """The lake as a whole: options, newest snapshot, layout of the metadata tables."""

    version: str
    data_path: str
    encrypted: bool
    snapshot_id: int
    layout: frozenset[str]
    """`table.column` of the metadata tables whose columns differ between catalog versions."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A row of ducklake_schema."""

    schema_id: int
    schema_name: str
    path: str
    path_is_relative: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A row of ducklake_table."""

    table_id: int
    table_uuid: str
    begin_snapshot: int
    """When the table began, not its newest name: the smallest of all rows with this table_id."""
    end_snapshot: int | None
    schema_id: int
    table_name: str
    path: str
    path_is_relative: bool


@dataclass(frozen=True, slots=True)
class View:
    """A row of ducklake_view."""

    view_id: int
    view_uuid: str
    begin_snapshot: int
    """When this text and name began: a view that is altered or renamed has several rows."""
    begin_time: datetime | None
    """When that snapshot was made; None if it has expired."""
    view_name: str
    dialect: str
    sql: str


@dataclass(frozen=True, slots=True)
class NameNow:
    """The newest name of a table or a view."""

    kind: str
    """`table` or `view`."""
    object_id: int
    schema_id: int
    schema_name: str
    name: str


@dataclass(frozen=True, slots=True)
class SortKey:
    """A row of ducklake_sort_expression."""

    expression: str
    sort_direction: str
    null_order: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A row of ducklake_tag or ducklake_column_tag."""

    object_id: int
    """The table or view; in a column tag the column."""
    key: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Column:
    """A row of ducklake_column: one version of a column."""

    column_id: int
    begin_snapshot: int
    end_snapshot: int | None
    column_name: str
    column_type: str
    initial_default: str | None
    parent_column: int | None

    def visible_at(self, snapshot_id: int) -> bool:
        """Whether this version of the column is visible at a snapshot."""
        ended = self.end_snapshot is not None and self.end_snapshot <= snapshot_id
        return self.begin_snapshot <= snapshot_id and not ended


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A row of ducklake_snapshot, with its row of ducklake_snapshot_changes."""

    snapshot_id: int
    snapshot_time: datetime
    changes_made: str


@dataclass(frozen=True, slots=True)
class Event:
    """Sums over the rows of one table that begin (`sign` 1) or end (-1) at one snapshot."""

    snapshot_id: int
    kind: str
    """One of `lifetimes.KINDS`."""
    sign: int
    files: int
    rows: int
    bytes: int
    hash: int
    """Sum of 64-bit hashes: equal for equal sets of rows, in any order."""
    past: int = 0
    """Sum of 64-bit hashes of the rows that ended, and when."""


@dataclass(frozen=True, slots=True)
class UnservableRange:
    """A table cannot be shown exactly as it was at a snapshot in [begin_snapshot, end_snapshot)."""

    begin_snapshot: int
    end_snapshot: int | None
    reason: str


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


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Data files with the same partitioning and the same name mapping."""

    partition_id: int | None
    mapping_id: int | None


class Lifetime(NamedTuple):
    """The snapshots at which something is visible: [begin_snapshot, end_snapshot)."""

    begin_snapshot: int
    end_snapshot: int | None

    def intersection(self, other: "Lifetime") -> "Lifetime | None":
        """The snapshots of both; None if there are none."""
        begin = max(self.begin_snapshot, other.begin_snapshot)
        ends = [end for end in (self.end_snapshot, other.end_snapshot) if end is not None]
        return None if ends and min(ends) <= begin else Lifetime(begin, min(ends, default=None))


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Facts about all data files of a table."""

    lifetimes: dict[FileGroup, Lifetime]
    has_partial: bool
    """Some files hold rows of snapshots later than their own."""
    has_faults: bool
    """Some files cannot be served: another format, encrypted, or broken catalog rows."""


@dataclass(frozen=True, slots=True)
class ChunkSum:
    """What is visible at a snapshot: of one kind, in one chunk and one group of data files."""

    kind: str
    """One of `lifetimes.KINDS`."""
    first_id: int
    last_id: int
    """The data_file_ids of the chunk, both included."""
    version: int
    """The last snapshot, up to the requested one, at which a row of this kind began or ended."""
    group: FileGroup
    files: int
    hash: int
    """Sum of 64-bit hashes of the visible rows."""
    ended: int
    """Sum of 64-bit hashes of the rows that ended at `version`."""


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """A row of ducklake_partition_column."""

    partition_key_index: int
    column_id: int
    transform: str


@dataclass(frozen=True, slots=True)
class MappedName:
    """A row of ducklake_name_mapping: a column in the files that were added with the mapping."""

    mapping_id: int
    column_id: int
    """An ordinal within the mapping, to which `parent_column` refers; no column of the table."""
    source_name: str
    target_field_id: int
    parent_column: int | None
    is_partition: bool | None
    """Its value is in the path of the files (`part=1/…`), not in the files."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the files of a table are partitioned, now and before."""

    columns: Mapping[int | None, Sequence[PartitionColumn]]
    """By partition_id."""
    column_types: Mapping[int, frozenset[str]]
    """Every type that a column ever had, by column_id."""
    constants: Mapping[int | None, Sequence[int]]
    """Columns whose values are in the paths of the files, by mapping_id."""
    groups: Mapping[FileGroup, Lifetime]
    """From the begin of a group's first file to the end of its last; ordered by oldest file."""
    current: int | None
    """The partition_id of new files."""


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
    path: Texts


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


@dataclass(frozen=True, slots=True)
class DeleteFile:
    """A row of ducklake_delete_file."""

    delete_file_id: int
    data_file_id: int
    begin_snapshot: int
    path: str
    path_is_relative: bool
    format: str
    """`parquet`, or `puffin`: a deletion vector."""
    partial_max: int | None


@dataclass(frozen=True, slots=True)
class InlinedDelete:
    """A row of ducklake_inlined_delete_<table_id>: one deleted row of a data file."""

    data_file_id: int
    position: int
    begin_snapshot: int


@dataclass(frozen=True, slots=True)
class InlinedTable:
    """A PostgreSQL table of inlined rows, with the user's column names of its schema version.

    The schema version is that of the snapshot that made the table, if that made no other.
    """

    table_name: str
    schema_version: int
    schema_begin: int
    """The first snapshot that can have made the table. The table has the columns of its maker."""
    schema_until: int | None
    """The last such snapshot; None for the newest. Equal to the first if the catalog names it."""
    system_columns: tuple[str, str, str]
    """row_id, begin_snapshot, end_snapshot; their names differ between catalog versions."""
    user_columns: tuple[str, ...]
    user_types: tuple[str, ...]
    """The names of their types in PostgreSQL."""

    @property
    def binary_columns(self) -> frozenset[str]:
        """The columns that PostgreSQL holds as bytea: varchar, json (as UTF-8) and blob."""
        types = zip(self.user_columns, self.user_types, strict=True)
        return frozenset(name for name, type_ in types if type_ == "bytea")


MOST_BYTES = 63
"""PostgreSQL cuts longer names."""


def postgres_name(name: str | None) -> str:
    """A name as PostgreSQL stores it: cut after 63 bytes."""
    return (name or "").encode()[:MOST_BYTES].decode(errors="ignore")


@dataclass(frozen=True, slots=True)
class InlinedOrigin:
    """Snapshots around the one that made an inlined table; None for those that do not exist."""

    before: int | None
    """The newest snapshot of an earlier schema version."""
    same: int | None
    """The oldest snapshot of its own schema version."""
    after: int | None
    """The oldest snapshot of a later schema version."""
    first_row: int | None
    """When the oldest of its rows began; None if it has no rows."""
    last_row: int | None
    """When the last of its rows ended; None if some rows are live."""


@dataclass(frozen=True, slots=True)
class Inlined:
    """Where a table's inlined rows and inlined deletes are in PostgreSQL."""

    tables: tuple[InlinedTable, ...]
    delete_columns: tuple[str, ...]
    """Columns of ducklake_inlined_delete_<table_id>: data file, position, begin. Empty if the table
    does not exist."""
