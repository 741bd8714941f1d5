"""Conditions on the statistics of data files: which files may hold rows that a filter selects."""

from dataclasses import dataclass

from .data_files import DataFile

FORMS = frozenset(
    {
        *("boolean", "integer", "decimal", "float", "double"),
        *("string", "binary", "date", "time", "timestamp", "timestamptz"),
    }
)
"""How the texts of bounds, and the values that they are compared with, are read and ordered."""


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
    """One of `FORMS`; None: its bounds are not comparable."""
    bounds_since: int = 0
    """The bounds of older files are those of another type."""
    key: PartitionKey | None = None
    """Where every file has its one value of the column; None: not all have one."""


@dataclass(frozen=True, slots=True)
class ColumnTest:
    """Whether a file may hold a row whose value of a column passes a test."""

    column: FilteredColumn
    operation: str
    """`is-null`, `not-null`, `is-nan`; `lt`, `lt-eq`, `gt`, `gt-eq`, `in`, `not-in`, `starts-with`,
    `not-starts-with`; `one-of`: `in`, for files of one value only."""
    values: tuple[str, ...] = ()
    """In the form of the column; one, or any number for `in`, `not-in` and `one-of`."""


@dataclass(frozen=True, slots=True)
class PartitionTest:
    """Whether a file of a partitioning may hold a row of some whole numbers."""

    key: PartitionKey
    values: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Files that fulfil all of the conditions."""

    parts: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Files that fulfil one of the conditions."""

    parts: tuple["Condition", ...]


Condition = ColumnTest | PartitionTest | AllOf | AnyOf

EVERY_FILE, NO_FILE = AllOf(()), AnyOf(())


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file that a scan may need, and its place among all of them, from 1 on."""

    place: int
    file: DataFile
