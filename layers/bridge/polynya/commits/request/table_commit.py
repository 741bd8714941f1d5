"""The updates of one commit to one table as one record, or a refusal."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

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
"""Ids of snapshots up to this one are DuckLake's own. Those of clients are published too, so no id
may be both (docs/developers/decisions/0006-published-snapshot-ids.md)."""


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
        _apply(commit, change)
    ids = commit.snapshot_ids
    if len(ids) != len(set(ids)):
        raise BadRequest("two snapshots of the commit have the same id")
    return commit


def _apply(commit: TableCommit, update: Update) -> None:
    match update:
        case updates.AssignUuid():
            commit.uuid = str(update.uuid)
        case updates.UpgradeFormatVersion():
            commit.format_version = update.format_version
        case updates.AddSchema():
            _add_last(commit.schemas, update.schema_.schema_id, update.schema_)
        case updates.SetCurrentSchema():
            commit.current_schema = _id(update.schema_id, commit.schemas, "schema")
        case updates.AddPartitionSpec():
            _add_last(commit.specs, update.spec.spec_id, update.spec)
        case updates.SetDefaultSpec():
            commit.default_spec = _id(update.spec_id, commit.specs, "partition spec")
        case updates.AddSortOrder():
            _add_last(commit.sort_orders, update.sort_order.order_id, update.sort_order)
        case updates.SetDefaultSortOrder():
            orders = commit.sort_orders
            commit.default_sort_order = _id(update.sort_order_id, orders, "sort order")
        case updates.AddSnapshot():
            if update.snapshot.snapshot_id <= LARGEST_DUCKLAKE_ID:
                raise BadRequest("a snapshot id up to 2^40 is one of DuckLake's own")
            commit.snapshots.append(update.snapshot)
        case updates.SetSnapshotRef():
            _set_reference(commit, update)
        case updates.RemoveSnapshotRef(ref_name=name) if name == MAIN:
            commit.removes_main = True
        case updates.RemoveSnapshotRef():
            commit.references[update.ref_name] = None
        case updates.SetLocation():
            commit.location = update.location
        case updates.SetProperties():
            commit.properties |= update.updates
        case updates.RemoveProperties():
            commit.removed_properties += update.removals
        case updates.RemoveSnapshots():
            commit.removed_snapshots += update.snapshot_ids
        case updates.EncryptionKeys():
            raise is_encrypted()
        case updates.SetStatistics():
            commit.statistics.setdefault("statistics", []).append(update.statistics.json_object())
        case updates.SetPartitionStatistics():
            files = commit.statistics.setdefault("partition-statistics", [])
            files.append(update.partition_statistics.json_object())
        case updates.RemoveStatistics():
            of_list = update.action.removeprefix("remove-")
            commit.removed_statistics.append((of_list, update.snapshot_id))
        case updates.Advice():
            pass  # no row depends on it
        case _:
            assert_never(update)


def _add_last(added: dict[int, Any], id_: int | None, new: Any) -> None:
    """Add a value as the last one of the dict."""
    key = len(added) if id_ is None else id_
    added.pop(key, None)
    added[key] = new


def _id(id_: int, added: dict[int, Any], what: str) -> int:
    if id_ != LAST_ADDED:
        return id_
    if not added:
        raise BadRequest(f"the commit sets the {what} that it added last, and adds none")
    return list(added)[-1]


LONGEST_REFERENCE = 1_000


def _set_reference(commit: TableCommit, update: updates.SetSnapshotRef) -> None:
    name = update.ref_name
    if name == MAIN:
        if update.type != "branch":
            raise BadRequest("main is a branch, and cannot be a tag")
        commit.main = update.snapshot_id
        return
    if not name or "\0" in name or len(name) > LONGEST_REFERENCE:
        raise BadRequest("the name of a tag or branch is empty, too long, or has a NUL")
    of_branch = (update.max_snapshot_age_ms, update.min_snapshots_to_keep)
    commit.references[name] = Reference(
        *(update.snapshot_id, update.max_ref_age_ms, update.type),
        *(of_branch if update.type == "branch" else ()),
    )


def is_encrypted() -> BadRequest:
    """The error for an encrypted table."""
    return BadRequest("encryption keys of Iceberg have no form in DuckLake")
