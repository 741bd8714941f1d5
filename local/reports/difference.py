"""The difference of two snapshots of a table: files, rows and columns."""

from dataclasses import dataclass, replace

from pg8000.native import Connection
from polynya.ducklake.queries.listed_files import listed_files

from .changes import SnapshotReport, snapshot_of
from .columns import ColumnLine, columns_at
from .data_files import FileLine, file_lines
from .generator import Generator, OpenedTable
from .lake import Paging
from .opened_table import TableHead, TableRef, open_at
from .row_counts import Counts
from .table_history import SnapshotSummary, snapshot_summaries

PAGE_SIZE = 25
NOTHING = Counts(rows=0, files=0, bytes=0, inlined=0, deleted=0)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column that is not the same."""

    kind: str
    """`added`, `dropped`, `altered`."""
    before: ColumnLine | None
    after: ColumnLine | None
    what: list[str]
    """What was altered: `name`, `type`, `comment`, `default`, …"""


@dataclass(frozen=True, slots=True)
class FileList:
    """A page of files that only one of the snapshots has, and the sums of all of them."""

    files: list[FileLine]
    paging: Paging
    rows: int | None
    """Deleted ones included; None: only the files say, and they were not read."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not the same at two snapshots."""

    head: TableHead
    before: SnapshotReport
    after: SnapshotReport
    counts_before: Counts
    counts_after: Counts
    existed: bool
    """Whether the table existed at the first snapshot."""
    columns: list[ColumnChange]
    added: FileList
    removed: FileList
    snapshots: list[SnapshotSummary]
    """The newest snapshots between them that touched the table, oldest first."""
    has_more_snapshots: bool


def difference(
    generator: Generator, con: Connection, ref: TableRef, before: int, after: int, page: int = 1
) -> Difference:
    """Compare a table with itself.

    Args:
        ref: the table by its name at the later snapshot.
        page: of both lists of files.

    Raises:
        NoSuchTable: the lake has no such snapshot, or no such table at the later one.
    """
    later = max(before, after)
    table, head = open_at(generator, con, replace(ref, snapshot_id=later))
    shown = snapshot_summaries(table)
    between = [snapshot for snapshot in shown if min(before, after) < snapshot.snapshot_id <= later]
    begin = table.history.table.begin_snapshot
    return Difference(
        head=head,
        before=snapshot_of(con, table.lake, before),
        after=snapshot_of(con, table.lake, after),
        counts_before=_counts(table, before),
        counts_after=_counts(table, after),
        existed=before >= begin,
        columns=_columns(_lines(table, before), _lines(table, after)),
        added=_files(table, after, before, page),
        removed=_files(table, before, after, page),
        snapshots=between,
        has_more_snapshots=bool(shown) and shown[0].snapshot_id > max(min(before, after), begin),
    )


def _counts(table: OpenedTable, snapshot_id: int) -> Counts:
    existed = snapshot_id >= table.history.table.begin_snapshot
    return table.at(snapshot_id, limit=1).counts() if existed else NOTHING


def _lines(table: OpenedTable, snapshot_id: int) -> list[ColumnLine]:
    existed = snapshot_id >= table.history.table.begin_snapshot
    return columns_at(table.files.table, snapshot_id) if existed else []


def _columns(before: list[ColumnLine], after: list[ColumnLine]) -> list[ColumnChange]:
    old, new = ({column.column_id: column for column in lines} for lines in (before, after))
    dropped = [
        ColumnChange("dropped", column, None, [])
        for column in before
        if column.column_id not in new
    ]
    changes = [_column(old.get(column.column_id), column) for column in after]
    return [*(column for column in changes if column), *dropped]


def _column(before: ColumnLine | None, after: ColumnLine) -> ColumnChange | None:
    if before is None:
        return ColumnChange("added", None, after, [])
    pairs = {
        "name": (before.name, after.name),
        "type": (before.type, after.type),
        "NOT NULL": (before.is_nullable, after.is_nullable),
        "for Iceberg clients": (before.iceberg_type, after.iceberg_type),
    }
    altered = [name for name, (old, new) in pairs.items() if old != new]
    return ColumnChange("altered", before, after, altered) if altered else None


def _files(table: OpenedTable, snapshot_id: int, but_of: int, page: int) -> FileList:
    first = (page - 1) * PAGE_SIZE
    listing = listed_files(
        table.lake, table.table_id, snapshot_id, "newest", first, PAGE_SIZE, but_of=but_of
    ).run(table.con)
    counts, paging = table.row_counts([snapshot_id]), Paging(page, PAGE_SIZE, listing.total)
    lines = file_lines(table, listing.files, snapshot_id, counts)
    rows = (
        _sum(lines)
        if paging.pages == 1
        else listing.rows
        if counts.is_certain(snapshot_id)
        else None
    )
    return FileList(lines, paging, rows, listing.bytes)


def _sum(lines: list[FileLine]) -> int | None:
    rows = [line.rows for line in lines if line.rows is not None]
    return sum(rows) if len(rows) == len(lines) else None
