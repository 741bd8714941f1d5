"""The difference between two snapshots of a table: files, columns, and the question for rows."""

from dataclasses import dataclass, replace

from pg8000.native import Connection
from polynya.ducklake.queries.snapshot_changes import named
from polynya.ducklake.rows.listing import Change, NamedFrom
from polynya.ducklake.rows.objects import changes_of
from polynya.runtime.errors import NoSuchTable
from polynya.runtime.namespaces import parsed

from ..queries.lake_snapshots import changes, changes_at, spans
from ..queries.listed_files import listed_files
from .advice import undo
from .changed_rows import ChangesAnswer, ChangesQuestion, Span, TableAt
from .changes import GROUPS, SnapshotReport, snapshot_of, snapshot_reports
from .columns import ColumnLine, columns_at
from .data_files import FileLine, file_lines
from .findings import TableName
from .generator import Generator, OpenedTable, served_lake
from .lake import Paging
from .manifests import changed_paths
from .opened_table import TableHead, TableRef, open_at
from .row_counts import Counts
from .table_history import SnapshotSummary, snapshot_summaries

PAGE_SIZE = 25
NOTHING = Counts(rows=0, files=0, bytes=0, inlined=0, deleted=0)


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A column that differs."""

    kind: str
    """`added`, `dropped`, `altered`."""
    before: ColumnLine | None
    after: ColumnLine | None
    what: list[str]
    """What was altered: `name`, `type`, `NOT NULL`, `for Iceberg clients` (its type for them)."""


@dataclass(frozen=True, slots=True)
class FileList:
    """A page of files that only one of the snapshots has, and the sums of all of them."""

    files: list[FileLine]
    paging: Paging
    rows: int | None
    """Deleted ones included; None: only the files tell, and they were not read."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two snapshots of a table."""

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
    also_changed: list[TableName]
    """Other tables whose rows the shown snapshots changed, too."""
    kind: str
    """Which changed rows are shown, one of `changed_rows.KINDS`; empty: all."""
    rows: ChangesAnswer | None = None
    """The rows that changed; None: they are being read."""
    is_done: bool = False
    """Whether the rows were read."""
    undo: str = ""
    """The statements for DuckLake that undo the changes to the rows in between."""
    agree: bool | None = None
    """Whether DuckLake's feed and Iceberg's entries have the same rows; None: not known."""


def difference(
    generator: Generator,
    con: Connection,
    ref: TableRef,
    before: int | None,
    after: int,
    page: int = 1,
    kind: str = "",
) -> tuple[Difference, ChangesQuestion]:
    """The difference between two snapshots without its rows, and the question for these.

    Args:
        ref: the table by its name at the later snapshot.
        before: None: the one before `after`.
        page: of both lists of files.
        kind: which changed rows are shown, one of `changed_rows.KINDS`; empty: all.

    Raises:
        NoSuchTable: the lake has no such snapshot, or no such table at the later one.
    """
    before = _previous_snapshot(con, after) if before is None else before
    later = max(before, after)
    table, head = open_at(generator, con, replace(ref, snapshot_id=later))
    shown = snapshot_summaries(table)
    between = [snapshot for snapshot in shown if min(before, after) < snapshot.snapshot_id <= later]
    begin = table.history.table.begin_snapshot
    has_more = bool(shown) and shown[0].snapshot_id > max(min(before, after), begin)
    report = Difference(
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
        has_more_snapshots=has_more,
        also_changed=_also_changed(table, between),
        kind=kind,
    )
    question = _question(table, head, min(before, after), kind)
    return replace(report, undo=undo(table, min(before, after), question)), question


def _previous_snapshot(con: Connection, snapshot_id: int) -> int:
    """The last snapshot before this one."""
    for change in changes(served_lake(con), snapshot_id - 1, 1).run(con):
        return change.snapshot_id
    raise NoSuchTable(f"the lake has no snapshot before {snapshot_id}, or it has expired")


def _also_changed(table: OpenedTable, snapshots: list[SnapshotSummary]) -> list[TableName]:
    rows = changes_at(table.lake, [snapshot.snapshot_id for snapshot in snapshots]).run(table.con)
    changed = {
        change.object_id: TableName(change.namespace, change.table)
        for report in snapshot_reports(table.con, table.lake, rows)
        for change in report.changes
        if change.kind in GROUPS["rows"] and change.object_kind == "table"
    }
    return [name for object_id, name in changed.items() if object_id != table.table_id]


