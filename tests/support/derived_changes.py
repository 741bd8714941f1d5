"""Derives the changes between the listed snapshots of a table as clients do, and judges them.

Clients that try a commit again read the operation, the ADDED and DELETED entries, and the new
delete files of each snapshot since the one that they knew. This judge reads nothing else, and
compares what follows with the rows of both snapshots.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.manifest import ManifestContent, ManifestEntryStatus
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Operation, Snapshot

ADDED, DELETED = ManifestEntryStatus.ADDED, ManifestEntryStatus.DELETED
READS_ADDED = {Operation.APPEND, Operation.OVERWRITE}
READS_DELETED = {Operation.DELETE, Operation.OVERWRITE, Operation.REPLACE}
READS_DELETES = {Operation.DELETE, Operation.OVERWRITE}
"""The operations in whose snapshots clients look for ADDED data files, DELETED ones, and new
delete files (Iceberg Java's MergingSnapshotProducer, PyIceberg's validate.py)."""

Rows = Counter[str]


@dataclass
class Step:
    """A listed snapshot, with the live data files of its parent and its own, by path."""

    table: Table
    snapshot: Snapshot
    before: dict[str, FileScanTask]
    after: dict[str, FileScanTask]

    @cached_property
    def changes(self) -> dict[tuple[ManifestContent, ManifestEntryStatus], set[str]]:
        """The paths of the entries that the snapshot changed: of delete files, of what they
        delete."""
        found: dict[tuple[ManifestContent, ManifestEntryStatus], set[str]] = {}
        for manifest in self.snapshot.manifests(self.table.io):
            if manifest.added_snapshot_id != self.snapshot.snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(self.table.io, discard_deleted=False):
                if entry.snapshot_id == self.snapshot.snapshot_id:
                    path = entry.data_file.file_path
                    if manifest.content == ManifestContent.DELETES:
                        [path] = {bound.decode() for bound in entry.data_file.lower_bounds.values()}
                    found.setdefault((manifest.content, entry.status), set()).add(path)
        return found

    def paths(self, status: ManifestEntryStatus, content=ManifestContent.DATA) -> set[str]:
        """The paths of the entries with a status."""
        return self.changes.get((content, status), set())

    @cached_property
    def schema(self) -> Schema:
        """In which the rows of both are read."""
        return self.table.schemas()[self.snapshot.schema_id]

    def rows(self, tasks: dict[str, FileScanTask], paths: set[str]) -> Rows:
        """The live rows of some of the files."""
        wanted = [tasks[path] for path in sorted(paths & tasks.keys())]
        if not wanted:
            return Counter()
        scan = ArrowScan(self.table.metadata, self.table.io, self.schema, AlwaysTrue())
        return Counter(map(repr, scan.to_table(wanted).to_pylist()))


def files(table: Table, snapshot: Snapshot) -> dict[str, FileScanTask]:
    tasks = table.scan(snapshot_id=snapshot.snapshot_id).plan_files()
    return {task.file.file_path: task for task in tasks}


@dataclass
class ChangesJudge:
    """Judges all consecutive listed snapshots of a table."""

    table: Table
    compared: int = 0
    """The pairs of snapshots whose rows were compared."""
    unreadable: list[str] = field(default_factory=list)

    def wrong(self) -> Iterator[str]:
        """A line for each change that the metadata does not show."""
        yield from self._changing_manifests()
        by_id = {snapshot.snapshot_id: snapshot for snapshot in self.table.snapshots()}
        live = cache(lambda snapshot_id: files(self.table, by_id[snapshot_id]))
        for snapshot in by_id.values():
            if parent := by_id.get(snapshot.parent_snapshot_id or -1):
                ids = parent.snapshot_id, snapshot.snapshot_id
                step = Step(self.table, snapshot, *map(live, ids))
                for line in self._of(step):
                    yield f"{snapshot.snapshot_id} ({snapshot.summary.operation.value}): {line}"

    def _changing_manifests(self) -> Iterator[str]:
        """Clients take the record of a manifest from the first list that has it."""
        records: dict[str, Any] = {}
        for snapshot in self.table.snapshots():
            listed = read_list(self.table, snapshot)
            for path, record in listed.items():
                if records.setdefault(path, record) != record:
                    yield f"{snapshot.snapshot_id}: another record of {path}"

    def _of(self, step: Step) -> Iterator[str]:
        operation = step.snapshot.summary.operation
        added, deleted = step.paths(ADDED), step.paths(DELETED)
        gone, new = step.before.keys() - step.after.keys(), step.after.keys() - step.before.keys()
        if deleted - step.before.keys() or added - step.after.keys():
            yield "an entry is of no file of the snapshot, or of its parent"
        if gone - deleted:
            yield f"without a DELETED entry: {sorted(gone - deleted)}"
        try:
            yield from self._rows(step, operation, added, deleted, new)
        except UNREADABLE as error:
            self.unreadable.append(f"{type(error).__name__}: {error}")

    def _rows(
        self, step: Step, operation: Operation, added: set[str], deleted: set[str], new: set[str]
    ) -> Iterator[str]:
        moved = new - added
        removed, brought = step.rows(step.before, deleted), step.rows(step.after, added | moved)
        if moved and step.rows(step.after, moved) - removed:
            yield f"rows without an ADDED entry: {sorted(moved)}"
        hidden: Rows = Counter()
        for path in step.before.keys() & step.after.keys() - deleted:
            if deletes(step.before[path]) == deletes(step.after[path]):
                continue
            old, now = step.rows(step.before, {path}), step.rows(step.after, {path})
            hidden += old - now
            if now - old:
                yield f"rows of {path} are back without an ADDED entry"
            if old - now and path not in step.paths(ADDED, ManifestContent.DELETES):
                yield f"rows of {path} are gone without a new delete file"
        if brought - removed and operation not in READS_ADDED:
            yield "rows are added"
        if (hidden or removed - brought) and operation not in READS_DELETES:
            yield "rows are deleted"
        is_compaction = operation == Operation.APPEND and removed == step.rows(step.after, moved)
        if deleted and operation not in READS_DELETED and not is_compaction:
            yield "files are DELETED"
        self.compared += 1


UNREADABLE = (ValueError, NotImplementedError, TypeError, OSError, KeyError, OverflowError)
"""Errors of PyIceberg where it cannot read the rows of a lake: docs/clients/pyiceberg.md."""


def deletes(task: FileScanTask) -> set[str]:
    return {file.file_path for file in task.delete_files}


def read_list(table: Table, snapshot: Snapshot) -> dict[str, Any]:
    """The records of a manifest list, which no cache of PyIceberg has seen."""
    from fastavro import reader

    with table.io.new_input(snapshot.manifest_list).open() as stream:
        return {record["manifest_path"]: record for record in map(dict, reader(stream))}
