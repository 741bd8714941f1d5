"""The updates of one commit to one table as one record, or a refusal.

Changes of properties and of statistics files become changes of DuckLake's tags.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ducklake.rows.objects import Tag
from ...iceberg.parquet.metadata import CODECS
from ...iceberg.table_metadata import Reference
from ...mapping.properties import (
    REFERENCE,
    TAG_PREFIX,
    IsServed,
    is_configuration,
    is_table_property,
    property_name,
    tag_key,
)
from ...mapping.tables import (
    KINDS,
    MOST_FILES,
    files_text,
    reference_text,
    references,
    stored_files,
)
from ...rest import updates
from ...rest.schemas import Schema
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
from ..plan.file_statistics import relative

MAIN = "main"

LARGEST_DUCKLAKE_ID = 2**40
"""Ids of snapshots up to this one are DuckLake's own. Those of clients are published too, so the
two must not meet (docs/developers/decisions/0006-published-snapshot-ids.md)."""


@dataclass(slots=True)
class TableCommit:
    """What a commit asks for."""

    requirements: Sequence[Requirement] = ()
    snapshots: list[Snapshot] = field(default_factory=list)
    """In order; the table is as the last one says."""
    main: int | None = None
    """The snapshot that the branch `main` is set to."""
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
    """The tags that it sets, by name; None: it removes the tag."""

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
    if ids and commit.main != ids[-1]:
        raise BadRequest(
            "DuckLake has no staged snapshots: a commit must set main to the snapshot that it adds"
        )
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
    if update.type == "tag" and update.ref_name != MAIN:
        _check_reference(update.ref_name)
        commit.references[update.ref_name] = Reference(update.snapshot_id, update.max_ref_age_ms)
        return
    if update.ref_name != MAIN or update.type != "branch":
        raise BadRequest(
            f"DuckLake has no {update.type} {update.ref_name!r}: it has one line of snapshots, the "
            "branch main. Name a snapshot with a tag, or read it as warehouse=lake@ID"
        )
    if not commit.snapshots or update.snapshot_id != commit.snapshots[-1].snapshot_id:
        raise BadRequest(
            "DuckLake cannot go back to an older snapshot; read it as warehouse=lake@ID and "
            "overwrite the table with its rows"
        )
    commit.main = update.snapshot_id


def _remove_ref(commit: TableCommit, update: updates.RemoveSnapshotRef) -> None:
    if update.ref_name != MAIN:
        commit.references[update.ref_name] = None
    else:
        commit.removes_main = True


LONGEST_REFERENCE = 1_000


def _check_reference(name: str) -> None:
    if not name or "\0" in name or len(name) > LONGEST_REFERENCE:
        raise BadRequest("the name of a tag is empty, too long, or has a NUL")


def _set_location(commit: TableCommit, update: updates.SetLocation) -> None:
    commit.location = update.location


def _set_properties(commit: TableCommit, update: updates.SetProperties) -> None:
    commit.properties |= update.updates


def _remove_properties(commit: TableCommit, update: updates.RemoveProperties) -> None:
    commit.removed_properties += update.removals


def _remove_snapshots(commit: TableCommit, update: updates.RemoveSnapshots) -> None:
    raise BadRequest(
        "snapshots of a DuckLake are those of all its tables: expire them in DuckDB with CALL "
        "ducklake_expire_snapshots(…)"
    )


def _encrypt(commit: TableCommit, update: updates.EncryptionKeys) -> None:
    raise BadRequest("encryption keys of Iceberg have no form in DuckLake")


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


PARQUET = "parquet: DuckLake has no other files"
READABLE_CODECS = tuple(codec.lower() for codec in CODECS)
READABLE = f"one of {', '.join(READABLE_CODECS)}: DuckDB, and so DuckLake, reads no other"
VALUES = {
    "write.format.default": (("parquet",), PARQUET),
    "write.delete.format.default": (("parquet",), PARQUET),
    "write.parquet.compression-codec": (READABLE_CODECS, READABLE),
    "write.delete.parquet.compression-codec": (READABLE_CODECS, READABLE),
    "write.parquet.shred-variants": (
        ("false",),
        "false: DuckDB, and so DuckLake, may read shredded fields under other names",
    ),
}
"""The values that a property may have in lower case, and what the message says that it must be."""

IGNORED = {"format-version"}
"""Properties that are no tags; `requested_version` reads them."""

FORMAT_VERSIONS = {"1", "2", "3"}
WRONG_VERSION = "a table has format version 2 or 3: set format-version to one of these"


def requested_version(properties: Mapping[str, str], upgrade: int | None = None) -> int | None:
    """The format version that a client asks for, which may be 1; None if it does not say.

    Args:
        upgrade: what its commit upgrades the table to.

    Raises:
        BadRequest: DuckLake has no such tables.
    """
    texts = {str(upgrade)} if upgrade is not None else set()
    texts |= {properties["format-version"]} if "format-version" in properties else set()
    if not texts <= FORMAT_VERSIONS:
        raise BadRequest(WRONG_VERSION)
    return max(map(int, texts), default=None)


MOST_CHARACTERS = 100_000


NO_PROPERTIES: Mapping[str, str] = {}


def tags(
    updates: Mapping[str, str],
    removals: Iterable[str] = (),
    own: Mapping[str, str] = NO_PROPERTIES,
    is_served: IsServed = is_table_property,
) -> dict[str, str | None]:
    """The tags that change, with their new values; None: the tag ends.

    Args:
        own: the properties of the object that are ours.
        is_served: which names are served as they are; those of a table, if nothing is said.

    Raises:
        BadRequest: a property configures clients, or says something else than we do.
    """
    changed: dict[str, str | None] = {}
    for key, value in updates.items():
        served = served_name(key, is_served)
        if value in (own.get(key), own.get(served)):
            continue  # a client that sends back what it has read
        check(key, value, own.keys() & {key, served})
        if key not in IGNORED:
            changed[tag_key(key)] = value
    for key in removals:
        if own.keys() & {key, served_name(key, is_served)}:
            raise BadRequest(f"the property {key} follows from the table and cannot be removed")
        changed[tag_key(key)] = None
    return changed


def served_name(key: str, is_served: IsServed) -> str:
    """The name under which a property that a client sets is served."""
    return property_name(tag_key(key), is_served)


def values(changed: Mapping[str, str | None]) -> dict[str, str]:
    """The tags that have a value after a change."""
    return {key: value for key, value in changed.items() if value is not None}


def check(key: str, value: str, own: Iterable[str]) -> None:
    """Refuse a property that cannot be kept.

    Args:
        own: its names, if it is ours.

    Raises:
        BadRequest: the message says why.
    """
    name = key.removeprefix(TAG_PREFIX)
    if list(own) or is_configuration(name):
        raise BadRequest(
            f"the property {key} cannot be set: it would configure the clients of other users or "
            "load code in them, or is given by this catalog; set it in the client's own "
            "configuration"
        )
    allowed, must_be = VALUES.get(name, ((value.lower(),), ""))
    if value.lower() not in allowed:
        raise BadRequest(f"{name} must be {must_be}")
    if key == "format-version" and value not in FORMAT_VERSIONS:
        raise BadRequest(WRONG_VERSION)
    if not name or "\0" in key + value or len(key) + len(value) > MOST_CHARACTERS:
        raise BadRequest("the name or the value of a property is empty, too long, or has a NUL")


def changed_references(
    commit: TableCommit, tags: Sequence[Tag], listed: Collection[int]
) -> dict[str, str | None]:
    """The tags of DuckLake that change, with their new values; None: the tag ends.

    Args:
        tags: of the table now.
        listed: the ids of its snapshots that Iceberg lists.

    Raises:
        BadRequest: a name is to be given to another snapshot, or is not there to be removed.
    """
    stored = references(tags)
    changed: dict[str, str | None] = {}
    for name, reference in commit.references.items():
        if reference is None:
            if name not in stored:
                raise BadRequest(f"the table has no reference {name!r}")
            changed[REFERENCE + name] = None
        elif reference.snapshot_id not in listed:
            raise BadRequest(
                f"the tag {name!r} is for the snapshot {reference.snapshot_id}, which the table "
                "does not list: it has expired, is older than those that are listed "
                "(SNAPSHOT_LIMIT), or was never there"
            )
        elif stored.get(name) != reference:
            changed[REFERENCE + name] = reference_text(reference)
    return changed


STATISTICS_CHARACTERS = 1_000_000
LONGEST_DESCRIPTION = 900_000


def changed_statistics(
    commit: TableCommit, tags: Sequence[Tag], staging: str
) -> dict[str, str | None]:
    """The tags that change, with their new values; None: the tag ends.

    Args:
        tags: of the table now.
        staging: where clients write metadata files, with a slash at its end.

    Raises:
        BadRequest: a file is elsewhere, or its description is too long.
    """
    now_ms = round(time.time() * 1000)
    changed: dict[str, str | None] = {}
    for kind, key in KINDS.items():
        before = stored_files(kind, tags)
        # A snapshot has one file of each kind.
        files = {file["snapshot-id"]: (file, set_ms) for file, set_ms in reversed(before)}
        for removed, snapshot_id in commit.removed_statistics:
            if removed == kind:
                files.pop(snapshot_id, None)
        for file in commit.statistics.get(kind, []):
            _check_statistics(file, staging)
            same, _ = files.get(file["snapshot-id"], (None, 0))
            if same != file:
                files.pop(file["snapshot-id"], None)
                files[file["snapshot-id"]] = file, now_ms
        newest = list(reversed(files.values()))[:MOST_FILES]
        while len(files_text(newest)) > STATISTICS_CHARACTERS:
            newest.pop()
        if newest != before:
            changed[key] = files_text(newest) if newest else None
    return changed


def _check_statistics(file: Mapping[str, Any], staging: str) -> None:
    # Readers open what the table metadata names, with their own credentials.
    relative(file["statistics-path"], staging, "the statistics file")
    if len(files_text([(dict(file), 0)])) > LONGEST_DESCRIPTION:
        raise BadRequest(
            "the description of the statistics file has more than "
            f"{LONGEST_DESCRIPTION:,} characters: compute statistics for fewer columns"
        )
