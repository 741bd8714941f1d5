"""The updates of one commit to one table as one record, or a refusal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...iceberg.table_metadata import Reference
from ...mapping.references import MAIN
from ...rest import updates
from ...rest.schemas import Schema
from ...rest.source_metadata import SourceMetadata
from ...rest.updates import (
    LAST_ADDED,
    AssertCreate,
    AssertTableUuid,
    PartitionSpec,
    Requirement,
    Snapshot,
    SortOrder,
    Update,
)
from ...runtime.errors import BadRequest

LARGEST_DUCKLAKE_ID = 2**40
"""Ids of snapshots up to this one are DuckLake's own. Those of clients are published too, so the
two must not meet (docs/developers/decisions/0006-published-snapshot-ids.md)."""


@dataclass(slots=True)
class TableCommit:
    """What a commit asks for."""

    requirements: Sequence[Requirement] = ()
    snapshots: list[Snapshot] = field(default_factory=list)
    """In order, those of all branches."""
    main: int | None = None
    """The snapshot that the branch `main` is set to."""
    removed_snapshots: list[int] = field(default_factory=list)
    removes_main: bool = False
    """All rows end first: CREATE OR REPLACE TABLE."""
    uuid: str | None = None
    schemas: dict[int, Schema] = field(default_factory=dict)
    """The schemas that are added, by id."""
    current_schema: int | None = None
    specs: dict[int, PartitionSpec] = field(default_factory=dict)
    default_spec: int | None = None
    sort_orders: dict[int, SortOrder] = field(default_factory=dict)
    default_sort_order: int | None = None
    location: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    removed_properties: list[str] = field(default_factory=list)
    format_version: int | None = None
    statistics: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The statistics files that it sets, by their list in the table metadata."""
    removed_statistics: list[tuple[str, int]] = field(default_factory=list)
    """The lists and the snapshots of those that it removes."""
    references: dict[str, Reference | None] = field(default_factory=dict)
    """The tags and branches that it sets, by name; None: it removes one."""
    source: SourceMetadata | None = None
    """The table of another catalog that it registers."""
    source_location: str = ""
    """Where that table's metadata file is."""

    @property
    def creates(self) -> bool:
        """Whether the table must not exist yet."""
        return any(isinstance(r, AssertCreate) for r in self.requirements)

    @property
    def asserted_uuid(self) -> str | None:
        """The uuid that the table must have."""
        uuids = (str(r.uuid) for r in self.requirements if isinstance(r, AssertTableUuid))
        return next(uuids, None)

    @property
    def snapshot_ids(self) -> list[int]:
        """The ids of the snapshots that the client adds."""
        return [snapshot.snapshot_id for snapshot in self.snapshots]


def table_commit(requirements: Sequence[Requirement], changes: Sequence[Update]) -> TableCommit:
    """The record of a commit.

    Raises:
        BadRequest: an update has no form in DuckLake.
    """
    commit = TableCommit(requirements)
    for change in changes:
        READERS[type(change)](commit, change)
    ids = commit.snapshot_ids
    if len(ids) != len(set(ids)):
        raise BadRequest("two snapshots of the commit have the same id")
    return commit


def _assign_uuid(commit: TableCommit, update: updates.AssignUuid) -> None:
    commit.uuid = str(update.uuid)


def _upgrade(commit: TableCommit, update: updates.UpgradeFormatVersion) -> None:
    commit.format_version = update.format_version


def _add_schema(commit: TableCommit, update: updates.AddSchema) -> None:
    schema_id = update.schema_.schema_id
    key = len(commit.schemas) if schema_id is None else schema_id
    commit.schemas.pop(key, None)  # the one that is added last is the last of the dict
    commit.schemas[key] = update.schema_


def _set_schema(commit: TableCommit, update: updates.SetCurrentSchema) -> None:
    commit.current_schema = _id(update.schema_id, commit.schemas, "schema")


def _add_spec(commit: TableCommit, update: updates.AddPartitionSpec) -> None:
    key = len(commit.specs) if update.spec.spec_id is None else update.spec.spec_id
    commit.specs.pop(key, None)  # as in `_add_schema`
    commit.specs[key] = update.spec


def _set_spec(commit: TableCommit, update: updates.SetDefaultSpec) -> None:
    commit.default_spec = _id(update.spec_id, commit.specs, "partition spec")


def _add_sort_order(commit: TableCommit, update: updates.AddSortOrder) -> None:
    commit.sort_orders.pop(update.sort_order.order_id, None)  # as in `_add_schema`
    commit.sort_orders[update.sort_order.order_id] = update.sort_order


