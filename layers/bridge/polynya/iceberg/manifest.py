"""Manifest lists, manifest entries, partition specs and bounds, in the specification's words.

https://iceberg.apache.org/spec/#manifests
https://iceberg.apache.org/spec/#partitioning
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from ..types.names import iceberg_type, to_bytes
from .types import TableSchema, primitives


class ManifestContent(IntEnum):
    """Field 517, `content`, of a manifest list."""

    DATA = 0
    DELETES = 1


class FileContent(IntEnum):
    """Field 134, `content`, of a data file."""

    DATA = 0
    POSITION_DELETES = 1
    EQUALITY_DELETES = 2


class Status(IntEnum):
    """Field 0, `status`, of a manifest entry."""

    EXISTING = 0
    ADDED = 1
    DELETED = 2


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file or the deletes of one; statistics by field id, absent if not certain."""

    content: FileContent
    file_path: str
    record_count: int
    file_size_in_bytes: int
    column_sizes: Mapping[int, int] = field(default_factory=dict)
    value_counts: Mapping[int, int] = field(default_factory=dict)
    null_value_counts: Mapping[int, int] = field(default_factory=dict)
    nan_value_counts: Mapping[int, int] = field(default_factory=dict)
    lower_bounds: Mapping[int, bytes] = field(default_factory=dict)
    upper_bounds: Mapping[int, bytes] = field(default_factory=dict)
    referenced_data_file: str | None = None
    partition: tuple[Any, ...] = ()
    """One value for each field of the spec."""
    first_row_id: int | None = None
    """The row id of its first row; None: its rows carry their ids, or have none."""
    vector_size: int | None = None
    """The length of the deletion vector in a Puffin file; None: this is a Parquet file."""

    @property
    def file_format(self) -> str:
        """The name of the format in manifests."""
        return "PARQUET" if self.vector_size is None else "PUFFIN"


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """An entry of a manifest."""

    status: Status
    snapshot_id: int
    sequence_number: int
    file_sequence_number: int
    data_file: DataFile


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """An entry of a manifest list."""

    manifest_path: str
    manifest_length: int
    content: ManifestContent
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files_count: int = 0
    existing_files_count: int = 0
    deleted_files_count: int = 0
    added_rows_count: int = 0
    existing_rows_count: int = 0
    deleted_rows_count: int = 0
    partition_spec_id: int = 0
    partitions: list[dict[str, Any]] | None = None
    """A summary of the values of each partition field; None: unpartitioned."""
    first_row_id: int | None = None
    """Only in data manifests of version 3: without it clients ignore the row ids of the files."""

    @property
    def has_entries(self) -> bool:
        """Whether the manifest has any entry."""
        return self.added_files_count + self.existing_files_count + self.deleted_files_count > 0


@dataclass(frozen=True, slots=True)
class PartitionField:
    """A field of a partition spec."""

    source_id: int
    field_id: int
    """From 1000 on; the same source and transform have the same id in every spec."""
    name: str
    transform: str
    """`identity`, `bucket[16]`, `truncate[4]`, `year`, `month`, `day`, `hour`, `void`."""
    result_type: str
    """The type of the values, by its name in the specification."""

    def json(self) -> dict[str, Any]:
        """The field in the table metadata (Appendix C)."""
        return {
            "source-id": self.source_id,
            "field-id": self.field_id,
            "name": self.name,
            "transform": self.transform,
        }


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """A partition spec; without fields the table is unpartitioned."""

    spec_id: int
    fields: tuple[PartitionField, ...]

    def json(self) -> dict[str, Any]:
        """The spec in the table metadata (Appendix C)."""
        return {"spec-id": self.spec_id, "fields": [field.json() for field in self.fields]}

    def bind(self, schema: TableSchema) -> "PartitionSpec":
        """The spec with the types that its columns have in a schema.

        Java gives readers the values in the type that they have in the manifest. So this must not
        be newer than the column's type in any snapshot that lists the manifest.
        """
        types = primitives(schema.fields)
        return replace(self, fields=tuple(_typed(field, types) for field in self.fields))


def _typed(field: PartitionField, types: Mapping[int, str]) -> PartitionField:
    if field.transform != "identity":
        return field
    return replace(field, result_type=types.get(field.source_id, field.result_type))


UNPARTITIONED = PartitionSpec(0, ())


def avro_type(field: PartitionField) -> Any:
    """The Avro type of a partition value (specification, Appendix A)."""
    avro = iceberg_type(field.result_type).avro
    # Avro allows one definition of a name, and two partition fields may have the same type.
    is_named = isinstance(avro, dict) and "name" in avro
    return avro | {"name": f"{avro['name']}_{field.field_id}"} if is_named else avro


def summaries(spec: PartitionSpec, columns: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """The field summaries of a manifest, for the manifest list: always exact.

    Bounds are in base64, because they are stored in a manifest's metadata.

    Args:
        columns: for each field of the spec the values of all entries.
    """
    result = []
    for partition_field, column in zip(spec.fields, columns, strict=True):
        values = [value for value in column if value is not None]
        lower, upper = (min(values), max(values)) if values else (None, None)
        result.append(
            {
                "contains_null": len(values) < len(column),
                # No field is partitioned by a float (`IcebergType.has_identity`).
                "contains_nan": False,
                "lower_bound": _bound(partition_field, lower),
                "upper_bound": _bound(partition_field, upper),
            }
        )
    return result


def _bound(field: PartitionField, value: Any) -> str | None:
    if value is None:
        return None
    return base64.b64encode(to_bytes(field.result_type, value)).decode()
