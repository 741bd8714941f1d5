"""TableUpdate and TableRequirement of the Iceberg REST specification, as closed lists."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from .schemas import Body, Schema


class PartitionField(Body):
    source_id: int
    field_id: int | None = None
    name: str
    transform: str


class PartitionSpec(Body):
    spec_id: int | None = None
    fields: list[PartitionField]


class SortField(Body):
    source_id: int
    transform: str
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


class SortOrder(Body):
    order_id: int = 0
    fields: list[SortField]


class Snapshot(Body):
    """The snapshot that a client adds."""

    snapshot_id: int = Field(ge=0, lt=2**63)
    parent_snapshot_id: int | None = None
    sequence_number: int | None = None
    timestamp_ms: int
    manifest_list: str
    summary: dict[str, str]
    schema_id: int | None = None
    first_row_id: int | None = Field(None, ge=0, lt=2**62)
    added_rows: int | None = Field(None, ge=0, lt=2**62)


class AssignUuid(Body):
    action: Literal["assign-uuid"]
    # The body is parsed before it is validated, and strict pydantic takes texts for UUIDs only in
    # JSON.
    uuid: Annotated[UUID, Field(strict=False)]


class UpgradeFormatVersion(Body):
    action: Literal["upgrade-format-version"]
    format_version: int


class AddSchema(Body):
    action: Literal["add-schema"]
    schema_: Schema = Field(alias="schema")
    last_column_id: int | None = None


class SetCurrentSchema(Body):
    action: Literal["set-current-schema"]
    schema_id: int


class AddPartitionSpec(Body):
    action: Literal["add-spec"]
    spec: PartitionSpec


class SetDefaultSpec(Body):
    action: Literal["set-default-spec"]
    spec_id: int


class AddSortOrder(Body):
    action: Literal["add-sort-order"]
    sort_order: SortOrder


class SetDefaultSortOrder(Body):
    action: Literal["set-default-sort-order"]
    sort_order_id: int


class AddSnapshot(Body):
    action: Literal["add-snapshot"]
    snapshot: Snapshot


class SetSnapshotRef(Body):
    action: Literal["set-snapshot-ref"]
    ref_name: str
    type: Literal["tag", "branch"]
    snapshot_id: int
    max_ref_age_ms: int | None = None
    max_snapshot_age_ms: int | None = None
    min_snapshots_to_keep: int | None = None


class RemoveSnapshotRef(Body):
    action: Literal["remove-snapshot-ref"]
    ref_name: str


class SetLocation(Body):
    action: Literal["set-location"]
    location: str


class SetProperties(Body):
    action: Literal["set-properties"]
    updates: dict[str, str]


class RemoveProperties(Body):
    action: Literal["remove-properties"]
    removals: list[str]


class BlobMetadata(Body):
    type: str
    snapshot_id: int
    sequence_number: int
    fields: list[int]
    properties: dict[str, str] | None = None


class PartitionStatisticsFile(Body):
    snapshot_id: int
    statistics_path: str
    file_size_in_bytes: int = Field(ge=0)

    def json_object(self) -> dict[str, Any]:
        """The file as the table metadata describes it."""
        return self.model_dump(by_alias=True, exclude_none=True)


class StatisticsFile(PartitionStatisticsFile):
    file_footer_size_in_bytes: int = Field(ge=0)
    blob_metadata: list[BlobMetadata]


class SetStatistics(Body):
    action: Literal["set-statistics"]
    statistics: StatisticsFile


class SetPartitionStatistics(Body):
    action: Literal["set-partition-statistics"]
    partition_statistics: PartitionStatisticsFile


class RemoveStatistics(Body):
    action: Literal["remove-statistics", "remove-partition-statistics"]
    snapshot_id: int


class Advice(Body):
    """An update of something that Polynya does not keep, so that it has no effect."""

    action: Literal["remove-schemas", "remove-partition-specs"]


class RemoveSnapshots(Body):
    action: Literal["remove-snapshots"]
    snapshot_ids: list[int]


class EncryptionKeys(Body):
    action: Literal["add-encryption-key", "remove-encryption-key"]


Update = Annotated[
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetCurrentSchema
    | AddPartitionSpec
    | SetDefaultSpec
    | AddSortOrder
    | SetDefaultSortOrder
    | AddSnapshot
    | SetSnapshotRef
    | RemoveSnapshotRef
    | SetLocation
    | SetProperties
    | RemoveProperties
    | RemoveSnapshots
    | EncryptionKeys
    | SetStatistics
    | SetPartitionStatistics
    | RemoveStatistics
    | Advice,
    Field(discriminator="action"),
]

LAST_ADDED = -1
"""In set-current-schema and similar updates: the one that this commit added last."""


class AssertCreate(Body):
    type: Literal["assert-create"]


class AssertTableUuid(Body):
    type: Literal["assert-table-uuid"]
    uuid: Annotated[UUID, Field(strict=False)]


class AssertRefSnapshotId(Body):
    type: Literal["assert-ref-snapshot-id"]
    ref: str
    snapshot_id: int | None = None


class AssertLastAssignedFieldId(Body):
    type: Literal["assert-last-assigned-field-id"]
    value: int = Field(alias="last-assigned-field-id")


class AssertCurrentSchemaId(Body):
    type: Literal["assert-current-schema-id"]
    value: int = Field(alias="current-schema-id")


class AssertLastAssignedPartitionId(Body):
    type: Literal["assert-last-assigned-partition-id"]
    value: int = Field(alias="last-assigned-partition-id")


class AssertDefaultSpecId(Body):
    type: Literal["assert-default-spec-id"]
    value: int = Field(alias="default-spec-id")


class AssertDefaultSortOrderId(Body):
    type: Literal["assert-default-sort-order-id"]
    value: int = Field(alias="default-sort-order-id")


Requirement = Annotated[
    AssertCreate
    | AssertTableUuid
    | AssertRefSnapshotId
    | AssertLastAssignedFieldId
    | AssertCurrentSchemaId
    | AssertLastAssignedPartitionId
    | AssertDefaultSpecId
    | AssertDefaultSortOrderId,
    Field(discriminator="type"),
]

NUMBERS = {
    "assert-last-assigned-field-id": ("last-column-id", "last assigned field id"),
    "assert-current-schema-id": ("current-schema-id", "current schema"),
    "assert-last-assigned-partition-id": ("last-partition-id", "last assigned partition id"),
    "assert-default-spec-id": ("default-spec-id", "default partition spec"),
    "assert-default-sort-order-id": ("default-sort-order-id", "default sort order"),
}
"""The number of the table metadata that a requirement is about, and what Java calls it."""


def failures(requirements: Iterable[Requirement], document: Mapping[str, Any]) -> list[str]:
    """Why requirements do not hold for a table, in the words of Iceberg's own server.

    Args:
        document: the table metadata.
    """
    reasons = (_failure(requirement, document) for requirement in requirements)
    return [reason for reason in reasons if reason is not None]


def _failure(requirement: Requirement, document: Mapping[str, Any]) -> str | None:
    expected: str | int | None
    match requirement:
        case AssertCreate():
            # There is table metadata, so there is a table.
            return "Requirement failed: table already exists"
        case AssertTableUuid(uuid=uuid):
            expected, actual = str(uuid), document["table-uuid"]
            what = "UUID does not match: expected"
        case AssertRefSnapshotId(ref=ref, snapshot_id=expected):
            # A requirement without an id requires that there is no such reference.
            actual = document["refs"].get(ref, {}).get("snapshot-id")
            what = f"reference {ref} has changed: expected id"
        case _:
            key, name = NUMBERS[requirement.type]
            expected, actual = requirement.value, document[key]
            what = f"{name} changed: expected id"
    return None if actual == expected else f"Requirement failed: {what} {expected} != {actual}"