def _set_sort_order(commit: TableCommit, update: updates.SetDefaultSortOrder) -> None:
    commit.default_sort_order = _id(update.sort_order_id, commit.sort_orders, "sort order")


def _id(id_: int, added: dict[int, Any], what: str) -> int:
    if id_ != LAST_ADDED:
        return id_
    if not added:
        raise BadRequest(f"the commit sets the {what} that it added last, and adds none")
    return list(added)[-1]


def _add_snapshot(commit: TableCommit, update: updates.AddSnapshot) -> None:
    if update.snapshot.snapshot_id <= LARGEST_DUCKLAKE_ID:
        raise BadRequest("a snapshot id up to 2^40 is one of DuckLake's own")
    commit.snapshots.append(update.snapshot)


def _set_ref(commit: TableCommit, update: updates.SetSnapshotRef) -> None:
    if update.ref_name == MAIN:
        if update.type != "branch":
            raise BadRequest("main is a branch, and cannot be a tag")
        commit.main = update.snapshot_id
        return
    _check_reference(update.ref_name)
    of_branch = (update.max_snapshot_age_ms, update.min_snapshots_to_keep)
    commit.references[update.ref_name] = Reference(
        *(update.snapshot_id, update.max_ref_age_ms, update.type),
        *(of_branch if update.type == "branch" else ()),
    )


def _remove_ref(commit: TableCommit, update: updates.RemoveSnapshotRef) -> None:
    if update.ref_name != MAIN:
        commit.references[update.ref_name] = None
    else:
        commit.removes_main = True


LONGEST_REFERENCE = 1_000


def _check_reference(name: str) -> None:
    if not name or "\0" in name or len(name) > LONGEST_REFERENCE:
        raise BadRequest("the name of a tag or branch is empty, too long, or has a NUL")


def _set_location(commit: TableCommit, update: updates.SetLocation) -> None:
    commit.location = update.location


def _set_properties(commit: TableCommit, update: updates.SetProperties) -> None:
    commit.properties |= update.updates


def _remove_properties(commit: TableCommit, update: updates.RemoveProperties) -> None:
    commit.removed_properties += update.removals


def _remove_snapshots(commit: TableCommit, update: updates.RemoveSnapshots) -> None:
    commit.removed_snapshots += update.snapshot_ids


def _encrypt(commit: TableCommit, update: updates.EncryptionKeys) -> None:
    raise is_encrypted()


def is_encrypted() -> BadRequest:
    """The error for a table with keys."""
    return BadRequest("encryption keys of Iceberg have no form in DuckLake")


def _set_statistics(commit: TableCommit, update: updates.SetStatistics) -> None:
    commit.statistics.setdefault("statistics", []).append(update.statistics.json_object())


def _set_partition_statistics(commit: TableCommit, update: updates.SetPartitionStatistics) -> None:
    files = commit.statistics.setdefault("partition-statistics", [])
    files.append(update.partition_statistics.json_object())


def _remove_statistics(commit: TableCommit, update: updates.RemoveStatistics) -> None:
    commit.removed_statistics.append((update.action.removeprefix("remove-"), update.snapshot_id))


def _ignore(commit: TableCommit, update: updates.Advice) -> None:
    """Ignore an update that nothing depends on."""


READERS: dict[type[Any], Callable[[TableCommit, Any], None]] = {
    updates.AssignUuid: _assign_uuid,
    updates.UpgradeFormatVersion: _upgrade,
    updates.AddSchema: _add_schema,
    updates.SetCurrentSchema: _set_schema,
    updates.AddPartitionSpec: _add_spec,
    updates.SetDefaultSpec: _set_spec,
    updates.AddSortOrder: _add_sort_order,
    updates.SetDefaultSortOrder: _set_sort_order,
    updates.AddSnapshot: _add_snapshot,
    updates.SetSnapshotRef: _set_ref,
    updates.RemoveSnapshotRef: _remove_ref,
    updates.SetLocation: _set_location,
    updates.SetProperties: _set_properties,
    updates.RemoveProperties: _remove_properties,
    updates.RemoveSnapshots: _remove_snapshots,
    updates.EncryptionKeys: _encrypt,
    updates.SetStatistics: _set_statistics,
    updates.SetPartitionStatistics: _set_partition_statistics,
    updates.RemoveStatistics: _remove_statistics,
    updates.Advice: _ignore,
}
"""The function that reads an update into a TableCommit, by the update's type."""
