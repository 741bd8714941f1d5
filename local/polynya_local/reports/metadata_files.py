"""What Iceberg clients see of a table: the metadata document, the manifest list, the manifests.

`table_report` is a table with all files of a snapshot, for `polynya inspect`; `iceberg_head`,
`iceberg_report` and `manifest_report` are the same page by page. `sources_of` tells which rows of
DuckLake's catalog a file comes from.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.paths import table_location
from polynya.ducklake.queries.history import states
from polynya.ducklake.rows.files import DataFile
from polynya.runtime.errors import BadRequest
from polynya.virtual_files.position_deletes import Deletes, deletes_at

from .generator import Generator, OpenedTable
from .lake import Paging
from .manifests import File, Manifest, ManifestList, manifest_list, manifest_page
from .opened_table import TableHead, TableRef, open_at

LISTS = ("snapshot-log", "metadata-log", "refs")
"""Parts of the document that are left out of reports."""

ALL_IDS = (0, 2**63 - 1)
"""The range of all file ids."""
PAGE_SIZE = 25
RANGE = slice(1, 3)
"""The numbers in a manifest's name that are the first and the last id of its data files."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A listed snapshot; `counts` are the numbers of its Iceberg summary."""

    snapshot_id: int
    """DuckLake's, which is the sequence number in Iceberg."""
    time: str
    schema_id: int
    operation: str
    counts: dict[str, int]
    changes: str
    """DuckLake's `changes_made`, of all tables."""
    rows: int | None = None
    """Live rows; None: only the files tell, and they were not read."""


@dataclass(frozen=True, slots=True)
class Source:
    """The rows of DuckLake's tables that a file comes from."""

    rows: dict[str, list[Any]]
    """Their ids, by the name of DuckLake's table."""
    note: str = ""

    def __str__(self) -> str:
        parts = [" ".join([name, *map(str, ids)]) for name, ids in self.rows.items()]
        return ", ".join([*parts, *filter(None, [self.note])])


@dataclass(frozen=True, slots=True)
class TableReport:
    """A table as `polynya inspect` shows it."""

    name: str
    table_id: int
    data_location: str
    document: dict[str, Any]
    """The table metadata as clients get it, without its snapshots and `LISTS`."""
    hidden: dict[str, str]
    """The reason by dotted name."""
    defaults: dict[str, str]
    """Columns with a default that files lack, and what clients read there."""
    snapshots: list[Snapshot]
    left_out: dict[int, str]
    """The reason, by the id of a snapshot that is not listed."""
    shown: Snapshot | None
    """The snapshot whose files are shown; None: the table has none."""
    files: ManifestList | None
    """The files of that snapshot."""
    sources: dict[str, Source]
    """By the path of a file."""


def table_report(table: OpenedTable, snapshot_id: int | None) -> TableReport:
    """Read a table, and the files of one of its snapshots.

    Args:
        snapshot_id: one of the lake; the table is shown as it was then. None: the newest.

    Raises:
        BadRequest: the table has no such snapshot, or clients do not get it; with the reason.
        Refused: clients do not get the table.
    """
    history, (document, listed) = table.history, _document(table)
    changes = {s.snapshot_id: s.changes_made for s in history.snapshots}
    snapshots = _counted(table, [_snapshot(snapshot, changes) for snapshot in listed])
    left_out = table.left_out_snapshots()
    shown = _shown(table, snapshots, left_out, snapshot_id)
    lists = {s.sequence_number: s.manifest_list for s in table.metadata.snapshots}
    files = manifest_list(table, lists[shown.snapshot_id]) if shown else None
    return TableReport(
        name=table.name,
        table_id=table.table_id,
        data_location=table_location(history.lake, history.schema, history.table),
        document=document,
        hidden=table.hidden_columns,
        defaults=table.default_columns,
        snapshots=snapshots,
        left_out=left_out,
        shown=shown,
        files=files,
        sources=sources_of(table, shown.snapshot_id, files.files()) if shown and files else {},
    )


