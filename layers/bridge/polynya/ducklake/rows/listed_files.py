"""Data files in pages, and sums over all of them: their sizes, and how their bounds overlap."""

from dataclasses import dataclass

from .data_files import DataFile


@dataclass(frozen=True, slots=True)
class ListedFiles:
    """A page of data files."""

    files: list[DataFile]
    total: int
    """The files of all pages."""
    rows: int
    bytes: int
    most_rows: int
    most_bytes: int


@dataclass(frozen=True, slots=True)
class SizeClass:
    """The files whose size has the same number of binary digits: [2^exponent, 2^(exponent+1))."""

    exponent: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BoundsSpan:
    """One file's bounds of a column, as places in the order of all bounds of the table."""

    data_file_id: int
    first: int
    last: int
    lower: str
    upper: str


@dataclass(frozen=True, slots=True)
class BoundsOverlap:
    """How the bounds of a column overlap."""

    spans: list[BoundsSpan]
    """Some of the files, in the order of their lower bounds."""
    files: int
    """The files that have bounds of the column."""
    places: int
    """How many different bounds there are."""
    mean_depth: float
    """How many files may hold the value that is the lower bound of a file, on average."""
    most_depth: int
