"""Schemas, tables and views, with their tags."""

from dataclasses import dataclass
from datetime import datetime

from ...namespaces import Namespace, dotted

VIEW_VERSION = "polynya.view-version"
"""The key of the tag that keeps what Iceberg clients said of the text of a view."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A row of ducklake_schema."""

    schema_id: int
    schema_name: str
    path: str
    path_is_relative: bool
    parents: Namespace = ()
    """The names of the schemas that it is in, outermost first."""

    @property
    def namespace(self) -> Namespace:
        """All of its levels."""
        return (*self.parents, self.schema_name)

    @property
    def full_name(self) -> str:
        """Its name for people."""
        return dotted(*self.namespace)

    def name_of(self, name: str) -> str:
        """The full name of a table or a view in it, for people."""
        return dotted(*self.namespace, name)


@dataclass(frozen=True, slots=True)
class Table:
    """A row of ducklake_table."""

    table_id: int
    table_uuid: str
    begin_snapshot: int
    """When the table began, not its newest name: the smallest of all rows with this table_id."""
    end_snapshot: int | None
    schema_id: int
    table_name: str
    path: str
    path_is_relative: bool


@dataclass(frozen=True, slots=True)
class View:
    """A row of ducklake_view."""

    view_id: int
    view_uuid: str
    begin_snapshot: int
    """When this text and name began: a view that is altered or renamed has several rows."""
    begin_time: datetime | None
    """When that snapshot was made; None if it has expired."""
    view_name: str
    dialect: str
    sql: str


@dataclass(frozen=True, slots=True)
class ViewText:
    """The text of a view since a snapshot."""

    begin_snapshot: int
    begin_time: datetime | None
    """When that snapshot was made; None if it has expired."""
    sql: str
    said: str | None
    """The tag of an Iceberg client that has written this text."""


@dataclass(frozen=True, slots=True)
class NameNow:
    """The newest name of a table or a view."""

    kind: str
    """`table` or `view`."""
    object_id: int
    schema_id: int
    schema_name: str
    name: str
    parents: Namespace = ()
    """The names of the schemas that its schema is in, outermost first."""

    @property
    def namespace(self) -> Namespace:
        """All levels of its schema."""
        return (*self.parents, self.schema_name)


@dataclass(frozen=True, slots=True)
class Tag:
    """A row of ducklake_tag or ducklake_column_tag."""

    object_id: int
    """The table or view; in a column tag the column."""
    key: str
    value: str | None
