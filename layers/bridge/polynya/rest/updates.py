"""TableUpdate of the Iceberg REST specification, as a closed list."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from .body import Body
from .schemas import Schema


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


class AssignUuid(Body):
    action: Literal["assign-uuid"]
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
    """What may be lost without any harm, because it was never kept."""

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
"""In set-current-schema and its siblings: the one that this commit added last."""

Properties = dict[str, str]
Json = dict[str, Any]