def _document(table: OpenedTable) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The metadata document without its snapshots and `LISTS`, and the snapshots."""
    document = table.metadata.json()
    snapshots = document.pop("snapshots")
    for name in LISTS:
        document.pop(name)
    return document, snapshots


def _counted(table: OpenedTable, snapshots: list[Snapshot]) -> list[Snapshot]:
    """The snapshots with their live rows."""
    ids = sorted({snapshot.snapshot_id for snapshot in snapshots})
    rows = table.row_counts(ids)
    counts = {
        snapshot_id: rows.counts(snapshot_id, state)
        for snapshot_id, state in states(table.history.events, ids)
    }
    return [replace(snapshot, rows=counts[snapshot.snapshot_id].rows) for snapshot in snapshots]


def _snapshot(json: dict[str, Any], changes: dict[int, str]) -> Snapshot:
    """A snapshot of the metadata document.

    Args:
        changes: DuckLake's `changes_made`, by its snapshot id.
    """
    summary = dict(json["summary"])
    time = datetime.fromtimestamp(json["timestamp-ms"] / 1000, UTC)
    return Snapshot(
        snapshot_id=json["sequence-number"],
        time=time.isoformat(sep=" ", timespec="milliseconds"),
        schema_id=json["schema-id"],
        operation=summary.pop("operation"),
        counts={name: int(text) for name, text in summary.items() if text.isdecimal()},
        changes=changes.get(json["sequence-number"], ""),
    )


def _shown(
    table: OpenedTable,
    snapshots: list[Snapshot],
    left_out: dict[int, str],
    snapshot_id: int | None,
) -> Snapshot | None:
    if snapshot_id is None:
        return snapshots[-1] if snapshots else None
    newest = table.history.lake.snapshot_id
    if snapshot_id > newest:
        raise BadRequest(f"the lake has no snapshot {snapshot_id}; its newest is {newest}")
    history = table.history
    unlisted = history.unlisted
    touched = [s.snapshot_id for s in history.snapshots if s.snapshot_id not in unlisted]
    last_touch = max((touch for touch in touched if touch <= snapshot_id), default=None)
    if last_touch is None:
        oldest = f"; its oldest snapshot is {touched[0]}" if touched else ""
        raise BadRequest(f"{table.name} cannot be shown at snapshot {snapshot_id}{oldest}")
    if last_touch in left_out:
        raise BadRequest(
            f"{table.name} at snapshot {last_touch} is left out: {left_out[last_touch]}"
        )
    return next(s for s in snapshots if s.snapshot_id == last_touch)


def sources_of(
    table: OpenedTable, snapshot_id: int, files: Iterable[File], ids: tuple[int, int] = ALL_IDS
) -> dict[str, Source]:
    """The rows of the catalog that files come from, by path.

    Args:
        ids: the first and the last id of the data files among them, or to which they belong.
    """
    history, con = table.history, table.con

    def location(file: DataFile) -> str:
        return table.files.table.shown_file(file, snapshot_id).location

    arguments = (history.table.table_id, snapshot_id, *ids)
    file_ids = {
        location(f): f.data_file_id
        for f in queries.data_files_at(history.lake, *arguments).run(con)
    }
    deletes = {
        location(delete.data_file): delete for delete in deletes_at(con, history, snapshot_id, ids)
    }
    inlined = Source({inlined.table_name: [] for inlined in history.inlined.tables})

    def source(file: File) -> Source:
        if file.deletes_of is not None:
            is_live = file.status != "deleted"
            file_deletes = deletes.get(file.deletes_of) if is_live else None
            return _source_of_deletes(file_deletes) if file_deletes else Source({})
        return (
            Source({"ducklake_data_file": [file_ids[file.path]]})
            if file.path in file_ids
            else inlined
        )

    return {file.path: source(file) for file in files}


def _source_of_deletes(deletes: Deletes) -> Source:
    rows: dict[str, list[Any]] = defaultdict(list)
    for file in deletes.stored:
        rows["ducklake_delete_file"].append(file.delete_file_id)
    notes = [f"{len(deletes.inlined)} inlined"] if deletes.inlined else []
    notes += ["rows of later snapshots"] if deletes.holds_later_rows else []
    return Source(dict(rows), ", ".join(notes))


@dataclass(frozen=True, slots=True)
class IcebergHead:
    """The metadata document, and the names of the files below it."""

    head: TableHead
    metadata_location: str
    document: dict[str, Any]
    """Without its snapshots, logs and refs."""
    document_bytes: int
    listed: int
    """How many snapshots it lists."""
    shown: Snapshot | None
    """The newest of them; None: the table has none yet."""
    manifest_list: str
    """Where that snapshot's manifest list is; empty: there is none."""


