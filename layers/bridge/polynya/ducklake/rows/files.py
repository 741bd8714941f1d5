"""Data files and deletes: rows, statistics, bulk columns, conditions of filters, pages and sums.

In bulk (`FileColumns`, `StatsColumn`) a field holds the values of many files as one text. A
`Condition` selects the files that may hold rows that a filter selects.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

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
    footer_size: int | None = None


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
class GroupSums:
    """Sums over the rows of one group of data files."""

    first_id: int
    """The lowest data_file_id."""
    lifetime: Lifetime
    """From the begin of the first file to the end of the last one."""
    files: int
    hash: int
    """Sum of 64-bit hashes of the data_file_ids."""

    def __add__(self, other: "GroupSums") -> "GroupSums":
        """The sums over the rows of both, which have no row in common."""
        return GroupSums(
            min(self.first_id, other.first_id),
            self.lifetime.hull(other.lifetime),
            self.files + other.files,
            self.hash + other.hash,
        )


@dataclass(frozen=True, slots=True)
class FileGroups:
    """Sums over the rows of all data files of a table."""

    sums: dict[FileGroup, GroupSums]
    has_partial: bool
    """Some files hold rows of snapshots later than their own."""
    has_faults: bool
    """Some files cannot be served: another format, encrypted, or broken catalog rows."""
    has_later: bool
    """Some files begin or end, or hold rows, after the snapshot of the reader."""
    has_added: bool
    """Some files have a name mapping or an absolute path: the same file may occur twice, unlike
    files to which DuckLake gives names of its own."""

    @property
    def lifetimes(self) -> dict[FileGroup, Lifetime]:
        """The lifetimes of the groups, in the order of their oldest files."""
        groups = sorted(self.sums.items(), key=lambda item: item[1].first_id)
        return {group: sums.lifetime for group, sums in groups}

    @property
    def files(self) -> int:
        """The number of rows."""
        return sum(sums.files for sums in self.sums.values())

    @property
    def hash(self) -> int:
        """Sum of 64-bit hashes of the data_file_ids."""
        return sum(sums.hash for sums in self.sums.values())

    def apart_from(self, partition_id: int) -> int:
        """How many files have another partitioning."""
        return sum(
            sums.files for group, sums in self.sums.items() if group.partition_id != partition_id
        )

    def __add__(self, other: "FileGroups") -> "FileGroups":
        """The sums over the rows of both, which have no row in common."""
        both = self.sums.keys() & other.sums.keys()
        return FileGroups(
            self.sums
            | other.sums
            | {group: self.sums[group] + other.sums[group] for group in both},
            self.has_partial or other.has_partial,
            self.has_faults or other.has_faults,
            self.has_later or other.has_later,
            self.has_added or other.has_added,
        )


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
    """NULL for files whose rows carry their ids; empty if it was not read."""
    footer_size: str = ""
    """Empty if it was not read."""


@dataclass(frozen=True, slots=True)
class PartitionKeyColumn:
    """The values of one partition key, in the form of `FileColumns`."""

    partition_key_index: int
    data_file_id: str
    partition_value: Texts


@dataclass(frozen=True, slots=True)
class StatsColumn:
    """`ColumnStats` of one column, in the form of `FileColumns`; contains_nan is 0 or 1."""

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
    """The ids of the files whose bound is known to be no value of the column, ascending."""


class ChunkColumns(NamedTuple):
    """The data files of one chunk, column by column."""

    files: FileColumns
    partition_keys: list[PartitionKeyColumn]
    stats: list[StatsColumn]
    """By column_id, ascending."""


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """One key of a partitioning."""

    partition_id: int
    partition_key_index: int


@dataclass(frozen=True, slots=True)
class FilteredColumn:
    """A column whose statistics a filter needs."""

    column_id: int
    counts_since: int
    """Older files do not have the column."""
    form: str | None = None
    """How the texts of its bounds are read and ordered (`types`); None: they are not comparable."""
    bounds_since: int = 0
    """The bounds of older files are those of another type."""
    key: PartitionKey | None = None
    """The key that holds the one value of the column in each file; None: not all have one."""
    lacking: tuple[int, ...] = ()
    """The mapping_ids of files that do not have the column, whatever the catalog has for it."""


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """A test of whether a file may hold a row with a certain value of a column."""

    column: FilteredColumn
    operation: str
    """`is-null`, `not-null`, `is-nan`; `lt`, `lt-eq`, `gt`, `gt-eq`, `in`, `not-in`, `starts-with`,
    `not-starts-with`; `one-of`: `in`, for files of one value only."""
    values: tuple[str, ...] = ()
    """In the form of the column; one, or any number for `in`, `not-in` and `one-of`."""


@dataclass(frozen=True, slots=True)
class PartitionTest:
    """A test of whether a file is in the partition of one of some whole numbers."""

    key: PartitionKey
    values: tuple[int, ...]
    buckets: int
    """The numbers are below it."""


@dataclass(frozen=True, slots=True)
class AllOf:
    """Files that fulfil all of the conditions."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Files that fulfil one of the conditions."""

    parts: tuple["Condition", ...]


