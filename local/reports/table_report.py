"""`polynya inspect`: a table from the catalog's rows to the files that Iceberg clients get."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from polynya.ducklake import queries
from polynya.ducklake.history import states, unservable_reason
from polynya.ducklake.paths import file_location, table_location
from polynya.ducklake.rows.files import DataFile
from polynya.runtime.errors import BadRequest
from polynya.virtual_files.deletes import Deletes, deletes_at

from .generator import OpenedTable
from .manifests import File, ManifestList, manifest_list

LACKED_IN_PAST = "files of past snapshots lack it"

LISTS = ("snapshot-log", "metadata-log", "refs")
"""Parts of the document that say again what its snapshots say."""

ALL_IDS = (0, 2**63 - 1)
"""The range of all file ids."""


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
    """Live rows; None: only the files say, and they were not read."""


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
    """The table metadata as clients get it, without its snapshots."""
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
        BadRequest: the table has no such snapshot, or it is not served; with the reason.
    """
    history, document = table.history, table.metadata.json()
    changes = {s.snapshot_id: s.changes_made for s in history.snapshots}
    snapshots = _counted(
        table, [snapshot_of(snapshot, changes) for snapshot in document.pop("snapshots")]
    )
    for name in LISTS:
        document.pop(name)
    left_out = left_out_snapshots(table)
    shown = _shown(table, snapshots, left_out, snapshot_id)
    lists = {s.sequence_number: s.manifest_list for s in table.metadata.snapshots}
    files = manifest_list(table, lists[shown.snapshot_id]) if shown else None
    return TableReport(
        name=table.name,
        table_id=history.table.table_id,
        data_location=table_location(history.lake, history.schema, history.table),
        document=document,
        hidden=hidden_columns(table),
        defaults=default_columns(table),
        snapshots=snapshots,
        left_out=left_out,
        shown=shown,
        files=files,
        sources=sources_of(table, shown.snapshot_id, files.files()) if shown and files else {},
    )


def _counted(table: OpenedTable, snapshots: list[Snapshot]) -> list[Snapshot]:
    """The snapshots with their live rows."""
    ids = sorted({snapshot.snapshot_id for snapshot in snapshots})
    rows = table.row_counts(ids)
    counts = {
        snapshot_id: rows.counts(snapshot_id, state)
        for snapshot_id, state in states(table.history.events, ids)
    }
    return [replace(snapshot, rows=counts[snapshot.snapshot_id].rows) for snapshot in snapshots]


def hidden_columns(table: OpenedTable) -> dict[str, str]:
    """The reason that clients get for each hidden column, by dotted name."""
    hidden: dict[str, str] = json.loads(
        table.metadata.properties.get("polynya.hidden-columns-reason", "{}")
    )
    return hidden


def default_columns(table: OpenedTable) -> dict[str, str]:
    """Columns with a default that files lack, and what clients read there, by dotted name."""
    defaults = {}
    for name, unservable in table.unservable_defaults().items():
        if unservable:
            is_now = unservable_reason(unservable, table.history.snapshot_id) is not None
            files = "files lack it" if is_now else LACKED_IN_PAST
            defaults[name] = f"{files}, and Trino, Flink, Daft and ClickHouse read NULL there"
    return defaults


def left_out_snapshots(table: OpenedTable) -> dict[int, str]:
    """Snapshots that touched the table and are not listed, and why."""
    listed = {snapshot.sequence_number for snapshot in table.metadata.snapshots}
    older = f"older than the newest {len(listed)} (SNAPSHOT_LIMIT)"
    accounted = listed | table.history.unlisted
    return {
        s.snapshot_id: unservable_reason(table.unservable, s.snapshot_id) or older
        for s in table.history.snapshots
        if s.snapshot_id not in accounted
    }


def snapshot_of(json: dict[str, Any], changes: dict[int, str]) -> Snapshot:
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
    then = max((touch for touch in touched if touch <= snapshot_id), default=None)
    if then is None:
        oldest = f"; its oldest snapshot is {touched[0]}" if touched else ""
        raise BadRequest(f"{table.name} cannot be shown at snapshot {snapshot_id}{oldest}")
    if then in left_out:
        raise BadRequest(f"{table.name} at snapshot {then} is left out: {left_out[then]}")
    return next(s for s in snapshots if s.snapshot_id == then)


def sources_of(
    table: OpenedTable, snapshot_id: int, files: Iterable[File], ids: tuple[int, int] = ALL_IDS
) -> dict[str, Source]:
    """The rows of the catalog that files come from, by path.

    Args:
        ids: the first and the last id of the data files that these are, or belong to.
    """
    history, con = table.history, table.con

    def location(file: DataFile) -> str:
        return file_location(history.lake, history.schema, history.table, file)

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
            file_deletes = deletes.get(file.deletes_of)
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
