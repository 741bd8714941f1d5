"""Bodies of the requests that change views, under their names in the specification.

https://iceberg.apache.org/view-spec/
"""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from .body import Body
from .requests import TableIdentifier
from .schemas import Schema
from .updates import (
    AddSchema,
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)


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
