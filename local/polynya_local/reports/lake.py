"""The tables and views of a lake at a snapshot, a page at a time.

`lake_report` is a page of the list, `view_report` one view: its SQL, and what Iceberg clients get.
`Paging` is for all lists.
"""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.queries.changed_tables import changed_rows, inlined_names
from polynya.ducklake.rows.listing import Changed
from polynya.ducklake.rows.objects import Lake, Schema, View
from polynya.mapping.properties import COMMENT
from polynya.mapping.views import view_metadata
from polynya.runtime.errors import BadRequest, NoSuchView, Refused
from polynya.runtime.namespaces import dotted, parsed

from ..queries.lake_entries import Entry, Namespace, Totals, entries, namespaces
from ..queries.lake_snapshots import LakeSize, changes, changes_at, growth
from ..queries.uncertain_files import uncertain_tables
from .changes import MOST_SIZES, SnapshotReport, snapshot_of, snapshot_reports
from .generator import Generator, served_lake
from .opened_table import UNKNOWN, Status, Statuses, Subject


@dataclass(frozen=True, slots=True)
class Paging:
    """The place of a page in a list."""

    page: int
    """From 1 on."""
    size: int
    total: int
    """The entries of all pages."""

    @property
    def pages(self) -> int:
        """How many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def first(self) -> int:
        """How many entries are on earlier pages."""
        return (self.page - 1) * self.size

    def check(self) -> None:
        """Raise if the list has no such page.

        Raises:
            BadRequest: it is after the last one.
        """
        if self.page > self.pages:
            raise BadRequest(f"there is no page {self.page}: the list has {self.pages}")


PAGE_SIZE = 50
NAMESPACES = 200
NEWEST_CHANGES = 5
SECONDS_OF_FILES = 0.5
"""How long files are read to count the rows of tables; the rows of the others are not known."""


@dataclass(frozen=True, slots=True)
class Search:
    """Which tables and views are shown, and how they are sorted."""

    text: str = ""
    """A part of their full name, or of the name of a column."""
    namespace: str | None = None
    order: str = "name"
    page: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """A table or a view in the list."""

    kind: str
    """`table` or `view`."""
    object_id: int
    namespace: str
    name: str
    files: int
    bytes: int
    rows: int | None
    """Live rows: those of the data files and the inlined ones, without the deleted ones. None: only
    the files tell, and they were not read."""
    inlined: int
    deleted: int | None
    changed_at: int
    """The snapshot of its last change."""
    changed: datetime | None
    """When that was; None: the snapshot has expired."""
    status: Status = UNKNOWN

    @property
    def subject(self) -> Subject:
        """What its status depends on."""
        return Subject(self.kind, self.object_id, self.namespace, self.name, self.changed_at)


@dataclass(frozen=True, slots=True)
class LakeReport:
    """A lake at a snapshot."""

    version: str
    data_path: str
    newest: int
    snapshot: SnapshotReport
    """The shown one."""
    tables: int
    views: int
    namespaces: list[Namespace]
    """The first ones by name."""
    search: Search
    totals: Totals
    """The totals of all tables and views, whether the search finds them or not."""
    paging: Paging
    lines: list[Line]
    newest_changes: list[SnapshotReport]
    """The newest snapshots up to the shown one, among those that the searched text finds."""
    sizes: list[LakeSize]
    """The files of the lake at some snapshots, oldest first; empty if the list is filtered."""


SUMMARY_SIZES = 40


@dataclass(frozen=True, slots=True)
class LakeSummary:
    """A lake in a list of lakes."""

    tables: int
    views: int
    files: int
    bytes: int
    snapshot: int
    """The newest one."""
    changed: datetime | None
    """When that was."""
    sizes: list[LakeSize]
    """Its files at some snapshots, oldest first."""


def lake_summary(con: Connection) -> LakeSummary:
    """Read the numbers of a lake.

    Raises:
        Refused: the lake cannot be served.
    """
    lake = served_lake(con)
    snapshot_id = lake.snapshot_id
    schemas = queries.schemas_at(snapshot_id).run(con)
    kinds = namespaces(snapshot_id, schemas, 1).run(con)
    totals = entries(snapshot_id, schemas, "", None, "name", 0, 1).run(con)[1]
    newest = changes_at(lake, [snapshot_id]).run(con)
    return LakeSummary(
        kinds.tables,
        kinds.views,
        totals.files,
        totals.bytes,
        snapshot_id,
        newest[0].snapshot_time if newest else None,
        growth(snapshot_id, SUMMARY_SIZES).run(con),
    )


def lake_report(
    generator: Generator, con: Connection, snapshot_id: int | None, search: Search
) -> LakeReport:
    """Read a page of the lake.

    Args:
        snapshot_id: None for the newest.

    Raises:
        Refused: the lake cannot be served.
        BadRequest: there is no such page.
        NoSuchTable: the lake has no such snapshot.
    """
    lake = served_lake(con)
    shown = snapshot_of(con, lake, snapshot_id)
    snapshot_id = shown.snapshot_id
    schemas = queries.schemas_at(snapshot_id).run(con)
    criteria = (snapshot_id, schemas, search.text, search.namespace, search.order)
    listed, matching = entries(*criteria, (search.page - 1) * PAGE_SIZE, PAGE_SIZE).run(con)
    # The total comes with the rows, and a page after the last one has none.
    if not listed and search.page > 1:
        _, matching = entries(*criteria, 0, 1).run(con)
    paging = Paging(search.page, PAGE_SIZE, matching.entries)
    paging.check()
    is_part = bool(search.text or search.namespace)
    totals = (
        entries(snapshot_id, schemas, "", None, search.order, 0, 1).run(con)[1]
        if is_part
        else matching
    )
    ids = [entry.object_id for entry in listed]
    searched = (search.text, ids) if search.text else None
    newest = changes(lake, snapshot_id, NEWEST_CHANGES, search=searched)
    first_namespaces = namespaces(snapshot_id, schemas, NAMESPACES).run(con)
    return LakeReport(
        version=lake.version,
        data_path=lake.data_path,
        newest=lake.snapshot_id,
        snapshot=shown,
        tables=first_namespaces.tables,
        views=first_namespaces.views,
        namespaces=first_namespaces.first,
        search=search,
        totals=totals,
        paging=paging,
        lines=_lines(generator, con, lake, listed, snapshot_id),
        newest_changes=snapshot_reports(con, lake, newest.run(con)),
        sizes=[] if is_part else growth(snapshot_id, MOST_SIZES).run(con),
    )


def add_statuses(report: LakeReport, statuses: Statuses) -> LakeReport:
    """The report with the status of each line, read in transactions of their own."""
    line_statuses = statuses.read(
        [line.subject for line in report.lines], report.snapshot.snapshot_id
    )
    pairs = zip(report.lines, line_statuses, strict=True)
    return replace(report, lines=[replace(line, status=status) for line, status in pairs])


def _lines(
    generator: Generator, con: Connection, lake: Lake, listed: list[Entry], snapshot_id: int
) -> list[Line]:
    tables = [entry.object_id for entry in listed if entry.kind == "table"]
    names = inlined_names(tables).run(con) if tables else []
    rows = changed_rows(con, tables, names, snapshot_id) if tables else {}
    lines = [_line(entry, rows.get(entry.object_id)) for entry in listed]
    uncertain = uncertain_tables(lake, tables, names, snapshot_id).run(con) if tables else {}
    deadline = time.monotonic() + SECONDS_OF_FILES
    for place, line in enumerate(lines):
        if line.kind == "table" and line.object_id in uncertain:
            lines[place] = _counted(generator, con, lake, line, snapshot_id, deadline)
    ids = sorted({line.changed_at for line in lines})
    times = {change.snapshot_id: change.snapshot_time for change in changes_at(lake, ids).run(con)}
    return [replace(line, changed=times.get(line.changed_at)) for line in lines]


def _counted(
    generator: Generator, con: Connection, lake: Lake, line: Line, snapshot_id: int, deadline: float
) -> Line:
    """The line with the rows by its files, if there is time to read these."""
    pair = queries.table_at(snapshot_id, parsed(line.namespace), line.name).run(con)
    if pair is None or time.monotonic() > deadline:
        return replace(line, rows=None, deleted=None)
    try:
        counts = generator.open_table(con, lake, *pair, snapshot_id, limit=1).counts()
    except Refused:
        return replace(line, rows=None, deleted=None)
    return replace(line, rows=counts.rows, deleted=counts.deleted)


def _line(entry: Entry, changed: Changed | None) -> Line:
    rows = changed if changed and entry.kind == "table" else Changed(entry.object_id, 0, 0, 0)
    return Line(
        kind=entry.kind,
        object_id=entry.object_id,
        namespace=entry.namespace,
        name=entry.name,
        files=entry.files,
        bytes=entry.bytes,
        rows=max(0, entry.rows + rows.inlined - rows.deleted),
        inlined=rows.inlined,
        deleted=rows.deleted,
        changed_at=max(entry.changed_at, rows.changed_at),
        changed=None,
    )


@dataclass(frozen=True, slots=True)
class ViewHead:
    """The name and the snapshot of a view."""

    namespace: str
    name: str
    newest: int
    snapshot: SnapshotReport
    is_dropped: bool
    """The newest snapshot has none of this name."""


@dataclass(frozen=True, slots=True)
class ViewReport:
    """A view at a snapshot."""

    head: ViewHead
    uuid: str
    comment: str
    dialect: str
    sql: str
    begin_snapshot: int
    """The snapshot that gave it this text and name."""
    metadata: dict[str, Any]
    """The document that Iceberg clients get; empty: they do not get the view."""
    reason: str
    """Why they do not."""


def view_report(
    con: Connection, namespace: str, name: str, snapshot_id: int | None, location: str
) -> ViewReport:
    """Read a view.

    Args:
        location: the one below which all virtual files are.

    Raises:
        NoSuchView: the lake has none of this name at the snapshot.
        NoSuchTable: the lake has no such snapshot.
        Refused: the lake cannot be served.
    """
    lake = served_lake(con)
    shown = snapshot_of(con, lake, snapshot_id)
    pair = _view_at(con, namespace, name, shown.snapshot_id)
    if pair is None:
        full_name = f"{namespace}.{dotted(name)}"
        raise NoSuchView(f"there is no view {full_name} at snapshot {shown.snapshot_id}")
    schema, view = pair
    now = _view_at(con, namespace, name, lake.snapshot_id)
    tags = queries.tags_at(shown.snapshot_id, view.view_id).run(con)
    texts = queries.view_texts(shown.snapshot_id, view.view_id).run(con)
    comments = queries.view_column_comments_at(lake, shown.snapshot_id, view.view_id).run(con)
    metadata, reason = {}, ""
    try:
        metadata = view_metadata(schema, view, texts, tags, comments, location)
    except Refused as error:
        reason = str(error)
    return ViewReport(
        head=ViewHead(schema.full_name, view.view_name, lake.snapshot_id, shown, now is None),
        uuid=view.view_uuid,
        comment=next((tag.value or "" for tag in tags if tag.key == COMMENT), ""),
        dialect=view.dialect or "",
        sql=view.sql or "",
        begin_snapshot=view.begin_snapshot,
        metadata=metadata,
        reason=reason,
    )


def _view_at(
    con: Connection, namespace: str, name: str, snapshot_id: int
) -> tuple[Schema, View] | None:
    for schema in queries.schemas_at(snapshot_id).run(con):
        if schema.full_name == namespace:
            for view in queries.views_at(snapshot_id, schema.schema_id).run(con):
                if view.view_name == name:
                    return schema, view
    return None