Condition = ColumnTest | PartitionTest | AllOf | AnyOf

EVERY_FILE = AllOf(())


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file that a scan may need, and its place among all of them, from 1 on."""

    place: int
    file: DataFile


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
    # Not in the representation, from which the names of virtual files are made.
    delete_count: int = field(repr=False)
    file_size_bytes: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class InlinedDelete:
    """A row of ducklake_inlined_delete_<table_id>: one deleted row of a data file."""

    data_file_id: int
    position: int | None
    """None in broken rows."""
    begin_snapshot: int


@dataclass(frozen=True, slots=True)
class Event:
    """Sums over the rows of one table that begin (`sign` 1) or end (-1) at one snapshot."""

    snapshot_id: int
    kind: str
    """One of `queries.lifetimes.KINDS`."""
    sign: int
    files: int
    rows: int
    bytes: int
    hash: int
    """Sum of 64-bit hashes: equal for equal sets of rows, in any order."""
    past: int = 0
    """Sum of 64-bit hashes of the rows that ended, and when."""


@dataclass(frozen=True, slots=True)
class ChunkSum:
    """The visible rows at a snapshot, of one kind, in one chunk and one group of data files."""

    kind: str
    """One of `queries.lifetimes.KINDS`."""
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
class AssignedRowIds:
    """The row ids of the data files and inlined rows that began at one snapshot."""

    begin_snapshot: int
    first: int | None
    """The lowest id that it gave to a new file; None if the catalog has no such file."""
    end: int
    """All ids in the catalog are lower."""
    has_unnamed: bool
    """Some rows carry ids that the catalog does not name; these were given before."""


@dataclass(frozen=True, slots=True)
class TableColumnStats:
    """A row of ducklake_table_column_stats.

    DuckDB's optimizer relies on it: a bound that is too narrow silently loses rows.
    """

    column_id: int
    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    min_is_exact: bool | None = None
    """Whether the bound is a value that the column has, or had; None: not known."""
    max_is_exact: bool | None = None
    extra_stats: str | None = None
    """The box and the types of geometries, or the shape of variants, as JSON."""


def rows_until(file: DataFile, snapshot_id: int) -> int:
    """The number of rows, from the beginning of the file, that existed at the snapshot."""
    rows = 0
    for snapshot, rows_so_far in _parts(file):
        if snapshot <= snapshot_id:
            rows = rows_so_far
    return rows


def snapshots_of_rows(file: DataFile) -> list[int]:
    """The snapshot of each row, in the order of the rows."""
    snapshots: list[int] = []
    for snapshot, rows_so_far in _parts(file):
        snapshots += [snapshot] * (rows_so_far - len(snapshots))
    return snapshots


def _parts(file: DataFile) -> Iterator[tuple[int, int]]:
    """The parts of `partial_file_info`, which reads 'snapshot:rows so far|…', ascending."""
    for part in (file.partial_file_info or "").split("|"):
        snapshot, _, rows_so_far = part.partition(":")
        yield int(snapshot), int(rows_so_far)