def _question(table: OpenedTable, head: TableHead, before: int, kind: str) -> ChangesQuestion:
    """The question for the rows that changed between `before` and the table's snapshot."""
    begin = table.history.table.begin_snapshot
    after = TableAt(parsed(head.namespace), head.name, head.snapshot.snapshot_id)
    names = named([table.table_id], [], after.snapshot).run(table.con)
    maintenance = changes(
        *(table.lake, after.snapshot, MOST_REWRITES),
        after=before,
        kinds=GROUPS["maintenance"],
        table=([table.table_id], (head.name,)),
    ).run(table.con)
    rewrites = [
        change.snapshot_id for change in maintenance if not _changes_rows(change, table.table_id)
    ]
    since = max(before, begin - 1)
    bounds = spans(since, after.snapshot, rewrites).run(table.con)
    left = sum(number for _, _, number in bounds) + sum(id_ > since for id_ in rewrites)
    rows = changes(
        *(table.lake, after.snapshot, MOST_STEPS + 1),
        after=since,
        kinds=GROUPS["rows"],
        table=([table.table_id], (head.name,)),
    ).run(table.con)
    steps = sorted(change.snapshot_id for change in rows)

    def span(first: int, last: int) -> Span:
        return Span(first, _named_at(names, last) or after._replace(snapshot=last))

    return ChangesQuestion(
        after=after,
        before=_named_at(names, before) if before >= begin else None,
        spans=tuple(span(first, last) for first, last, _ in bounds),
        steps=tuple(span(id_, id_) for id_ in steps) if len(steps) <= MOST_STEPS else (),
        rewrites=tuple(rewrites),
        expired=after.snapshot - since - left,
        kind=kind,
        columns=_shared_columns(table, before) if table.is_served else (),
        hidden=frozenset(table.hidden_columns) if table.is_served else frozenset(),
    )


MOST_REWRITES = 1000


def _named_at(names: list[NamedFrom], snapshot_id: int) -> TableAt | None:
    """The table by the name that it had at a snapshot; None: the catalog no longer has one."""
    visible = [naming for naming in names if naming.visible_at(snapshot_id)]
    return TableAt(visible[-1].names[:-1], visible[-1].name, snapshot_id) if visible else None


def _changes_rows(change: Change, table_id: int) -> bool:
    """Whether a snapshot changed rows, rather than only moving some."""
    return bool(changes_of(change.changes_made, table_id).intersection(GROUPS["rows"]))


def _shared_columns(table: OpenedTable, before: int) -> tuple[tuple[str, str], ...]:
    """The names, after and before, of columns that both snapshots have with the same fields."""

    def shapes(lines: list[ColumnLine]) -> dict[int, tuple[str, tuple[tuple[int, str], ...]]]:
        columns: dict[int, tuple[str, tuple[tuple[int, str], ...]]] = {}
        top = 0
        for line in lines:
            if line.depth == 0:
                top = line.column_id
                columns[top] = line.name, ()
            else:
                name, fields = columns[top]
                columns[top] = name, (*fields, (line.column_id, line.name))
        shown = {line.column_id for line in lines if line.iceberg_type}
        return {column_id: of for column_id, of in columns.items() if column_id in shown}

    new = shapes(_lines(table, table.snapshot_id))
    if before < table.history.table.begin_snapshot:
        return tuple((name, name) for name, _ in new.values())
    old = shapes(_lines(table, before))
    return tuple(
        (name, old[column_id][0])
        for column_id, (name, fields) in new.items()
        if column_id in old and old[column_id][1] == fields
    )


MOST_STEPS = 25
"""With more snapshots in between, both tables are read as a whole, not by entries."""


def add_paths(
    generator: Generator, con: Connection, ref: TableRef, question: ChangesQuestion
) -> ChangesQuestion:
    """The question with the data files that Iceberg's entries name, if these have all changes."""
    ref = replace(ref, snapshot_id=question.after.snapshot)
    table, _ = open_at(generator, con, ref, limit=MOST_STEPS)
    if not table.is_served:
        return question
    before = question.before.snapshot if question.before else 0
    snapshots = [s for s in table.metadata.snapshots if s.sequence_number > before]
    parents = [s for s in table.metadata.snapshots if s.sequence_number <= before]
    listed = {s.sequence_number for s in snapshots}
    touched = {s.snapshot_id for s in table.history.snapshots} - table.history.unlisted
    is_listed = bool(parents) and not any(
        parents[-1].sequence_number < snapshot_id <= before for snapshot_id in touched
    )
    if len(snapshots) > MOST_STEPS or (question.before is not None and not is_listed):
        return question
    # The entries of a snapshot that clients do not see are in no other snapshot.
    if any(before < snapshot_id <= table.snapshot_id for snapshot_id in touched - listed):
        return question
    # A column of this name hides DuckDB's column with the paths.
    if any(column.column_name.lower() == "filename" for column in table.history.columns):
        return question
    paths = tuple(sorted(changed_paths(table, snapshots)))
    if len(paths) > MOST_PATHS:
        return question
    parent = parents[-1].snapshot_id if question.before else None
    return replace(question, paths=paths, parent=parent)


MOST_PATHS = 1000


def _counts(table: OpenedTable, snapshot_id: int) -> Counts:
    existed = snapshot_id >= table.history.table.begin_snapshot
    return table.open_at(snapshot_id, limit=1).counts() if existed else NOTHING


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
