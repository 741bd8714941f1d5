"""The data files of a table at a snapshot: sizes, partitions, bounds, deletes."""

from dataclasses import dataclass

from pg8000.native import Connection
from polynya.ducklake.history import state_at
from polynya.ducklake.queries.listing.data_files import listed_files, size_classes
from polynya.ducklake.queries.listing.overlaps import NO_OVERLAP, overlap
from polynya.ducklake.rows.listed_files import BoundsOverlap, SizeClass
from polynya.errors import BadRequest
from polynya.translate.planning.filtered_columns import form_of

from ..generator import Generator
from ..paging import Paging
from ..row_counts import Counts
from .columns import ColumnLine, columns_at
from .file_lines import FileLine, file_lines
from .opened import TableAt, TableHead, Wanted, open_at

PAGE_SIZE = 50
MOST_UNASKED = 20_000
"""The bounds of more files are read only if a column is asked for: that takes seconds."""
MOST_SPANS = 160
"""How many files the picture of the bounds has."""


@dataclass(frozen=True, slots=True)
class FilesWanted:
    """Which files of a table are shown."""

    order: str = "newest"
    page: int = 1
    column: str = ""
    """The dotted name of the column whose bounds are shown; empty: the first that has some."""


@dataclass(frozen=True, slots=True)
class FilesReport:
    """A page of the files of a table, and sums over all of them."""

    head: TableHead
    counts: Counts
    order: str
    paging: Paging
    most_bytes: int
    most_rows: int
    files: list[FileLine]
    sizes: list[SizeClass]
    columns: list[str]
    """The dotted names of the columns whose bounds can be compared."""
    column: str
    overlap: BoundsOverlap
    """Of the chosen column."""
    is_overlap_read: bool


def files_report(
    generator: Generator, con: Connection, wanted: Wanted, files: FilesWanted
) -> FilesReport:
    """Read a page of files.

    Raises:
        NoSuchTable: the lake has none of this name at the snapshot.
        BadRequest: there is no such page or column.
    """
    table = open_at(generator, con, wanted, limit=1)
    columns = _comparable(table)
    chosen = _chosen(columns, files.column)
    table_id = table.files.history.table.table_id
    first = (files.page - 1) * PAGE_SIZE
    found = listed_files(table.lake, table_id, table.at, files.order, first, PAGE_SIZE).run(con)
    rows = table.row_counts(generator)
    counts = rows.counts(table.at, state_at(table.files.history.events, table.at))
    paging = Paging(files.page, PAGE_SIZE, found.total if found.files else counts.files)
    paging.check()
    is_read = bool(files.column) or counts.files <= MOST_UNASKED
    return FilesReport(
        head=table.head,
        counts=counts,
        order=files.order,
        paging=paging,
        most_bytes=found.most_bytes,
        most_rows=found.most_rows,
        files=file_lines(table, found.files, table.at, rows, chosen.column_id if chosen else None),
        sizes=size_classes(table_id, table.at).run(con),
        columns=[column.path for column in columns],
        column=chosen.path if chosen else "",
        overlap=_overlap(table, chosen) if chosen and is_read else NO_OVERLAP,
        is_overlap_read=is_read,
    )


def _comparable(table: TableAt) -> list[ColumnLine]:
    """The columns for which Iceberg clients skip files by bounds; none is in a list or a map."""
    found, inside = [], set()
    for column in columns_at(table.files.table, table.at):
        if column.type in ("list", "map"):
            inside.add(f"{column.path}.")
        is_inside = any(column.path.startswith(path) for path in inside)
        if form_of(column.iceberg_type) and not is_inside:
            found.append(column)
    return found


def _chosen(columns: list[ColumnLine], path: str) -> ColumnLine | None:
    if not path:
        return columns[0] if columns else None
    found = [column for column in columns if column.path == path]
    if not found:
        raise BadRequest(f"the table has no column {path} whose bounds can be compared")
    return found[0]


def _overlap(table: TableAt, column: ColumnLine) -> BoundsOverlap:
    form = form_of(column.iceberg_type)
    assert form is not None
    at = (table.files.history.table.table_id, column.column_id, form, table.at, MOST_SPANS)
    return overlap(table.lake, *at).run(table.con)
