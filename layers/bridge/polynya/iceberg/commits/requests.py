"""Bodies of the requests that change the catalog, under their names in the specification."""

from pydantic import Field

from .body import Body
from .requirements import Requirement
from .schemas import Schema
from .updates import PartitionSpec, SortOrder, Update


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
    requirements: list[Requirement]
    updates: list[Update]


class CommitTransactionRequest(Body):
    table_changes: list[CommitTableRequest]


class RenameTableRequest(Body):
    source: TableIdentifier
    destination: TableIdentifier