@dataclass(frozen=True, slots=True)
class IcebergReport:
    """The document, and the manifests of its newest snapshot without their entries."""

    iceberg: IcebergHead
    files: ManifestList


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a manifest, and where it comes from."""

    file: File
    source: Source


@dataclass(frozen=True, slots=True)
class ManifestReport:
    """A manifest with a page of its entries."""

    iceberg: IcebergHead
    manifest: Manifest
    """Without its entries, which are in `entries` with their sources."""
    entries: list[Entry]
    paging: Paging


def iceberg_head(generator: Generator, con: Connection, ref: TableRef) -> IcebergHead:
    """Read the metadata document; no other file is generated.

    Raises:
        NoSuchTable: the lake has none of this name at the snapshot.
    """
    return _head(*open_at(generator, con, ref, limit=0))


def iceberg_report(generator: Generator, con: Connection, ref: TableRef) -> IcebergReport:
    """Generate the manifest list and its manifests, and read them.

    Raises:
        BadRequest: clients get no manifest list of the table.
    """
    table, head = _listed(generator, con, ref)
    return IcebergReport(head, manifest_list(table, head.manifest_list, with_entries=False))


def manifest_report(
    generator: Generator, con: Connection, ref: TableRef, name: str, page: int
) -> ManifestReport:
    """Read a page of the entries of a manifest.

    Args:
        name: the manifest's file name.

    Raises:
        BadRequest: there is no such manifest or page.
    """
    table, head = _listed(generator, con, ref)
    path = f"{head.manifest_list.rpartition('/')[0]}/{name}"
    manifest, total = manifest_page(
        table, head.manifest_list, path, (page - 1) * PAGE_SIZE, PAGE_SIZE
    )
    paging = Paging(page, PAGE_SIZE, total)
    paging.check()
    assert head.shown is not None
    files = manifest.entries
    sources = sources_of(table, head.shown.snapshot_id, files, _ids(table, path))
    entries = [Entry(file, sources[file.path]) for file in files]
    return ManifestReport(head, replace(manifest, entries=[]), entries, paging)


def _head(table: OpenedTable, head: TableHead) -> IcebergHead:
    if not table.is_served:
        return IcebergHead(head, "", {}, 0, 0, None, "")
    metadata, (document, listed) = table.metadata, _document(table)
    changes = {s.snapshot_id: s.changes_made for s in table.history.snapshots[-1:]}
    return IcebergHead(
        head=head,
        metadata_location=table.files.metadata_location(metadata),
        document=document,
        document_bytes=len(metadata.body),
        listed=len(listed),
        shown=_snapshot(listed[-1], changes) if listed else None,
        manifest_list=metadata.snapshots[-1].manifest_list if listed else "",
    )


def _listed(
    generator: Generator, con: Connection, ref: TableRef
) -> tuple[OpenedTable, IcebergHead]:
    """Open a table that has a manifest list for clients."""
    table, table_head = open_at(generator, con, ref, limit=0)
    head = _head(table, table_head)
    if not head.manifest_list:
        raise BadRequest("Iceberg clients get no manifest list of this table")
    return table, head


def _ids(table: OpenedTable, path: str) -> tuple[int, int]:
    """The first and the last id of the data files that a manifest is about."""
    name = table.virtual_name(path)
    if name is None or len(name.numbers) < RANGE.stop:
        return ALL_IDS
    first, last = name.numbers[RANGE]
    return first, last
