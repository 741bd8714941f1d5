"""Bodies of the requests that change the catalog, under their names in the specification.

Views: https://iceberg.apache.org/view-spec/
"""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from .schemas import Body, Schema
from .updates import (
    AddSchema,
    AssignUuid,
    PartitionSpec,
    RemoveProperties,
    Requirement,
    SetLocation,
    SetProperties,
    SortOrder,
    Update,
    UpgradeFormatVersion,
)

MOST_ITEMS = 10_000
"""Spark sends an update for each snapshot that it expires."""


class TableIdentifier(Body):
    namespace: list[str] = Field(min_length=1)
    name: str


class CreateNamespaceRequest(Body):
    namespace: list[str] = Field(min_length=1)
    properties: dict[str, str] = Field(default_factory=dict)


class UpdateNamespacePropertiesRequest(Body):
    removals: list[str] = Field(default_factory=list)
    updates: dict[str, str] = Field(default_factory=dict)


class CreateTableRequest(Body):
    name: str
    location: str | None = None
    schema_: Schema = Field(alias="schema")
    partition_spec: PartitionSpec | None = None
    write_order: SortOrder | None = None
    stage_create: bool = False
    properties: dict[str, str] | None = None


class RegisterTableRequest(Body):
    name: str
    metadata_location: str
    overwrite: bool = False
    dry_run: bool = False
    """Polynya's own: nothing is written, and the answer says what would be."""


class CommitTableRequest(Body):
    identifier: TableIdentifier | None = None
    requirements: list[Requirement] = Field(max_length=MOST_ITEMS)
    updates: list[Update] = Field(max_length=MOST_ITEMS)


class CommitTransactionRequest(Body):
    table_changes: list[CommitTableRequest] = Field(max_length=MOST_ITEMS)


class RenameTableRequest(Body):
    source: TableIdentifier
    destination: TableIdentifier


class Representation(Body):
    type: Literal["sql"]
    sql: str
    dialect: str


class ViewVersion(Body):
    version_id: int = Field(ge=-(2**31), lt=2**31)
    timestamp_ms: int
    schema_id: int
    summary: dict[str, str]
    representations: list[Representation]
    default_catalog: str | None = None
    default_namespace: list[str]


class CreateViewRequest(Body):
    name: str
    location: str | None = None
    schema_: Schema = Field(alias="schema")
    view_version: ViewVersion
    properties: dict[str, str]


class AddViewVersion(Body):
    action: Literal["add-view-version"]
    view_version: ViewVersion


class SetCurrentViewVersion(Body):
    action: Literal["set-current-view-version"]
    view_version_id: int


ViewUpdate = Annotated[
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion,
    Field(discriminator="action"),
]


class AssertViewUuid(Body):
    type: Literal["assert-view-uuid"]
    uuid: Annotated[UUID, Field(strict=False)]


class CommitViewRequest(Body):
    identifier: TableIdentifier | None = None
    requirements: list[AssertViewUuid] = Field(default_factory=list)
    updates: list[ViewUpdate]


def schema_json(schema: Schema) -> dict[str, Any]:
    """A schema as it was sent, without its id: ids follow from the order of the versions."""
    return schema.model_dump(by_alias=True, exclude_none=True, exclude={"schema_id"})
