"""Rows of what the page and the commands show of a lake."""

from dataclasses import dataclass
from datetime import datetime

from polynya.ducklake.rows.files import DataFile, DeleteFile
from polynya.ducklake.rows.lifetimes import is_visible


@dataclass(frozen=True, slots=True)
class Entry:
    """A table or a view, with the sums over its data files at the snapshot."""

    kind: str
    """`table` or `view`."""
    object_id: int
    namespace: str
    """All levels of its schema's name, as people write them."""
    name: str
    files: int
    rows: int
    """The rows of the data files, deleted ones included."""
    bytes: int
    changed_at: int
    """The newest snapshot at which it was named, or a data file of it began or ended."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """A schema, and what is directly in it."""

    name: str
    """All of its levels, as people write them."""
    tables: int
    views: int


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The first schemas of a lake, and the numbers of tables and views in all of them."""

    first: list[Namespace]
    tables: int
    views: int


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all entries, not only those of one page."""

    entries: int
    files: int
    bytes: int
    most_rows: int
    """The most rows that data files of an entry have; it may have fewer live ones."""
    most_bytes: int


@dataclass(frozen=True, slots=True)
class UncertainFiles:
    """Data files of which the catalog does not know how many rows are live."""

    begin_snapshot: int
    end_snapshot: int | None
    """The first snapshot at which the catalog knows it again; None: there is none."""
    files: int
    data_file_ids: tuple[int, ...]
    """The first ones."""

    def is_at(self, snapshot_id: int) -> bool:
        """Whether the live rows are uncertain at a snapshot."""
        return is_visible(self.begin_snapshot, self.end_snapshot, snapshot_id)


@dataclass(frozen=True, slots=True)
class StoredDeletes:
    """A delete file, and the snapshot from which on it is not visible."""

    end_snapshot: int | None
    """None: there is none."""
    file: DeleteFile

    def visible_at(self, snapshot_id: int) -> bool:
        """Whether a snapshot shows it."""
        return is_visible(self.file.begin_snapshot, self.end_snapshot, snapshot_id)


@dataclass(frozen=True, slots=True)
class FileBatch:
    """Visible data files of a table with the same origin."""

    begin_snapshot: int
    """The newest change before them."""
    partition_id: int | None
    mapping_id: int | None
    """None, except for files that ducklake_add_data_files added."""
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MergeableFiles:
    """Live files of a table with the same columns and partition."""

    layout: int
    """How many times the columns had changed before."""
    partition_id: int | None
    partition: str
    """Its values as a text."""
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class FileWithDeletes:
    """A live data file with deleted rows."""

    begin_snapshot: int
    partition_id: int | None
    partition: str
    """Its values as a text."""
    rows: int
    """Deleted ones included."""
    bytes: int
    deleted: int
    delete_files: int
    inlined: int
    """Deletes that are in the catalog's database, in no file."""


@dataclass(frozen=True, slots=True)
class Expirable:
    """What an expiry of snapshots would remove."""

    snapshots: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class LakeSize:
    """The live data files of all tables at a snapshot."""

    snapshot_id: int
    time: datetime
    rows: int
    """Deleted ones included."""
    files: int
    bytes: int


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
