"""Bodies of the requests that change the catalog, under their names in the specification."""

from pydantic import Field

from .body import Body
from .requirements import Requirement
from .schemas import Schema
from .updates import PartitionSpec, SortOrder, Update

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


class CommitTableRequest(Body):
    identifier: TableIdentifier | None = None
    requirements: list[Requirement] = Field(max_length=MOST_ITEMS)
    updates: list[Update] = Field(max_length=MOST_ITEMS)


class CommitTransactionRequest(Body):
    table_changes: list[CommitTableRequest] = Field(max_length=MOST_ITEMS)


class RenameTableRequest(Body):
    source: TableIdentifier
    destination: TableIdentifier
