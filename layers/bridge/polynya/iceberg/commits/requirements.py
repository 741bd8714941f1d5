"""TableRequirement of the Iceberg REST specification, as a closed list."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from .body import Body


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
    return [why for one in requirements if (why := _failure(one, document)) is not None]


def _failure(requirement: Requirement, document: Mapping[str, Any]) -> str | None:
    wanted: str | int | None
    match requirement:
        case AssertCreate():
            return "Requirement failed: table already exists"
        case AssertTableUuid(uuid=uuid):
            wanted, found = str(uuid), document["table-uuid"]
            what = "UUID does not match: expected"
        case AssertRefSnapshotId(ref=ref, snapshot_id=wanted):
            found = document["refs"].get(ref, {}).get("snapshot-id")
            what = f"reference {ref} has changed: expected id"
        case _:
            key, name = NUMBERS[requirement.type]
            wanted, found = requirement.value, document[key]
            what = f"{name} changed: expected id"
    return None if found == wanted else f"Requirement failed: {what} {wanted} != {found}"
