"""The parts that are read of the table metadata of a table that is registered."""

from typing import Any

from pydantic import Field

from .schemas import Body, Schema
from .updates import PartitionSpec, Snapshot, SortOrder


class SourceSnapshot(Snapshot):
    key_id: Any = None
    """The key of an encrypted manifest list."""


class SourceMetadata(Body):
    """The parts of a metadata file that `iceberg/metadata_file.py` returns."""

    format_version: int
    last_column_id: int = Field(ge=0, lt=2**31)
    current_schema_id: int
    schemas: list[Schema]
    default_spec_id: int
    partition_specs: list[PartitionSpec]
    default_sort_order_id: int = 0
    sort_orders: list[SortOrder] = Field(default_factory=list)
    properties: dict[str, str] = Field(default_factory=dict)
    snapshot: SourceSnapshot | None = None
    """The current one."""
    snapshots: int
    """How many there are."""
    references: list[str]
    """The names of branches other than main, and of tags."""
    has_encryption: bool
    has_statistics: bool
